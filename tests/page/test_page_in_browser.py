"""What the page does with frames that no well-meaning server would send, and hands
that no program has: every frame is scripted, the browser is real."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from protocol.codes import ERRORS
from tests.page.scripted import ScriptedServer, proof

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]


def test_hostile_values_elsewhere_are_text_too(
    page: Page, server: ScriptedServer
) -> None:
    evil = '<img src=x onerror="window.hacked = 1">'
    server.start(server.ask(evil), model=evil)
    server.event("reasoning", text=evil)
    server.event("refusal", text=evil)
    call: dict[str, Any] = {"call": "x", "batch": 0, "index": 0, "deadline_at": evil}
    server.event("tool_call", name=evil, arguments={evil: evil}, **call)
    server.event("tool_result", call="x", status="error", output=evil, by=evil)
    server.event("error", code=evil, message=evil, retryable=False)
    server.done("failed", text=proof(""), reason=evil)
    expect(page.locator(".failure")).to_contain_text(evil)
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.hacked") is None


def test_enter_of_an_input_method_does_not_send(
    page: Page, server: ScriptedServer
) -> None:
    def press(**members: object) -> None:
        page.evaluate(
            """members => document.getElementById('input').dispatchEvent(
              new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true,
                ...members}))""",
            members,
        )

    page.fill("#input", "你好")
    press(isComposing=True)
    press(keyCode=229)
    press(shiftKey=True)
    assert page.input_value("#input") == "你好"
    press()
    assert page.input_value("#input") == ""
    assert server.last("send")["content"] == "你好"
    page.fill("#input", "   ")
    press()
    assert server.last("send")["content"] == "你好"


def test_the_reader_is_never_pulled_down(page: Page, server: ScriptedServer) -> None:
    def top() -> int:
        page.evaluate(
            "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
        )
        return page.evaluate(
            "Math.round(document.getElementById('scroller').scrollTop)"
        )

    def at_end() -> bool:
        return page.evaluate(
            """() => { const it = document.getElementById('scroller');
              return it.scrollHeight - it.scrollTop - it.clientHeight <= 2; }"""
        )

    def more(times: int) -> None:
        server.event("delta", text="More.\n\n" * times)
        nonlocal lines
        lines += times
        expect(page.locator(".markdown p")).to_have_count(lines)

    lines = 60
    server.start(server.ask("hi"))
    server.event("delta", text="A line.\n\n" * lines)
    expect(page.locator(".markdown p")).to_have_count(lines)
    top()
    assert at_end()
    expect(page.locator("#to-end")).to_be_hidden()
    page.mouse.move(600, 300)
    page.mouse.wheel(0, -30)
    expect(page.locator("#to-end")).to_be_visible()
    before = top()
    for _ in range(20):
        more(1)
        assert top() == before
    page.click("#to-end")
    top()
    assert at_end()
    more(5)
    top()
    assert at_end()
    page.mouse.wheel(0, -300)
    expect(page.locator("#to-end")).to_be_visible()
    page.mouse.move(600, 100)
    page.mouse.wheel(0, 3_000)
    expect(page.locator("#to-end")).to_be_hidden()


def test_the_pages_own_scrolling_takes_no_hold(
    page: Page, server: ScriptedServer
) -> None:
    """The key comes between the page's scrolling and the event that tells of it."""
    server.start(server.ask("hi"))
    server.event("delta", text="A line.\n\n" * 60)
    expect(page.locator(".markdown p")).to_have_count(60)
    page.evaluate(
        """() => new Promise(requestAnimationFrame).then(() => {
          const scroller = document.getElementById('scroller');
          scroller.dispatchEvent(new KeyboardEvent('keydown', {key: 'PageUp'}));
          scroller.dispatchEvent(new Event('scroll'));
        })"""
    )
    expect(page.locator("#to-end")).to_be_visible()
    server.event("delta", text="More.\n\n" * 5)
    expect(page.locator(".markdown p")).to_have_count(65)
    expect(page.locator("#to-end")).to_be_visible()


def test_every_error_says_why(page: Page, server: ScriptedServer) -> None:
    held = {"draining", "rate_limited"}  # sent again by themselves
    for code in [c for c, e in ERRORS.items() if e.scope != "turn" and c not in held]:
        page.fill("#input", f"Refused as {code}")
        page.click("#send")
        reply = {"code": code, "message": f"Why it is {code}.", "retryable": False}
        server.reply(server.last("send"), {"ok": False, "error": reply})
        expect(page.locator(".refused .note")).to_contain_text(reply["message"])
        page.get_by_role("button", name="Discard").click()
    for code in [c for c, e in ERRORS.items() if e.scope != "command"]:
        server.start(server.ask("hi"))
        message = f"Why it is {code}."
        server.event("error", code=code, message=message, retryable=False)
        server.done("failed")
        expect(page.locator(".failure").last).to_contain_text(f"{message} {code}")


