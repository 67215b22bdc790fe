"""Plays all scenarios to a client that somebody else wrote.

    python -m tests.conformance COMMAND…

The command starts the client's driver, as docs/how-to/write-a-client.md describes it.
The exit status is 0 where it keeps every rule, 1 where not, 2 without a
command that can be started.
"""

import sys
from collections.abc import Sequence

from tests.conformance.judge import BrokenRuleError, Judge, scenarios
from tests.conformance.program_driver import ProgramDriver


def main(command: Sequence[str]) -> int:
    """Prints one line per scenario that failed, and how many did not."""
    if not command or command[0] in ("-h", "--help"):
        sys.stderr.write(__doc__ or "")
        return 2
    played = failed = 0
    try:
        driver = ProgramDriver(command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 2
    with driver:
        for scenario in scenarios():
            played += 1
            try:
                Judge(driver).play(scenario)
            except BrokenRuleError as broken:
                failed += 1
                rule = f"(the protocol's section: {scenario['rule']})"
                sys.stdout.write(f"FAILED {scenario['file']}: {broken} {rule}\n")
    sys.stdout.write(f"{played - failed} of {played} scenarios passed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
