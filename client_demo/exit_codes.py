"""How the programs tell the shell what came of it; `load` has codes of its own."""

COMPLETE = 0
FAILED = 1
"""The answer failed, or the server refused."""
WRONG_USAGE = 2
"""Typer's own code for that, too."""
INCOMPLETE = 3
"""The answer was interrupted or cut short."""
NO_CONNECTION = 4
