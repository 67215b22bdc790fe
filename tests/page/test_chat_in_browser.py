"""The chat page in a real browser, against the real server and its demo models."""

import re
from collections.abc import Callable
from statistics import median

import orjson
import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.page.tunnel import Tunnel

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]

ENDLESS_ANSWER = "demo/long:tokens=200000,tokens_per_second=100"
"""It runs until it is stopped, however slow the page is."""
STOPPED = re.compile(r"^stopped in .+ m?s$")
QUICK_ANSWER = "demo/markdown:tokens_per_second=1000"


def visit(page: Page, address: str, model: str | None = None) -> None:
    if model is not None:
        look = orjson.dumps({"model": model}).decode()
        script = f"localStorage.setItem('wsserver.look', {look!r})"
        page.add_init_script(script)
    page.goto(address)
    expect(page.locator("#connection")).to_have_attribute("data-state", "online")


def ask(page: Page, text: str) -> None:
    page.fill("#input", text)
    page.keyboard.press("Enter")


def text_grows(page: Page, times: int = 3) -> None:
    """Waits until the last answer has grown so many times from now on."""
    page.evaluate("window.seenLengths = new Set()")
    page.wait_for_function(
        """times => {
          const text = document.querySelector('.turn:last-of-type .markdown')?.textContent ?? '';
          seenLengths.add(text.length);
          return seenLengths.size > times;
        }""",
        arg=times,
    )


def answer(page: Page) -> str:
    return page.locator(".turn .markdown").last.inner_text()


def complete(page: Page, *endings: str | re.Pattern[str]) -> None:
    """All answers ended, well unless said otherwise, each with the server's text."""
    expected: list[str | re.Pattern[str]] = list(endings) or ["complete"]
    expect(page.locator(".turn .ending")).to_have_text(expected, timeout=20_000)
    expect(page.locator(".wrong")).to_have_count(0)


def test_an_answer_streams_and_says_how_fast(page: Page, address: str) -> None:
    visit(page, address, "demo/markdown:tokens_per_second=400")
    expect(page.locator(".empty")).to_be_visible()
    ask(page, "What can I try here?")
    text_grows(page, times=1)
    complete(page)
    expect(page.locator(".turn h2")).to_have_text("What can I try here?")
    expect(page.locator(".turn table td").first).to_have_text("demo/tools")
    facts = page.locator(".facts").inner_text()
    assert all(word in facts for word in ("first token", "tokens/s", "in all")), facts
    expect(page.locator("#conversations .title")).to_have_text("What can I try here?")


def test_stop_stops_what_is_seen(page: Page, address: str) -> None:
    visit(page, address, ENDLESS_ANSWER)
    ask(page, "Go on and on")
    text_grows(page)
    page.click("#stop")
    expect(page.locator(".ending")).to_have_text(STOPPED)
    expect(page.locator(".facts")).to_contain_text("the model let go after")
    expect(page.locator(".facts")).to_contain_text("characters saved")
    expect(page.locator("#stop")).to_be_hidden()
    expect(page.locator(".wrong")).to_have_count(0)
    kept = answer(page)
    saved = re.search(r"(\d+) characters saved", page.locator(".facts").inner_text())
    assert saved is not None
    assert int(saved[1]) >= len(kept), "Markdown has more characters than its text"
    page.reload()
    expect(page.locator(".ending")).to_have_text("stopped")
    assert answer(page) == kept


def test_a_dropped_socket_resumes(page: Page, address: str) -> None:
    tunnel = Tunnel(page)
    visit(page, address, ENDLESS_ANSWER)
    ask(page, "Go on while I am away")
    text_grows(page)
    before = answer(page)
    tunnel.close()
    page.click("#drop")
    expect(page.locator("#connection")).to_have_attribute("data-state", "waiting")
    expect(page.locator("#connection-text")).to_contain_text("again in")
    tunnel.open()
    expect(page.locator("#connection")).to_have_attribute("data-state", "online")
    text_grows(page)
    assert answer(page).startswith(before)
    page.click("#stop")
    complete(page, STOPPED)


def test_a_message_written_offline_goes_out_once(page: Page, address: str) -> None:
    tunnel = Tunnel(page)
    visit(page, address, QUICK_ANSWER)
    tunnel.close()
    page.click("#drop")
    ask(page, "Said into the void")
    expect(page.locator(".unsent .note")).to_have_text("goes out when connected")
    tunnel.open()
    page.reload()
    complete(page)
    expect(page.locator(".message p.plain")).to_have_text(["Said into the void"])


def test_a_reload_in_mid_answer_goes_on(page: Page, address: str) -> None:
    visit(page, address, ENDLESS_ANSWER)
    ask(page, "Go on while I reload")
    text_grows(page)
    before = answer(page)
    page.reload()
    text_grows(page)
    assert answer(page).startswith(before)
    page.click("#stop")
    complete(page, STOPPED)


def test_two_tabs_see_the_same(new_page: Callable[[], Page], address: str) -> None:
    first, second = new_page(), new_page()
    visit(first, address, ENDLESS_ANSWER)
    ask(first, "Seen twice")
    visit(second, address)
    text_grows(second)
    first.click("#stop")
    complete(first, STOPPED)
    complete(second, "stopped")
    assert answer(first) == answer(second)
    second.select_option("#model", "demo/echo")
    ask(second, "From the other tab")
    complete(first, STOPPED, "complete")


