"""The page by keyboard, by voice and on a narrow screen."""

import orjson
import pytest
from playwright.sync_api import Page, expect

from tests.page.scripted import ScriptedServer
from tests.page.test_chat_in_browser import ask, visit

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]

LISTED = [
    {"id": f"c{number}", "title": f"Number {number}", "at": 99 - number, "made": 1}
    for number in range(30)
]


def with_a_long_list(page: Page, server: ScriptedServer) -> None:
    listed = orjson.dumps(LISTED).decode()
    page.evaluate(f"localStorage.setItem('wsserver.conversations', {listed!r})")
    page.evaluate("history.replaceState(null, '', location.pathname)")
    server.load()


def test_a_call_that_waits_is_told_and_who_allows_it_can_type_on(
    page: Page, address: str
) -> None:
    visit(page, address, "demo/tools:tokens_per_second=1000")
    ask(page, "Change the theme of this page.")
    told = "The model wants to run change_theme: allow or deny it."
    expect(page.locator("#announcer")).to_have_text(told)
    page.get_by_role("button", name="Allow").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#input")).to_be_focused()


def test_what_was_taken_back_can_be_said_otherwise(
    page: Page, server: ScriptedServer
) -> None:
    server.start(server.ask("hi"))
    server.ask("Not so")
    page.get_by_role("button", name="Take back").press("Enter")
    page.wait_for_function("document.activeElement !== document.body")
    server.reply(server.last("interrupt"), {"outcome": "dequeued"})
    expect(page.locator("#input")).to_have_value("Not so")
    expect(page.locator("#input")).to_be_focused()


def test_the_shown_conversation_is_in_sight_and_each_has_a_name(
    page: Page, server: ScriptedServer
) -> None:
    with_a_long_list(page, server)
    shown = page.locator("#conversations [aria-current]")
    expect(shown).to_have_text("Number 0")
    for number in range(1, 25):
        page.keyboard.press("Alt+Shift+ArrowDown")
        expect(shown).to_have_text(f"Number {number}")
    expect(shown).to_be_in_viewport()
    delete = page.get_by_role("button", name="Delete Number 23", exact=True)
    page.on("dialog", lambda dialog: dialog.accept())
    delete.press("Enter")
    expect(delete).to_have_count(0)
    expect(page.locator("#input")).to_be_focused()
    expect(shown).to_have_text("Number 24")


def test_a_long_first_message_is_a_title_with_an_end(
    page: Page, server: ScriptedServer
) -> None:
    del server
    ask(page, "word " * 20)
    expect(page.locator("#title")).to_have_text("word " * 9 + "wo…")


def test_on_a_narrow_screen_all_of_the_composer_is_on_it(
    page: Page, server: ScriptedServer
) -> None:
    page.set_viewport_size({"width": 320, "height": 560})
    expect(page.get_by_text("While an answer is under way")).to_be_hidden()
    server.start(server.ask("hi"))
    expect(page.locator("#stop")).to_be_visible()
    for one in ("#policy", "#stop", "#send"):
        expect(page.locator(one)).to_be_in_viewport(ratio=1)


def test_who_tabs_on_leaves_the_drawer(page: Page, server: ScriptedServer) -> None:
    del server
    page.set_viewport_size({"width": 360, "height": 640})
    menu = page.locator("#menu")
    menu.click()
    page.locator("#theme").focus()
    page.keyboard.press("Tab")
    expect(menu).to_have_attribute("aria-expanded", "false")


def test_a_network_that_is_off_is_not_taken_for_a_connection(
    page: Page, server: ScriptedServer
) -> None:
    def pings() -> int:
        return [each["type"] for each in server.received].count("ping")

    before = pings()
    page.evaluate("dispatchEvent(new Event('offline'))")
    page.evaluate("new Promise(requestAnimationFrame)")
    assert pings() == before + 1
