"""The real server says on the wire what the scenarios let a server say."""

from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs
import orjson
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from protocol.generate.schema import json_schema
from tests.conformance.judge import Json
from tests.conformance.names import Names
from tests.fakes.plain_server import plain_server

ALL: list[Json] = orjson.loads((Path(__file__).parent / "live.json").read_bytes())
SERVER_FRAME = jsonschema_rs.Draft202012Validator(
    {"$ref": "#/$defs/ServerFrame", "$defs": json_schema()["$defs"]}, offline=True
)
PATIENCE_SECONDS = 10


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with plain_server() as address:
        yield f"ws://{address}/v1/chat"


class Wire:
    """A socket, and what is known of the frames that came."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._names = Names()
        self._last: dict[str, int] = {}

    def step(self, step: Json) -> None:
        ((kind, given),) = step.items()
        match kind:
            case "hello":
                self._say({"type": "hello", "protocol": 1})
                self._hear([{"type": "welcome"}])
            case "say":
                self._say(self._names.put_into(given))
            case "say_text":
                self._socket.send(given)
            case "hear":
                self._hear([given])
            case "hear_any_order":
                self._hear(given)
            case _:
                assert kind == "closed", step
                with pytest.raises(ConnectionClosed) as closed:
                    self._take()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == given

    def _say(self, frame: Json) -> None:
        if frame["type"] == "open":
            self._last[frame["conversation"]] = -1
        self._socket.send(orjson.dumps(frame).decode())

    def _hear(self, wanted: list[Json]) -> None:
        passed: list[Json] = []
        while wanted:
            try:
                frame = self._take()
            except TimeoutError:
                pytest.fail(f"{wanted} did not come, but {passed}")
            passed.append(frame)
            fitting = [each for each in wanted if self._names.fits(each, frame)]
            wanted = [each for each in wanted if each not in fitting[:1]]

    def _take(self) -> Json:
        frame = orjson.loads(self._socket.recv(timeout=PATIENCE_SECONDS))
        SERVER_FRAME.validate(frame)
        if "seq" in frame and frame["type"] not in {"caught_up", "reply"}:
            last = self._last[frame["conversation"]]
            first = frame.get("first", frame["seq"])
            assert last in {-1, first - 1}, f"a gap after {last}: {frame}"
            self._last[frame["conversation"]] = frame["seq"]
        return frame


@pytest.mark.parametrize("script", ALL, ids=lambda each: each["name"])
def test_the_server(script: Json, url: str) -> None:
    with connect(url, subprotocols=["wsserver.v1"]) as socket:  # type: ignore[list-item]
        wire = Wire(socket)
        for step in script["steps"]:
            wire.step(step)