def test_a_tool_runs_in_the_page(page: Page, address: str) -> None:
    visit(page, address)
    ask(page, "What time is it in Tokyo and in Atlantis?")
    expect(page.locator(".tool .name")).to_have_text(["get_time", "get_time"])
    expect(page.locator(".tool .state")).to_have_text(["done", "failed"])
    complete(page)
    page.locator(".tool summary").first.click()
    expect(page.locator(".tool pre").nth(1)).to_contain_text("Asia/Tokyo")


def test_conversations_keep_apart(new_page: Callable[[], Page], address: str) -> None:
    page, other = new_page(), new_page()
    visit(page, address, ENDLESS_ANSWER)
    ask(page, "First one")
    text_grows(page)
    page.click("#new")
    expect(page.locator(".empty")).to_be_visible()
    page.select_option("#model", "demo/echo")
    ask(page, "Second one")
    complete(page)
    expect(page.locator("#conversations li")).to_have_count(2)
    first = page.locator("#conversations li", has_text="First one")
    expect(first).to_have_attribute("data-state", "busy")
    visit(other, address)
    other.locator("#conversations li", has_text="First one").click()
    other.click("#stop")
    expect(first).to_have_attribute("data-state", "news")
    complete(page)
    expect(page.locator(".message p.plain")).to_have_text(["Second one"])
    first.click()
    expect(page.locator(".message p.plain")).to_have_text(["First one"])
    complete(page, "stopped")


def test_a_lost_end_keeps_one_conversation_busy(page: Page, address: str) -> None:
    lost: list[str] = []

    def pass_on(socket: WebSocketRoute) -> None:
        def down(frame: str | bytes) -> None:
            if not lost and '"type":"done"' in str(frame) and first_id in str(frame):
                lost.append(str(frame))
            else:
                socket.send(frame)

        socket.connect_to_server().on_message(down)

    page.route_web_socket("**/v1/chat", pass_on)
    visit(page, address, QUICK_ANSWER)
    first_id = page.url.split("#")[1]
    ask(page, "First one")
    expect(page.locator(".turn .markdown")).not_to_be_empty()
    page.click("#new")
    ask(page, "Second one")
    first = page.locator("#conversations li", has_text="First one")
    complete(page)
    assert len(lost) == 1
    expect(first).to_have_attribute("data-state", "busy")
    page.click("#drop")
    expect(first).to_have_attribute("data-state", "news")
    first.click()
    complete(page)


def test_a_message_waits_its_turn_or_is_taken_back(page: Page, address: str) -> None:
    visit(page, address, ENDLESS_ANSWER)
    ask(page, "First")
    text_grows(page)
    ask(page, "Second")
    ask(page, "Third")
    notes = page.locator(".message .note:visible")
    expect(notes).to_have_count(2)
    notes.last.get_by_role("button", name="Take back").click()
    expect(page.locator(".message.void")).to_have_count(1)
    page.select_option("#model", "demo/echo")
    page.click("#stop")
    complete(page, STOPPED, "complete", "stopped before it began")
    expect(page.locator(".message p.plain")).to_have_text(["First", "Second", "Third"])


def test_deleting_leaves_nothing(page: Page, address: str) -> None:
    visit(page, address, QUICK_ANSWER)
    ask(page, "Forget this")
    complete(page)
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("#conversations li").hover()
    page.click("#conversations .delete")
    expect(page.locator(".empty")).to_be_visible()
    expect(page.locator("#conversations .title")).to_have_text("New chat")
    page.reload()
    expect(page.locator(".empty")).to_be_visible()


def test_the_model_can_be_changed(page: Page, address: str) -> None:
    visit(page, address, QUICK_ANSWER)
    page.select_option("#model", "demo/reasoning")
    ask(page, "Think about it")
    complete(page)
    expect(page.locator(".turn .model")).to_have_text("demo/reasoning")
    expect(page.locator(".reasoning summary")).to_have_text("Thoughts")
    assert page.locator(".reasoning").get_attribute("open") is None


def test_a_failure_says_why(page: Page, address: str) -> None:
    visit(page, address, "demo/failing-late")
    ask(page, "Fail")
    expect(page.locator(".ending")).to_have_text("failed")
    expect(page.locator(".failure")).to_contain_text("upstream_error")


def test_ten_thousand_tokens_do_not_hold_the_page_up(page: Page, address: str) -> None:
    """A frame at the end of the answer takes as long as one at its beginning."""
    visit(page, address, "demo/fast:tokens=10000,tokens_per_second=2500")
    page.evaluate(
        """() => {
          window.frameTimes = [];
          let last = performance.now();
          const frame = () => {
            if (!document.getElementById("stop").hidden)
              frameTimes.push(performance.now() - last);
            last = performance.now();
            requestAnimationFrame(frame);
          };
          requestAnimationFrame(frame);
        }"""
    )
    ask(page, "Write a book")
    complete(page)
    assert "10,000 tokens" in page.locator(".facts").inner_text()
    times = page.evaluate("frameTimes")
    tenth = len(times) // 10
    early, late = median(times[:tenth]), median(times[-tenth:])
    assert late < 5 * early + 34, (early, late, "and two frames of a screen")
