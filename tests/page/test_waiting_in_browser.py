"""Between a message and the first word of its answer the page says what it waits for."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.scripted import ScriptedServer

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]


def test_a_wait_says_for_what_and_how_long(page: Page, server: ScriptedServer) -> None:
    line, announcer = page.locator(".waiting"), page.locator("#announcer")
    server.start(server.ask("hi"))
    expect(line).to_be_visible()
    expect(line).to_have_text("")
    expect(line).to_have_text(re.compile("^waiting for demo/markdown[1-9] s$"))
    expect(announcer).to_have_text("Waiting for demo/markdown.")
    expect(line).to_have_text(re.compile("[2-9] s$"))
    waiting = {"type": "waiting", "conversation": server.conversation}
    waiting |= {"turn": server.turn, "elapsed_ms": 72_000}
    server.say(waiting | {"phase": "retry_wait"})
    said = "the model is busy, trying again"
    expect(line).to_have_text(re.compile(f"^{said}1 min 1[2-9] s$"))
    expect(announcer).to_have_text("The model is busy, trying again.")
    server.event("delta", text="Yes.")
    expect(line).to_be_hidden()


def test_what_a_voice_reads_has_no_seconds(page: Page, server: ScriptedServer) -> None:
    server.start(server.ask("hi"))
    expect(page.locator(".waiting .elapsed")).to_have_text(re.compile("s$"))
    spoken = page.locator(".turn").aria_snapshot()
    assert "waiting for demo/markdown" in spoken
    assert not re.search(r"\d s\b", spoken)


def test_a_wait_goes_on_after_the_tools(page: Page, server: ScriptedServer) -> None:
    server.start(server.ask("hi"))
    server.event("delta", text="Let me see.")
    call = {"call": "x", "batch": 0, "index": 0, "name": "f", "arguments": {}}
    server.event("tool_call", deadline_at="2026-01-01T00:00:00.000Z", **call)
    expect(page.locator(".tool")).to_be_visible()
    expect(page.locator(".waiting")).to_be_hidden()
    server.event("tool_result", call="x", status="ok", output=1, by="me")
    expect(page.locator(".waiting")).to_have_text(re.compile("waiting for demo/"))


def test_an_answer_goes_on_where_nobody_is_connected(
    page: Page, server: ScriptedServer
) -> None:
    line = page.locator(".waiting")
    server.start(server.ask("hi"))
    server.event("delta", text="Half")
    expect(page.locator(".markdown")).to_have_text("Half")
    expect(line).to_be_hidden()
    server.is_away = True
    page.click("#drop")
    expect(line).to_have_text(
        "not connected; the server, while it runs, goes on with the answer"
    )
    server.is_away = False
    expect(page.locator("#connection")).to_have_attribute("data-state", "online")
    expect(line).to_be_hidden()


def test_a_wait_moves_nothing_for_who_wants_no_motion(
    page: Page, server: ScriptedServer
) -> None:
    animation = "getComputedStyle(document.querySelector('.dots')).animationName"
    server.start(server.ask("hi"))
    expect(page.locator(".waiting")).to_be_visible()
    assert page.evaluate(animation) == "pulse"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(animation) == "none"
