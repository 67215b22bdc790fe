"""What people do without thinking: reload, two tabs, Escape."""

from collections.abc import Callable

import orjson
import pytest
from playwright.sync_api import Page, expect

from tests.page.scripted import NOT_FOUND, RESTART, ScriptedServer, proof
from tests.page.test_chat_in_browser import QUICK_ANSWER, ask, complete, visit

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]


def test_a_reload_tells_no_old_answer_as_news(page: Page, address: str) -> None:
    visit(page, address, QUICK_ANSWER)
    ask(page, "One")
    complete(page)
    page.click("#new")
    ask(page, "Two")
    complete(page)
    page.reload()
    complete(page)
    states = page.locator("#conversations .state")
    expect(states).to_have_text(["", ""])
    expect(page).to_have_title("Two · wsserver")
    expect(page.locator("#announcer")).not_to_contain_text("Answer")
    ask(page, "Three")
    complete(page, "complete", "complete")
    expect(page.locator("#announcer")).to_contain_text("Answer complete.")


def test_a_conversation_deleted_in_another_tab_is_left(
    new_page: Callable[[], Page], address: str
) -> None:
    first, second = new_page(), new_page()
    visit(first, address, QUICK_ANSWER)
    ask(first, "Stays")
    complete(first)
    first.click("#new")
    ask(first, "Goes")
    complete(first)
    visit(second, address)
    expect(second.locator("#title")).to_have_text("Goes")
    first.on("dialog", lambda dialog: dialog.accept())
    first.locator("#conversations li").first.hover()
    first.locator("#conversations .delete").first.click()
    expect(second.locator("#title")).to_have_text("Stays")
    expect(second.locator("#notice")).to_contain_text("no longer on the server")
    expect(second.locator("#conversations .title")).to_have_text(["Stays"])
    ask(second, "Goes on")
    complete(second, "complete", "complete")


def delete_elsewhere(server: ScriptedServer, conversation: str) -> None:
    server.received.clear()
    server.say({"type": "error", "gone": conversation} | NOT_FOUND)


def test_a_conversation_deleted_in_another_browser_is_left(
    page: Page, server: ScriptedServer
) -> None:
    gone = server.conversation
    delete_elsewhere(server, gone)
    expect(page.locator("#notice")).to_contain_text("no longer on the server")
    expect(page.locator("#conversations .title")).to_have_count(1)
    assert gone not in page.url
    server.load()
    expect(page.locator("#conversations .title")).to_have_count(1)
    opened = [each for each in server.received if each["type"] == "open"]
    assert opened
    assert all(each["conversation"] != gone for each in opened)


def asked_for(server: ScriptedServer) -> list[str]:
    return [each["conversation"] for each in server.received if each["type"] == "open"]


@pytest.mark.parametrize("comes_back", ["on a new socket", "as a new page"])
def test_what_was_deleted_meanwhile_is_not_made_anew_and_words_are_kept(
    page: Page, server: ScriptedServer, comes_back: str
) -> None:
    gone = server.conversation
    ask(page, "Not there yet")
    page.fill("#input", "Nor is this")
    server.deleted.add(gone)
    server.received.clear()
    if comes_back == "on a new socket":
        server.drop()
    else:
        server.load()
    expect(page.locator("#notice")).to_contain_text("no longer on the server")
    expect(page.locator("#input")).to_have_value("Not there yet\n\nNor is this")
    expect(page.locator("#conversations .title")).to_have_count(1)
    assert gone not in page.url
    server.load()
    expect(page.locator("#input")).to_have_value("Not there yet\n\nNor is this")
    assert asked_for(server).count(gone) == 1
    assert "send" not in [each["type"] for each in server.received[-3:]]


