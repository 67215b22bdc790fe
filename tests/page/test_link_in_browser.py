"""The page's address is the link to the conversation that it shows."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.test_chat_in_browser import ask, complete, visit

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]

ECHO = "demo/echo:tokens_per_second=1000"


def said(page: Page, *texts: str) -> None:
    expect(page.locator(".message p.plain")).to_have_text(list(texts))


def test_a_conversation_goes_on_where_its_link_is_opened(
    page: Page, address: str, browser: Browser
) -> None:
    visit(page, address, ECHO)
    ask(page, "From here")
    complete(page)
    link = page.url
    assert "#" in link
    with browser.new_context() as elsewhere:
        other = elsewhere.new_page()
        other.goto(link)
        said(other, "From here")
        expect(other.locator("#conversations li")).to_have_count(1)
        expect(other.locator("#title")).to_have_text("From here")
        ask(other, "From there")
        said(page, "From here", "From there")
        complete(other, "complete", "complete")
        other.reload()
        said(other, "From here", "From there")
        expect(other.locator("#conversations li")).to_have_count(1)


def test_the_address_follows_what_is_shown_and_is_followed(
    page: Page, address: str
) -> None:
    visit(page, address, ECHO)
    ask(page, "One")
    complete(page)
    one = page.url
    page.locator("#new").click()
    assert page.url != one
    ask(page, "Two")
    complete(page)
    page.evaluate("link => location.assign(link)", one)
    said(page, "One")
    page.evaluate("location.hash = 'no conversation'")
    said(page, "One")


def test_what_another_tab_deleted_does_not_come_back_with_a_reload(
    page: Page, address: str
) -> None:
    visit(page, address, ECHO)
    ask(page, "Short-lived")
    complete(page)
    name = page.url.split("#")[1]
    page.add_init_script("localStorage.removeItem('wsserver.conversations')")
    page.reload()
    expect(page.locator(".empty")).to_be_visible()
    assert name not in page.url
