"""Whose cancellation it is, where the application's code is called.

A function may raise the exception of a cancellation that nobody asked for here: it
waited for a task that somebody else had cancelled. In a task group of this client that
would end everything, without a word.
"""

from math import inf

import anyio


def is_cancelled() -> bool:
    """Whether the task that asks has been cancelled, and so has to end."""
    return anyio.current_effective_deadline() == -inf