def test_a_refused_send_can_be_sent_again_or_discarded(
    page: Page, server: ScriptedServer
) -> None:
    def refuse() -> str:
        command = server.last("send")
        error = {"code": "queue_full", "message": "Too many wait.", "retryable": True}
        server.reply(command, {"ok": False, "error": error})
        return command["id"]

    page.fill("#input", "One too many")
    page.click("#send")
    first = refuse()
    expect(page.locator(".refused .note")).to_contain_text("Too many wait.")
    page.get_by_role("button", name="Send again").click()
    assert refuse() == first
    assert len([each for each in server.received if each["type"] == "send"]) == 2
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".message")).to_have_count(0)


def test_a_version_that_can_not_be_made_says_why(
    page: Page, server: ScriptedServer
) -> None:
    server.start(server.ask("hi"))
    server.event("delta", text="Hello")
    server.done(text=proof("Hello"))
    page.get_by_role("button", name="Regenerate").click()
    expect(page.locator(".ending")).to_have_text("complete")
    command = server.last("fork")
    assert (command["through"], command["conversation"]) == (0, server.conversation)
    error = {"code": "bad_frame", "message": "It is not kept.", "retryable": False}
    server.reply(command, {"ok": False, "error": error})
    expect(page.locator("#notice")).to_have_text("It is not kept.")
    expect(page.locator(".versions")).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_token_is_asked_for_when_the_server_wants_one(
    page: Page, server: ScriptedServer, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    message = "The credentials are missing."
    server.say(
        {
            "type": "error",
            "code": "unauthorized",
            "message": message,
            "retryable": False,
        }
    )
    server.close(4401, "unauthorized")
    expect(page.locator("#connection-text")).to_have_text(message)
    expect(page.locator("#token")).to_be_focused()
    expect(page.locator("#token")).to_be_in_viewport()
    page.fill("#token", "s3cret")
    page.keyboard.press("Enter")
    expect(page.locator("#connection")).to_have_attribute("data-state", "online")
    assert server.last("hello")["token"] == "s3cret"  # noqa: S105
    assert "s3cret" not in page.url


def test_a_cut_takes_text_away_again(page: Page, server: ScriptedServer) -> None:
    server.start(server.ask("hi"))
    seen = server.event("delta", text="Kept **this**")
    expect(page.locator(".markdown strong")).to_have_text("this")
    server.event("delta", text=" and not this.")
    expect(page.locator(".markdown")).to_have_text("Kept this and not this.")
    kept = proof("Kept **this**")
    server.event("cut", keep_through=seen, by="me", text=kept)
    server.done("interrupted", reason="by_client", text=kept)
    expect(page.locator(".markdown")).to_have_text("Kept this")
    expect(page.locator(".wrong")).to_have_count(0)


def test_of_a_turn_that_a_restart_cut_off_no_times_are_told(
    page: Page, server: ScriptedServer
) -> None:
    server.start(server.ask("hi"))
    server.event("delta", text="Hello")
    server.done(
        "incomplete",
        reason="server_restarted",
        text=proof("Hello"),
        timing={"queue_ms": 0, "total_ms": 0},
    )
    expect(page.locator(".ending")).to_have_text("cut off by a server restart")
    expect(page.locator(".facts")).not_to_contain_text("in all")


def test_stop_tells_what_was_on_the_screen(page: Page, server: ScriptedServer) -> None:
    server.start(server.ask("hi"))
    seen = server.event("delta", text="Shown.")
    expect(page.locator(".markdown")).to_have_text("Shown.")
    page.evaluate("new Promise(requestAnimationFrame)")
    page.keyboard.press("Escape")
    command = server.last("interrupt")
    assert (command["turn"], command["seen_seq"]) == (server.turn, seen)


def test_a_wrong_text_is_called_wrong(page: Page, server: ScriptedServer) -> None:
    server.start(server.ask("hi"))
    server.event("delta", text="Lost the en")
    server.done(text=proof("Lost the end"))
    expect(page.locator(".wrong")).to_be_visible()


def test_a_reader_with_a_voice_hears_ends_and_not_tokens(
    page: Page, server: ScriptedServer
) -> None:
    announcer = page.locator("#announcer")
    expect(announcer).to_have_text("Connected.")
    server.start(server.ask("hi"))
    server.event("delta", text="**One** two")
    expect(page.locator(".markdown")).to_have_text("One two")
    expect(announcer).to_have_text("Connected.")
    server.done(text=proof("**One** two"))
    expect(announcer).to_have_text("Answer complete. One two")
