"""Turns are portable: their tests run under both event loops, in virtual time."""

from tests.fakes.clocks import virtual_time  # noqa: F401
