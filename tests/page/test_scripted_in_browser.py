"""The scripted server never says what the page can't hear yet, or no more."""

import pytest
from playwright.sync_api import Page, expect

from tests.page import scripted
from tests.page.scripted import ScriptedServer

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]

LATE = """
  window.WebSocket = class extends WebSocket {
    set onopen(run) { super.onopen = event => setTimeout(() => run(event), 300); }
  };
"""


def test_a_page_that_connects_late_is_waited_for(page: Page, address: str) -> None:
    server = ScriptedServer(page)
    page.add_init_script(LATE)
    server.load(address)
    server.ask("One")
    expect(page.locator(".message")).to_have_count(1)
    server.load()
    server.ask("Two")
    expect(page.locator(".message")).to_have_count(2)
    server.drop()
    server.wait_until_open()
    server.ask("Three")
    expect(page.locator(".message")).to_have_count(3)
    opened = [each for each in server.received if each["type"] == "open"]
    asked = [each.get("after", 0) for each in opened]
    assert asked == [0, 0, 2], "no hole made the page open once more"


def test_words_for_a_socket_that_is_gone_are_a_fault(
    page: Page, server: ScriptedServer
) -> None:
    server.drop()
    with pytest.raises(AssertionError, match="Nobody would hear it"):
        server.ask("Into the void")
    server.wait_until_open()
    page.goto("about:blank")
    with pytest.raises(AssertionError, match="Nobody would hear it"):
        server.ask("Into the void")


def test_a_page_that_does_not_come_back_is_told_of(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripted, "OPEN_SECONDS", 0.0)
    server.close(4401)
    with pytest.raises(AssertionError, match="opened no conversation"):
        server.wait_until_open()
