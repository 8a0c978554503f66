"""Reads whitespace-separated numbers from untrusted files, strictly and with line numbers.

Python's `int` and `float` accept `1_000`, `nan`, `0x1F` (with a base) and digits of any script, so
each token is matched against a pattern of plain ASCII numbers first. Everything works on bytes.
"""

import io
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from jaxopt_search.checks import check_count
from jaxopt_search.errors import InstanceFormatError, UnsupportedInstance

MAX_BYTES = 256 * 2**20

INTEGER = re.compile(rb"[+-]?[0-9]{1,18}")
REAL = re.compile(rb"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,4})?")
_TOKEN = re.compile(rb"\S+")
_SPACE = re.compile(rb"\s")
_BLOCK = 1 << 20  # bytes split into tokens at a time


class Source:
    """The bytes of a text file, with errors that name file and line.

    Attributes:
      path: the path as given.
      data: the content, each line ending turned into a line feed.
      size: of the content as read, in bytes.
    """

    def __init__(
        self, path: str | os.PathLike, max_bytes: int, what: str, stream: BinaryIO | None = None
    ):
        """Reads the file, or in its place a stream, which `path` then only names."""
        max_bytes = check_count("max_bytes", max_bytes, 1, sys.maxsize - 1)
        self.path = os.fspath(path)
        if "\0" in self.path:
            raise ValueError(f"path is {self.path!r}, expected a path without NUL")
        if stream is None:
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                raise InstanceFormatError(f"{self.path}:1: not a regular file, expected {what}")
            self._check_size(status.st_size, max_bytes)
            with open(path, "rb") as file:
                data = file.read(max_bytes + 1)
        else:
            data = stream.read(max_bytes + 1)
        self.size = len(data)
        self._check_size(self.size, max_bytes)
        self.data = b""
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise self.error(0, f"the file is UTF-16, expected {what} in ASCII")
        if b"\0" in data:
            raise self.error(0, f"the file is binary (it has NUL bytes), expected {what}")
        data = data.removeprefix(b"\xef\xbb\xbf")
        self.data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not self.data.strip():
            raise self.error(0, f"the file is empty, expected {what}")

    def _check_size(self, size: int, max_bytes: int) -> None:
        if size > max_bytes:
            raise InstanceFormatError(
                f"{self.path}:1: the file has {size} bytes, expected at most {max_bytes} "
                "(see max_bytes)"
            )

    def error(self, position: int, message: str) -> InstanceFormatError:
        """Returns the error to raise for what stands at `position` in `data`."""
        return InstanceFormatError(f"{self.path}:{self.line(position)}: {message}")

    def unsupported(self, position: int, message: str) -> UnsupportedInstance:
        """Returns the error to raise for a well-formed file that is not read."""
        return UnsupportedInstance(f"{self.path}:{self.line(position)}: {message}")

    def line(self, position: int) -> int:
        """Returns the line, from 1, of a position in `data`."""
        return self.data.count(b"\n", 0, position) + 1

    def lines(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Yields position and content of the lines in `data[start:stop]` that are not blank."""
        position = start
        for line in io.BytesIO(self.data[start:stop]):
            if not line.isspace():
                yield position, line
            position += len(line)

    def integers(
        self, start: int, stop: int, counts: tuple[int, ...], what: str, end: str = "the end"
    ) -> np.ndarray:
        """Returns the integers in `data[start:stop]`, all of which must be integers.

        Tokens are made a block at a time, so that memory stays near the file's size.

        Args:
          start, stop: the part of `data` to read.
          counts: the numbers of integers that are right.
          what: the words for them in errors.
          end: the words for what must follow the last one.

        Returns:
          [m] int64, m in `counts`.

        Raises:
          InstanceFormatError: a token is no integer, or there are too few or too many.
        """
        blocks, found = [], 0
        for begin, end_of_block in self._blocks(start, stop):
            tokens = self.data[begin:end_of_block].split()
            if not all(map(INTEGER.fullmatch, tokens)):
                raise self._no_integer(begin, what)
            if found + len(tokens) > max(counts):
                surplus = self._position(begin, max(counts) - found)
                token = show(next(_TOKEN.finditer(self.data, surplus)).group())
                raise self.error(surplus, f"{token} follows the last of {what}, expected {end}")
            found += len(tokens)
            blocks.append(np.array(list(map(int, tokens)), np.int64))
        if found not in counts:
            expected = " or ".join(map(str, counts))
            last = start + len(self.data[start:stop].rstrip())
            raise self.error(last, f"found {found} numbers for {what}, expected {expected}")
        return np.concatenate(blocks) if blocks else np.zeros(0, np.int64)

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yields ranges that cover `data[start:stop]` and end at white space."""
        while start < stop:
            cut = _SPACE.search(self.data, min(start + _BLOCK, stop), stop)
            end = cut.end() if cut else stop
            yield start, end
            start = end

    def _position(self, start: int, index: int) -> int:
        """Returns the position of token number `index` from `start` on."""
        for number, match in enumerate(_TOKEN.finditer(self.data, start)):
            if number == index:
                return match.start()
        return len(self.data)

    def _no_integer(self, start: int, what: str) -> InstanceFormatError:
        for match in _TOKEN.finditer(self.data, start):
            if not INTEGER.fullmatch(match.group()):
                break
        token = show(match.group())
        if re.fullmatch(rb"[+-]?[0-9]+", match.group()):
            expected = "expected an integer of at most 18 digits"
        elif REAL.fullmatch(match.group()):
            expected = "expected an integer without decimal point or exponent"
        else:
            expected = "expected an integer"
        return self.error(match.start(), f"{token} among {what}, {expected}")


def parse_real(source: Source, position: int, token: bytes, what: str) -> float:
    """Returns a token as a finite float.

    Raises:
      InstanceFormatError: it is no plain decimal number, or its magnitude is above 1e12.
    """
    if not REAL.fullmatch(token):
        raise source.error(position, f"{show(token)} as {what}, expected a number")
    value = float(token)
    if not abs(value) <= 1e12:
        raise source.error(position, f"{show(token)} as {what}, expected at most 1e12 in magnitude")
    return value


def show(token: bytes) -> str:
    """Returns a token in quotes, in ASCII and of bounded length, to stand in a message."""
    text = ascii(token[:41].decode("utf-8", "replace"))
    return text if len(token) <= 40 else f"{text[:40]}...'"
