"""What operators read of connections in the log."""

from typing import Any

from structlog.testing import capture_logs

from tests.connections.wire import Tokens, connected
from tests.fakes.rig import rig
from tests.fakes.scripted import ScriptedProvider, says


def server(**members: Any) -> Any:
    return rig(ScriptedProvider(says("Hello")), **members)


async def test_who_is_not_let_in_and_why() -> None:
    with capture_logs() as lines:
        async with (
            server() as r,
            connected(r, authority=Tokens(), hello=False) as client,
        ):
            client.say("hello", protocol=1, token="SECRET123")  # noqa: S106
            assert (await client.ended())[0] == 4401
    assert [line for line in lines if line["event"] == "unauthorized"] == [
        {"event": "unauthorized", "log_level": "info", "about": "not known"}
    ]
    assert "SECRET" not in str(lines)


async def test_a_cursor_that_is_ahead() -> None:
    with capture_logs() as lines:
        async with server() as r, connected(r) as client:
            await client.ask("open", conversation="c")
            reply = await client.ask("open", conversation="c", after=7)
            assert reply["reason"] == "seq_ahead"
    assert [line for line in lines if line["event"] == "cursor_ahead"] == [
        {"event": "cursor_ahead", "log_level": "warning", "key": "local/c", "head": 0}
    ]
