"""C-17: every code that can get to an application is an exception of its own class."""

import re

import anyio
import pytest

from client_demo import CodedError, CommandError, TurnError, connect
from client_demo.errors import command_error, stop_error, turn_error
from protocol.codes import ERRORS, CloseCode, advice
from protocol.content import ErrorBody
from protocol.events import TurnErrorEvent
from tests.client_demo.double import Double


def test_the_classes_are_the_catalogue() -> None:
    assert set(CodedError.by_code) == set(ERRORS) - NEVER
    assert len(set(CodedError.by_code.values())) == len(CodedError.by_code)
    for code, kind in CodedError.by_code.items():
        scope = ERRORS[code].scope
        assert issubclass(kind, CommandError) == (scope != "turn"), code
        assert issubclass(kind, TurnError) == (scope != "command"), code
        assert kind.__doc__ == ERRORS[code].meaning


def test_what_to_do_is_said_in_the_words_of_an_application() -> None:
    for kind in CodedError.by_code.values():
        assert kind.remedy
        assert not re.search("frame|cursor|hello|same id|_ms", kind.remedy)


# The client sends the command again by itself,
AGAIN = {"draining", "rate_limited"}
# or makes what these are about, and makes it right.
OWN = {
    "bad_json",
    "unknown_type",
    "hello_required",
    "bad_cursor",
    "idempotency_conflict",
}
NEVER = AGAIN | OWN
REFUSALS = [
    code
    for code, error in ERRORS.items()
    if error.scope != "turn" and code not in AGAIN
]


@pytest.mark.parametrize("code", REFUSALS)
async def test_a_refused_command_raises_its_class(server: Double, code: str) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")

        async def refuse() -> None:
            send = await server.peer.command("send")
            await server.peer.refuse(
                send, code, message="the reason", retryable=True, retry_after_ms=1500,
                param="$.content",
            )  # fmt: skip

        tasks.start_soon(refuse)
        kind = CodedError.by_code.get(code, CommandError)
        with pytest.raises(kind) as caught:
            await chat.ask("hi")
    error = caught.value
    assert type(error) is kind
    assert (error.code, error.message, error.retryable) == (code, "the reason", True)
    assert (error.retry_after_seconds, error.param) == (1.5, "$.content")
    assert "the reason" in str(error)
    assert getattr(error, "__notes__", []) == [kind.remedy][: code not in OWN]
    assert kind.remedy not in str(error) or not kind.remedy


@pytest.mark.parametrize(
    "code", [code for code, error in ERRORS.items() if error.scope != "command"]
)
async def test_a_failed_turn_raises_its_class(server: Double, code: str) -> None:
    async with connect(server.url) as client, anyio.create_task_group() as tasks:
        chat = await client.open("c")

        async def fail() -> None:
            send = await server.peer.command("send")
            turn = await server.start("c", await server.message("c", send))
            await server.event(
                "c", "error", turn=turn, code=code, message="why", retryable=False
            )
            await server.done("c", turn, status="failed")

        tasks.start_soon(fail)
        with pytest.raises(CodedError.by_code[code]) as caught:
            await chat.ask("hi")
    assert isinstance(caught.value, TurnError)
    assert (caught.value.code, caught.value.message) == (code, "why")


def test_a_code_of_a_later_version_is_of_the_base_class() -> None:
    body = ErrorBody(code="brand_new", message="m", retryable=True)
    assert type(command_error(body)) is CommandError
    event = TurnErrorEvent(
        conversation="c", seq=1, turn=1, code="busy", message="m", retryable=True
    )
    assert type(turn_error(event)) is TurnError, "busy is no turn's error"


@pytest.mark.parametrize("code", sorted(CloseCode))
def test_every_close_that_stops_is_an_error(code: CloseCode) -> None:
    if advice(code) == "stop":
        assert str(int(code)) in str(stop_error(code, None))
