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


def assert_refused(kind, says, **flags):
    """Checks that a process with these flags joins nobody and begins nothing."""
    given = {"coordinator": None, "processes": None, "process": None, "wait": 0} | flags
    with pytest.raises(kind, match=says), starts.agreed(argparse.Namespace(**given)):
        raise AssertionError("it has begun")


def test_a_coordinator_that_does_not_answer_is_named():
    """In one line, within the patience; so is an address that is none."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        says = f"no coordinator answers at {address} within 0"
        assert_refused(TimeoutError, says, coordinator=address, process=1)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        assert_refused(OSError, "cannot listen at port", coordinator=address, process=0)
    assert_refused(ValueError, "'host0', expected HOST:PORT or auto", coordinator="host0")


def test_a_number_of_processes_needs_a_coordinator():
    """Without, each would solve by itself."""
    for flag in ({"processes": 2}, {"process": 0}):
        assert_refused(ValueError, "without --coordinator", **flag)
