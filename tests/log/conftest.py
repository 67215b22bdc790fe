"""The log is portable: its tests run under both event loops, in virtual time."""

from tests.fakes.clocks import virtual_time  # noqa: F401
