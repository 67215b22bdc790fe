"""Editing, asking anew, allowing and the keys, in a real browser on the real server."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.page.test_chat_in_browser import (
    ENDLESS_ANSWER,
    QUICK_ANSWER,
    STOPPED,
    ask,
    complete,
    text_grows,
    visit,
)
from tests.page.tunnel import Tunnel

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]

ECHO = "demo/echo:tokens_per_second=1000"


def said(page: Page, *texts: str) -> None:
    expect(page.locator(".message p.plain")).to_have_text(list(texts))


def version(page: Page, text: str) -> None:
    expect(page.locator(".versions")).to_contain_text(text)


def edit_last(page: Page, text: str) -> None:
    page.locator(".message").last.hover()
    page.locator(".message .edit").last.click()
    page.locator(".editor textarea").fill(text)
    page.keyboard.press("Enter")


def test_an_edited_message_is_a_version(
    new_page: Callable[[], Page], address: str
) -> None:
    page = new_page()
    visit(page, address, ECHO)
    ask(page, "First")
    complete(page)
    ask(page, "Second")
    complete(page, "complete", "complete")
    edit_last(page, "Second, better")
    said(page, "First", "Second, better")
    complete(page, "complete", "complete")
    version(page, "2/2")
    expect(page.locator("#conversations li")).to_have_count(1)
    page.get_by_role("button", name="Earlier version").click()
    said(page, "First", "Second")
    version(page, "1/2")
    edit_last(page, "Second, best")
    said(page, "First", "Second, best")
    version(page, "3/3")
    complete(page, "complete", "complete")
    page.reload()
    said(page, "First", "Second, best")
    version(page, "3/3")
    other = new_page()
    visit(other, address)
    said(other, "First", "Second, best")
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("#conversations li").hover()
    page.click("#conversations .delete")
    expect(page.locator(".empty")).to_be_visible()
    expect(page.locator("#conversations .title")).to_have_text("New chat")


def test_an_answer_can_be_asked_for_again(page: Page, address: str) -> None:
    visit(page, address, ECHO)
    ask(page, "Only one")
    complete(page)
    page.get_by_role("button", name="Regenerate").click()
    version(page, "2/2")
    said(page, "Only one")
    complete(page)


def test_an_edit_can_be_left_and_an_empty_one_is_none(page: Page, address: str) -> None:
    visit(page, address, ECHO)
    ask(page, "As it is")
    complete(page)
    page.keyboard.press("ArrowUp")
    expect(page.locator(".editor textarea")).to_have_value("As it is")
    page.fill(".editor textarea", "変換中")
    page.evaluate(
        """() => document.querySelector('.editor textarea').dispatchEvent(
          new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, isComposing: true}))"""
    )
    expect(page.locator(".editor textarea")).to_have_value("変換中")
    page.fill(".editor textarea", "  ")
    page.keyboard.press("Enter")
    expect(page.locator(".editor")).to_be_visible()
    page.keyboard.press("Escape")
    said(page, "As it is")
    expect(page.locator(".versions")).to_have_count(0)


def test_what_waited_in_the_queue_can_not_be_replaced(page: Page, address: str) -> None:
    """Its number lies inside of the turn before, which a fork takes whole."""
    visit(page, address, ENDLESS_ANSWER)
    ask(page, "First")
    text_grows(page)
    page.select_option("#model", ECHO.split(":")[0])
    ask(page, "Second")
    expect(page.locator(".message .note:visible")).to_have_count(1)
    page.click("#stop")
    complete(page, STOPPED, "complete")
    expect(page.locator(".message").first.locator(".edit")).to_have_count(1)
    expect(page.locator(".message").last.locator(".edit")).to_have_count(0)
    actions = page.locator(".facts .acts")
    expect(actions).to_have_text(["CopyRegenerate", "CopyAsk again"])


@pytest.mark.parametrize(("button", "state"), [("Allow", "done"), ("Deny", "failed")])
def test_a_tool_that_changes_something_asks_first(
    page: Page, address: str, button: str, state: str
) -> None:
    visit(page, address, QUICK_ANSWER)
    ask(page, "Change the theme of this page.")
    expect(page.locator(".tool .state")).to_have_text("wants your OK")
    expect(page.locator("#conversations li")).to_have_attribute("data-state", "asks")
    page.reload()
    expect(page.locator(".tool .state")).to_have_text("wants your OK")
    page.get_by_role("button", name=button).click()
    expect(page.locator(".tool .state")).to_have_text(state)
    expect(page.locator(".tool .ask")).to_be_hidden()
    complete(page)
    themes = {"Allow": "dark", "Deny": None}
    assert page.locator("html").get_attribute("data-theme") == themes[button]


def test_a_tab_says_that_another_one_was_asked(
    new_page: Callable[[], Page], address: str
) -> None:
    page, other = new_page(), new_page()
    visit(page, address, QUICK_ANSWER)
    ask(page, "Change the theme of this page.")
    states = [page.locator(".tool .state")]
    expect(states[0]).to_have_text("wants your OK")
    visit(other, address)
    states.append(other.locator(".tool .state"))
    expect(states[1]).to_have_text("asked in another tab")
    page.reload()
    expect(states[1]).to_have_text("wants your OK")
    expect(states[0]).to_have_text("asked in another tab")
    other.get_by_role("button", name="Allow").click()
    for state in states:
        expect(state).to_have_text("done")


def test_the_keys_do_what_their_list_says(page: Page, address: str) -> None:
    tunnel = Tunnel(page)
    visit(page, address, ECHO)
    ask(page, "One")
    complete(page)
    page.keyboard.press("Alt+Shift+Slash")
    expect(page.locator("#shortcuts")).to_contain_text("another answer")
    page.keyboard.press("Escape")
    expect(page.locator("#shortcuts")).to_be_hidden()
    page.keyboard.press("Alt+Shift+O")
    expect(page.locator(".empty")).to_be_visible()
    page.keyboard.press("Alt+Shift+ArrowDown")
    said(page, "One")
    page.keyboard.press("Alt+Shift+R")
    version(page, "2/2")
    complete(page)
    tunnel.close()
    page.keyboard.press("Alt+Shift+D")
    expect(page.locator("#connection")).to_have_attribute("data-state", "waiting")


def test_an_answer_on_a_bad_network_is_whole(page: Page, address: str) -> None:
    tunnel = Tunnel(page)
    visit(page, address, ENDLESS_ANSWER)
    page.select_option("#network", "slow")
    ask(page, "Whatever happens")
    text_grows(page)
    tunnel.close()
    page.click("#drop")
    expect(page.locator("#connection-text")).to_have_text(re.compile("again in"))
    tunnel.open()
    expect(page.locator("#connection")).to_have_attribute("data-state", "online")
    text_grows(page)
    page.click("#stop")
    complete(page, STOPPED)
