"""What a search needs before it starts: the cache where it can be, and other processes."""

import argparse
import socket

import pytest

from jaxopt_search.command import starts
from jaxopt_search.engine import compile


def test_a_cache_that_is_refused_is_done_without(monkeypatch, capsys):
    """With a line that says why."""

    def refuse():
        raise PermissionError("others can write there")

    monkeypatch.setattr(compile, "enable_compilation_cache", refuse)
    starts.use_machine(argparse.Namespace(no_cache=True, devices="all"))
    assert capsys.readouterr().err == ""
    starts.use_machine(argparse.Namespace(no_cache=False, devices="all"))
    assert capsys.readouterr().err == (
        "jaxopt-search: compiled programs are not kept: others can write there\n"
    )


def test_a_coordinator_that_does_not_answer_is_named():
    """In one line, within the patience; so is an address that is none."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        args = argparse.Namespace(
            coordinator=address,
            process=1,
            wait=0,
        )
        says = f"no coordinator answers at {address} within 0"
        with pytest.raises(TimeoutError, match=says), starts.agreed(args):
            raise AssertionError("it has joined nobody")
    with socket.create_server(("127.0.0.1", 0)) as other:
        args.coordinator, args.process = f"127.0.0.1:{other.getsockname()[1]}", 0
        with pytest.raises(OSError, match="cannot listen at port"), starts.agreed(args):
            raise AssertionError("it has joined nobody")
    args.coordinator, says = "host0", "'host0', expected HOST:PORT or auto"
    with pytest.raises(ValueError, match=says), starts.agreed(args):
        raise AssertionError("it has joined nobody")


def test_a_number_of_processes_needs_a_coordinator():
    """Without, each would solve by itself."""
    for flag in ({"processes": 2}, {"process": 0}):
        args = argparse.Namespace(
            **{"coordinator": None, "processes": None, "process": None} | flag
        )
        with pytest.raises(ValueError, match="without --coordinator"), starts.agreed(args):
            raise AssertionError("it has begun")
