"""The supervision of a connection, with sessions that do as they are told, in no time."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
import trio.testing

from tests.tools.mcp_rig import context
from wsserver.engine.server_tools import ToolError
from wsserver.tools.mcp import server as mcp_server
from wsserver.tools.mcp.listing import MOST_TOOL_BYTES, MOST_TOOLS, Listed, Listing
from wsserver.tools.mcp.server import McpServer, News, NoAnswerError
from wsserver.tools.mcp.settings import McpSettings


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Under trio hours pass at once; only such tests may let them pass."""
    if request.param == "trio":
        clock = trio.testing.MockClock(autojump_threshold=0)
        return "trio", {"clock": clock}
    return "asyncio", {}


hours_pass = pytest.mark.parametrize("anyio_backend", ["trio"], indirect=True)


class FakeServer:
    """What sessions are made of.

    Attributes:
        listed: The tools it has.
        fault: Raised instead of connecting.
        opened: When sessions were opened.
        lists: How often it was asked for its tools.
        silent: It does not say which tools it has.
    """

    def __init__(self, *names: str) -> None:
        self.listed = [listed(name) for name in names]
        self.fault: BaseException | None = None
        self.opened: list[float] = []
        self.lists = 0
        self.silent = False
        self.session: FakeSession | None = None

    @asynccontextmanager
    async def connect(
        self, settings: McpSettings, news: News
    ) -> AsyncGenerator["FakeSession"]:
        del settings
        self.opened.append(anyio.current_time())
        if self.fault is not None:
            raise self.fault
        self.session = FakeSession(self, news)
        yield self.session


class FakeSession:
    def __init__(self, server: FakeServer, news: News) -> None:
        self.ended = False
        self.calls: list[Any] = []
        self._server = server
        self.news = news

    async def tools(self) -> Listing:
        self._server.lists += 1
        if self._server.silent:
            await anyio.sleep_forever()
        return Listing(tools=self._server.listed)

    async def call(
        self, name: str, arguments: dict[str, Any], progress: Callable[[], None]
    ) -> Any:
        del progress
        self.calls.append((name, arguments))
        if name == "lost":
            raise NoAnswerError("No.")
        if name == "bad":
            raise ToolError("no such city")
        if name == "slow":
            await anyio.sleep_forever()
        return "said"


def listed(name: str, description: str = "") -> Listed:
    parameters = {"type": "object"}
    return Listed(name=name, description=description, parameters=parameters)


@asynccontextmanager
async def supervised(fake: FakeServer, **members: Any) -> AsyncGenerator[McpServer]:
    settings = McpSettings(**{"name": "s", "prefix": "s_", **members})
    server = McpServer(settings, fake.connect)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.supervise)
        await anyio.wait_all_tasks_blocked()
        yield server
        tasks.cancel_scope.cancel()


async def call(server: McpServer, name: str) -> Any:
    return await server.run(name, {}, context())


async def test_a_call_goes_to_the_session_under_the_tools_own_name() -> None:
    fake = FakeServer("get.it")
    async with supervised(fake) as server:
        assert server.connected
        assert await call(server, "s_get_it") == "said"
        assert fake.session is not None
        assert fake.session.calls == [("get.it", {})]


@pytest.mark.parametrize(
    ("name", "asks"), [("lost", True), ("slow", True), ("bad", False), ("ok", False)]
)
async def test_after_a_call_without_an_answer_the_server_is_asked_for_its_tools(
    name: str, asks: bool
) -> None:
    fake = FakeServer("lost", "slow", "bad", "ok")
    async with supervised(fake) as server:
        assert fake.lists == 1
        with anyio.move_on_after(0.05):
            with suppress(ToolError):
                await call(server, f"s_{name}")
        await anyio.wait_all_tasks_blocked()
        assert fake.lists == 1 + asks
        assert server.connected
        assert len(fake.opened) == 1


@hours_pass
async def test_a_session_lasts(anyio_backend: Any) -> None:
    fake = FakeServer("a")
    async with supervised(fake) as server:
        await anyio.sleep(3600)
        assert server.connected
        assert len(fake.opened) == 1
        assert fake.lists == 1


@hours_pass
async def test_a_server_that_is_never_ready_is_connected_anew(
    anyio_backend: Any,
) -> None:
    fake = FakeServer("a")
    fake.silent = True
    async with supervised(fake) as server:
        await anyio.sleep(mcp_server.CONNECT_SECONDS - 1)
        assert len(fake.opened) == 1
        await anyio.sleep(2)
        assert len(fake.opened) == 2
        assert not server.connected


@hours_pass
async def test_one_that_falls_silent_is_connected_anew(anyio_backend: Any) -> None:
    fake = FakeServer("a")
    async with supervised(fake) as server:
        assert fake.session is not None
        fake.silent = True
        fake.session.news()
        await anyio.sleep(mcp_server.CHECK_SECONDS - 1)
        assert server.connected
        await anyio.sleep(1.1)
        assert not server.connected
        fake.silent = False
        await anyio.sleep(1)
        assert server.connected


