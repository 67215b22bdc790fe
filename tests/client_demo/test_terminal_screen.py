"""What the terminal shows while a turn runs, on a clock of the test's own."""

from io import StringIO

import anyio
from rich.console import Console

from client_demo.tasks import task_group
from client_demo.terminal.screen import Screen
from protocol.control import Waiting
from tests.client_demo.load.log import AT, event


def test_the_time_of_a_turn_that_a_restart_cut_off_is_not_told() -> None:
    shown = StringIO()
    screen = Screen(Console(file=shown))
    for reason, times in (("server_shutdown", 1), ("server_restarted", 0)):
        done = event(
            "done", 3, turn=2, status="incomplete", reason=reason,
            text={"bytes": 0, "crc32": 0}, timing={"queue_ms": 0, "total_ms": 2100},
        )  # fmt: skip
        with screen.begin() as live:
            screen.show(live, done)
        said = shown.getvalue().splitlines()[-1]
        assert said.startswith(f"incomplete ({reason})")
        assert said.count("2.1 s") == times


async def test_a_wait_is_counted_until_something_comes() -> None:
    screen = Screen(Console(file=StringIO(), force_terminal=True))
    start = event("start", 2, turn=2, message=1, model="m\x1b", request_id="r", at=AT)
    thought = event("reasoning", 3, turn=2, text="hm")
    async with task_group() as tasks:
        with screen.begin() as live:
            tasks.start_soon(screen.keep_waiting, live)
            screen.show(live, start)
            assert live.status == "", "most answers begin sooner"
            await anyio.sleep(3.5)
            assert live.status == "waiting for m, 3 s"
            screen.waiting(
                Waiting(conversation="c", turn=2, phase="retry_wait", elapsed_ms=70_000)
            )
            assert live.status == "retry wait, 70 s"
            await anyio.sleep(2)
            assert live.status == "retry wait, 72 s"
            screen.show(live, thought)
            assert live.status == "hm"
            await anyio.sleep(2)
            assert live.status == "hm"
        screen.end()
