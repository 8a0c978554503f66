"""What flags of the scripts hold, as types for argparse."""

import argparse
import math
from collections.abc import Callable


def integers(text: str) -> list[int]:
    """Returns the numbers of a list such as `12,32,64`."""
    values = [int(part) for part in text.split(",")]
    if min(values) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} holds {min(values)}, expected numbers from 1 up"
        )
    return values


def positive(text: str) -> int:
    """Returns a number from 1 up."""
    (value,) = integers(text)
    return value


def limit(text: str) -> float:
    """Returns seconds above 0."""
    (value,) = limits(text)
    return value


def limits(text: str) -> list[float]:
    """Returns the seconds of a list such as `1,10`."""
    values = [float(part) for part in text.split(",")]
    if not all(math.isfinite(value) and value > 0 for value in values):
        raise argparse.ArgumentTypeError(f"{text!r} is not made of numbers above 0")
    return values


def some_of(*names: str) -> Callable[[str], list[str]]:
    """Returns the type of a list of some of these names."""

    def checked(text: str) -> list[str]:
        parts = words(text)
        if unknown := [part for part in parts if part not in names]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not among {','.join(names)}")
        return parts

    return checked


def words(text: str) -> list[str]:
    """Returns the parts of a list such as `rd100,eil101`."""
    parts = [part for part in text.split(",") if part]
    if not parts:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing")
    return parts


def devices(text: str) -> int | str:
    """Returns a number of devices, or `all` or a platform."""
    return int(text) if text.isdigit() else text