@hours_pass
async def test_the_delay_grows_until_a_session_was_steady(anyio_backend: Any) -> None:
    fake = FakeServer("a")
    fake.fault = ExceptionGroup("x", [ExceptionGroup("y", [OSError("refused")])])
    async with supervised(fake) as server:
        await anyio.sleep(200)
        gaps = [b - a for a, b in zip(fake.opened, fake.opened[1:], strict=False)]
        assert gaps[:7] == pytest.approx([0.5, 1, 2, 4, 8, 16, 30])
        fake.fault = None
        await anyio.sleep(30)
        assert server.connected
        assert fake.session is not None
        await anyio.sleep(100)
        fake.session.ended = True
        fake.session.news()
        ended = anyio.current_time()
        await anyio.sleep(1)
        assert fake.opened[-1] - ended == pytest.approx(0.5)


@hours_pass
async def test_news_without_end_are_not_followed_without_end(
    anyio_backend: Any,
) -> None:
    fake = FakeServer("a")
    async with supervised(fake), anyio.create_task_group() as tasks:

        async def tell() -> None:
            assert fake.session is not None
            while True:
                fake.session.news()
                await anyio.sleep(0.001)

        tasks.start_soon(tell)
        await anyio.sleep(10)
        tasks.cancel_scope.cancel()
    assert fake.lists <= 102


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
async def test_a_cancellation_that_nobody_asked_for_ends_no_task_but_its_own(
    anyio_backend: Any,
) -> None:
    fake = FakeServer("a")
    fake.fault = asyncio.CancelledError()
    lives_on = False
    async with supervised(fake) as server:
        assert not server.connected
        lives_on = True
    assert lives_on


@hours_pass
async def test_nor_does_a_library_of_the_sdk_that_panics(anyio_backend: Any) -> None:
    class Panic(BaseException):
        """As of a library in Rust: no `Exception`."""

    fake = FakeServer("a")
    fake.fault = BaseExceptionGroup("tasks", [Panic("index out of bounds")])
    async with supervised(fake) as server:
        assert not server.connected
        fake.fault = None
        await anyio.sleep(60)
        assert server.connected


async def test_what_models_can_not_be_told_of_is_left_out() -> None:
    fake = FakeServer("a", "b", "b", "x" * 63)
    fake.listed.append(listed("huge", "x" * MOST_TOOL_BYTES))
    fake.listed += [listed(f"n{number}") for number in range(MOST_TOOLS)]
    async with supervised(fake) as server:
        names = list(server.names())
        assert names[:3] == ["s_a", "s_b", "s_n0"]
        assert len(names) == MOST_TOOLS


async def test_tools_of_a_server_that_is_down_stay_known() -> None:
    fake = FakeServer("a")
    async with supervised(fake) as server:
        assert fake.session is not None
        fake.fault = OSError("gone")
        fake.session.ended = True
        fake.session.news()
        await anyio.wait_all_tasks_blocked()
        assert not server.connected
        assert server.find("s_a") is not None
        assert server.find("s_b") is None
        with pytest.raises(ToolError, match="'s' can't be reached at the moment"):
            await call(server, "s_a")


async def test_what_is_left_out_is_reported_once_for_as_long_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[str, str]] = []

    def warning(event: str, *, server: str, tool: str, why: str) -> None:
        told.append((event, f"{server}: {tool} {why}"))

    monkeypatch.setattr(mcp_server.log, "warning", warning)
    fake = FakeServer("a", "a")
    async with supervised(fake) as server:
        assert set(server.names()) == {"s_a"}
        assert fake.session is not None

        async def asked_again(lists: int) -> None:
            assert fake.session is not None
            fake.session.news()
            with anyio.fail_after(5):
                while fake.lists < lists:
                    await anyio.sleep(0.01)
            await anyio.wait_all_tasks_blocked()

        report = ("mcp_tool_left_out", "s: a 'a' has the same name for models")
        assert told == [report]
        await asked_again(2)
        assert told == [report]
        fake.listed = [listed("a")]
        await asked_again(3)
        fake.listed = [listed("a")] * 3
        await asked_again(4)
        assert told == [report] * 2
        fake.listed = [
            listed("x" * 64 + str(n)) for n in range(mcp_server.MOST_REPORTED + 9)
        ]
        await asked_again(5)
        assert len(told) == 2 + 1
        fake.listed = [
            listed(f"{n}" + "x" * 64) for n in range(mcp_server.MOST_REPORTED + 9)
        ]
        await asked_again(6)
        assert len(told) == 2 + 1 + mcp_server.MOST_REPORTED