def test_where_a_version_was_deleted_in_another_browser_its_origin_is_shown(
    page: Page, server: ScriptedServer
) -> None:
    origin = {"id": "origin", "title": "Origin", "at": 2, "made": 1}
    version = {"id": "version", "title": "", "at": 1, "made": 2}
    listed = [
        origin | {"shown": "version"},
        version | {"parent": "origin", "slot": 1},
    ]
    page.evaluate(
        "(list) => localStorage.setItem('wsserver.conversations', list)",
        orjson.dumps(listed).decode(),
    )
    server.load()
    expect(page.locator("#title")).to_have_text("Origin")
    delete_elsewhere(server, "version")
    expect(page.locator("#notice")).to_contain_text("no longer on the server")
    expect(page.locator("#title")).to_have_text("Origin")
    assert all(each["conversation"] != "version" for each in server.received)
    assert "origin" in page.url


@pytest.mark.parametrize("width", [360, 1100])
def test_a_restart_of_the_server_is_told_until_it_is_back(
    page: Page, server: ScriptedServer, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 640})
    bar = page.locator("#bar")
    expect(bar).to_be_hidden()
    goaway = {"deadline_ms": 9_000, "reconnect_after_ms": 300, "reason": "restart"}
    server.say({"type": "goaway"} | goaway)
    said = "The server restarts. This page reconnects by itself."
    expect(bar).to_have_text(said)
    expect(bar).to_be_visible()
    expect(page.locator("#announcer")).to_have_text(said)
    server.is_away = True
    server.close(RESTART)
    expect(bar).to_contain_text("The server restarts · again in")
    server.is_away = False
    expect(page.locator("#connection")).to_have_attribute("data-state", "online")
    expect(bar).to_be_hidden()
    expect(page.locator("#announcer")).to_have_text("Connected.")


def test_escape_closes_the_drawer_and_stops_nothing(
    page: Page, server: ScriptedServer
) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    server.start(server.ask("hi"))
    expect(page.locator("#stop")).to_be_visible()
    menu = page.locator("#menu")
    menu.click()
    expect(page.locator("#new")).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_have_attribute("aria-expanded", "false")
    expect(menu).to_be_focused()
    assert "interrupt" not in [frame["type"] for frame in server.received]
    page.keyboard.press("Escape")
    page.evaluate("new Promise(requestAnimationFrame)")
    assert server.last("interrupt")["turn"] == server.turn


def test_who_leaves_an_edit_is_where_it_began(page: Page, address: str) -> None:
    visit(page, address, QUICK_ANSWER)
    ask(page, "As it is")
    complete(page)
    page.keyboard.press("ArrowUp")
    expect(page.locator(".editor textarea")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#input")).to_be_focused()


def test_an_edit_that_the_server_refuses_is_not_lost(
    page: Page, server: ScriptedServer
) -> None:
    server.start(server.ask("As it was"))
    server.done(text=proof(""))
    page.fill("#input", "Of now")
    page.locator(".edit").focus()
    page.keyboard.press("Enter")
    page.locator(".editor textarea").fill("As it should be")
    page.keyboard.press("Enter")
    expect(page.locator(".editor")).to_have_count(0)
    server.reply(server.last("fork"), {"ok": False, "error": NOT_FOUND})
    expect(page.locator("#input")).to_have_value("Of now\n\nAs it should be")
    expect(page.locator("#notice")).to_have_text("no")


def test_settings_that_the_server_refuses_say_why(
    page: Page, server: ScriptedServer
) -> None:
    page.select_option("#model", "demo/long")
    page.wait_for_function(
        "document.getElementById('input') === document.activeElement"
    )
    command = server.last("configure")
    assert command["config"]["model"] == "demo/long"
    error = {"code": "bad_model", "message": "No such model.", "retryable": False}
    server.reply(command, {"ok": False, "error": error})
    expect(page.locator("#notice")).to_have_text("No such model.")


def test_who_has_stopped_an_answer_can_type_on(
    page: Page, server: ScriptedServer
) -> None:
    server.start(server.ask("hi"))
    page.click("#stop")
    assert server.last("interrupt")["turn"] == server.turn
    server.done(status="interrupted", reason="by_client")
    expect(page.locator("#stop")).to_be_hidden()
    expect(page.locator("#input")).to_be_focused()
