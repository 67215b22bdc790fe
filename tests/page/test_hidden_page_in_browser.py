"""A page that nobody looks at: browsers slow its timers down and draw nothing."""

import zlib
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.page.scripted import ScriptedServer

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]

# Headless chromium shows every page; this does to one what a hidden tab undergoes.
HIDING = """
  let hidden = false;
  const waiting = [];
  const draw = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = run => hidden ? waiting.push(run) : draw(run);
  for (const [name, of] of [['hidden', () => hidden],
                            ['visibilityState', () => hidden ? 'hidden' : 'visible']])
    Object.defineProperty(document, name, { get: of });
  window.hide = wanted => {
    hidden = wanted;
    document.dispatchEvent(new Event('visibilitychange'));
    if (!hidden) waiting.splice(0).forEach(draw);
  };
"""
MINUTE_MS = 60_000
CHUNK = "Words of an answer. \n" * 780
CHUNKS_A_MEGABYTE = 64


@pytest.fixture
def open_page(page: Page, address: str) -> Callable[[], ScriptedServer]:
    def open_page() -> ScriptedServer:
        server = ScriptedServer(page)
        page.add_init_script(HIDING)
        server.load(address)
        expect(page.locator(".empty")).to_be_visible()
        return server

    return open_page


def hide(page: Page, *, hidden: bool) -> None:
    page.evaluate("hidden => hide(hidden)", hidden)


def pings(server: ScriptedServer) -> int:
    return sum(frame["type"] == "ping" for frame in server.received)


def let_hear(page: Page, server: ScriptedServer) -> None:
    """Waits until the page has heard all that was said to it, drawn or not: the answer
    to its last ping comes behind, and tells of the way there and back."""
    pong = {"type": "pong", "t": server.last("ping")["t"]}
    server.say(pong | {"server_time": "2026-01-01T00:00:00.000Z"})
    expect(page.locator("#connection-text")).to_contain_text("Connected · ")


def test_a_hidden_page_makes_no_verdict_of_its_own(
    page: Page, open_page: Callable[[], ScriptedServer]
) -> None:
    page.clock.install()
    server = open_page()
    hide(page, hidden=True)
    for _ in range(5):
        page.clock.fast_forward(MINUTE_MS)  # each timer fires at most once
    assert len(server.sockets) == 1
    before = pings(server)
    hide(page, hidden=False)
    page.wait_for_function("() => !document.hidden")
    assert pings(server) == before + 1
    let_hear(page, server)
    page.clock.fast_forward(10_000)
    expect(page.locator("#connection")).to_have_attribute("data-state", "online")
    assert len(server.sockets) == 1


def heap_bytes(page: Page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    session.detach()
    return next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize")


def test_the_memory_of_a_hidden_page_is_bounded(
    page: Page, open_page: Callable[[], ScriptedServer]
) -> None:
    """Ten minutes of 1 MB each: what is not on the screen is not acknowledged, so the
    server holds it back; on return it is drawn at once, in few frames."""
    server = open_page()
    window = server.last("open")["window_bytes"]
    server.start(server.ask("hi"))
    expect(page.locator(".turn .waiting")).to_be_visible()
    hide(page, hidden=True)
    before = heap_bytes(page)
    held_back, unacknowledged = "", 0
    for _ in range(10 * CHUNKS_A_MEGABYTE):
        if unacknowledged < window:
            server.event("delta", text=CHUNK)
            unacknowledged += len(CHUNK)
        else:
            held_back += CHUNK
    let_hear(page, server)
    assert [frame for frame in server.received if frame["type"] == "ack"] == []
    assert heap_bytes(page) - before < 4 * window
    expect(page.locator(".turn .markdown")).to_have_count(0)
    seen = server.seq
    hide(page, hidden=False)
    expect(page.locator(".turn .markdown")).to_contain_text("Words of an answer.")
    page.wait_for_function("() => new Promise(requestAnimationFrame).then(() => true)")
    assert server.last("ack")["seq"] == seen
    rest = held_back[:window]
    server.event("delta", text=rest)
    text = "".join(event.get("text", "") for event in server.events)
    server.done(text={"bytes": len(text), "crc32": zlib.crc32(text.encode())})
    expect(page.locator(".ending")).to_have_text("complete")
    expect(page.locator(".wrong")).to_have_count(0)


def test_an_answer_that_came_unseen_is_in_the_title(
    page: Page, open_page: Callable[[], ScriptedServer]
) -> None:
    server = open_page()
    server.start(server.ask("hi"))
    server.event("delta", text="Done.")
    expect(page.locator(".markdown")).to_have_text("Done.")
    hide(page, hidden=True)
    server.done(text={"bytes": 5, "crc32": zlib.crc32(b"Done.")})
    expect(page).to_have_title("● hi · wsserver")
    hide(page, hidden=False)
    expect(page).to_have_title("hi · wsserver")
