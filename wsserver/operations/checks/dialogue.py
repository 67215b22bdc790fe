"""A short conversation with a server that tells how the way there behaves."""

import secrets
from datetime import UTC, datetime
from typing import Any

import anyio
import orjson
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from protocol.codes import CloseCode
from protocol.frame_error import FrameError
from protocol.ids import VERSION
from wsserver import __version__
from wsserver.operations.checks.findings import Finding, Tell, fail, ok, warn
from wsserver.operations.checks.machine import judge_skew
from wsserver.operations.counted import counted
from wsserver.operations.server_frame import Frame, read_frame

ANSWER_SECONDS = 10.0

_TOKENS = 60
_TOKENS_PER_SECOND = 60.0
_MODEL = f"demo/long:tokens={_TOKENS},tokens_per_second={_TOKENS_PER_SECOND:g}"


class _RefusedError(Exception):
    """A command was answered with an error."""


class Dialogue:
    """One visit over one connection."""

    def __init__(self, connection: ClientConnection, tell: Tell) -> None:
        self._connection = connection
        self._tell = tell
        self._conversation = f"doctor-{secrets.token_hex(8)}"
        self._heartbeat_seconds = 0.0

    async def hold(self, token: str | None, idle_seconds: float) -> None:
        """Says hello, asks a demo model, stays silent for a while, says goodbye.

        Args:
            token: Credentials; None for none.
            idle_seconds: How long to stay silent.
        """
        try:
            await self._greet(token)
            try:
                await self._stream()
            except _RefusedError as error:
                remedy = "use credentials that may send, to have this looked at too"
                self._tell(warn("streaming", f"not tried: {error}", remedy))
            if idle_seconds:
                await self._stay_silent(idle_seconds)
        except ConnectionClosed as closed:
            self._tell(_ended(closed))
        except FrameError as error:
            says = f"what answers does not speak the protocol: {error.message}"
            remedy = "does the URL lead to a wsserver, of this version?"
            self._tell(fail("websocket", says, remedy))
        except TimeoutError:
            remedy = "look into the server's log, and into the proxy's"
            self._tell(fail("websocket", "the server does not answer", remedy))

    async def _greet(self, token: str | None) -> None:
        hello: Frame = {
            "type": "hello",
            "protocol": VERSION,
            "client": {"name": "wsserver-doctor", "version": __version__},
        }
        if token is not None:
            hello["token"] = token
        await self._say(hello)
        welcome = await self._until("welcome")
        self._heartbeat_seconds = welcome["heartbeat_ms"] / 1000
        server = welcome["server"]
        says = f"{server['name']} {server.get('version', '')}".rstrip()
        self._tell(ok("welcome", f"{says}, heartbeat {self._heartbeat_seconds:g} s"))
        await self._say({"type": "ping"})
        pong = await self._until("pong")
        try:
            there = datetime.fromisoformat(pong["server_time"])
            skew = (there - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):  # the latter where it names no zone
            raise FrameError(
                "bad_frame", "`server_time` is not a time in UTC."
            ) from None
        self._tell(judge_skew(skew))

    async def _stream(self) -> None:
        """Lets a demo model talk for a second, and looks at when its words come."""
        await self._command("open", config={"model": _MODEL})
        try:
            await self._command("send", content="hello")
            moments: list[float] = []
            while (frame := await self._next())["type"] != "done":
                if frame["type"] == "delta":
                    moments.append(anyio.current_time())
            self._tell(judge_stream(moments))
        finally:
            await self._command("delete")

    async def _stay_silent(self, seconds: float) -> None:
        """Sends nothing; what the server sends, and the answers to pings, go on."""
        began = anyio.current_time()
        heartbeats = 0
        try:
            with anyio.move_on_after(seconds):
                while True:
                    frame = read_frame(await self._connection.recv())
                    heartbeats += frame["type"] == "ping"
        except ConnectionClosed as closed:
            lasted = anyio.current_time() - began
            self._tell(_cut(lasted, self._heartbeat_seconds, _code(closed)))
            return
        says = f"lasted {seconds:g} s of silence, heartbeats: {heartbeats}"
        self._tell(ok("idle", says))

    async def _command(self, kind: str, **members: Any) -> Frame:
        name = f"{kind}-{secrets.token_hex(4)}"
        await self._say(
            {"type": kind, "id": name, "conversation": self._conversation, **members}
        )
        while (reply := await self._until("reply"))["re"] != name:
            pass
        if not reply["ok"]:
            raise _RefusedError(reply["error"]["message"])
        return reply

    async def _say(self, frame: Frame) -> None:
        await self._connection.send(orjson.dumps(frame).decode())

    async def _until(self, kind: str) -> Frame:
        while (frame := await self._next())["type"] != kind:
            pass
        return frame

    async def _next(self) -> Frame:
        with anyio.fail_after(ANSWER_SECONDS):
            return read_frame(await self._connection.recv())


def judge_stream(moments: list[float]) -> Finding:
    """Says what it means that parts of a one-second answer came at these times."""
    spread = moments[-1] - moments[0] if moments else 0.0
    parts = counted(len(moments), "part")
    says = f"an answer of {_TOKENS / _TOKENS_PER_SECOND:g} s came in {parts}"
    if spread < 0.5 * _TOKENS / _TOKENS_PER_SECOND:
        return warn(
            "streaming",
            f"{says} within {spread * 1000:.0f} ms: something gathers it",
            "switch off buffering in the proxy (nginx: proxy_buffering off)",
        )
    return ok("streaming", f"{says} over {spread * 1000:.0f} ms")


def _cut(lasted: float, heartbeat: float, code: int | None) -> Finding:
    """Says what it means that a silent connection lasted so long."""
    says = f"cut after {lasted:.0f} s of silence ({code or 'no close frame'})"
    if code == CloseCode.DEAD:
        remedy = "something on the way drops pings or pongs: let it pass control frames"
    elif lasted < heartbeat:
        remedy = (
            f"set heartbeat_seconds below {lasted:.0f}, or the proxy's idle time"
            f" above {heartbeat:g} s (nginx: proxy_read_timeout)"
        )
    else:
        remedy = (
            f"something counts only what the client sends, though the server sends"
            f" each {heartbeat:g} s: raise its idle time (nginx: proxy_send_timeout)"
        )
    return fail("idle", says, remedy)


def _ended(closed: ConnectionClosed) -> Finding:
    match code := _code(closed):
        case CloseCode.UNAUTHORIZED | CloseCode.FORBIDDEN:
            says = "the server does not know the credentials, or there were none"
            remedy = (
                "give --token, or set WSSERVER_TOKEN; where one was given,"
                " the server's log says what is wrong with it"
            )
            return fail("welcome", says, remedy)
        case _:
            says = f"closed in the middle ({code or 'no close frame'})"
            return fail(
                "websocket", says, "look into the proxy's log, and the server's"
            )


def _code(closed: ConnectionClosed) -> int | None:
    return None if closed.rcvd is None else closed.rcvd.code
