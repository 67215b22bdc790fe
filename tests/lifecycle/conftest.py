"""Servers as processes, and the process as it was after each test."""

from tests.server.conftest import logging_is_left_as_it_was, start

__all__ = ["logging_is_left_as_it_was", "start"]
