"""What operators read of commits in the log."""

import anyio
from structlog.testing import capture_logs

from tests.log.committing import committing, say
from wsserver.log.store import Meta, Write


async def test_a_store_that_fails_is_told_once_and_its_recovery_too() -> None:
    with capture_logs() as lines:
        async with committing() as r:
            log = r.log()
            for _ in range(2):
                r.store.failing = True
                say(log, "one")
                await anyio.sleep(0.3)
                assert r.failures >= 2
                r.store.failing = False
                await r.committer.flush()
    assert (
        lines
        == [
            {
                "event": "store_failing",
                "log_level": "warning",
                "error": "the disk is full",
            },
            {"event": "store_works_again", "log_level": "warning"},
        ]
        * 2
    )


async def test_a_write_that_does_not_fit_is_told_with_its_conversation() -> None:
    with capture_logs() as lines:
        async with committing() as r:
            meta = Meta(epoch="x", head=7, oldest=1, live=False, state=b"")
            await r.store.commit([Write(key="s/bad", meta=meta)], 1.0)
            say(r.log("s/bad"), "one")
            say(r.log("s/good"), "one")
            await r.committer.flush()
    (line,) = lines
    assert (line["event"], line["log_level"], line["key"]) == (
        "write_does_not_fit", "error", "s/bad"
    )  # fmt: skip
    assert line["error"].startswith("s/bad: ")
