"""A browser's storage that is forbidden, full, or holds what is none of ours."""

from collections.abc import Callable

import orjson
import pytest
from playwright.sync_api import Page, expect

from tests.page.test_chat_in_browser import QUICK_ANSWER, ask, complete, visit

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]

SERVER_FLAGS = ["--inspect"]

FORBIDDEN = """
for (const name of ["localStorage", "sessionStorage"]) {
  Object.defineProperty(window, name, {
    get() { throw new DOMException("Access is denied for this document.", "SecurityError"); },
  });
}
"""


def test_where_storage_is_forbidden_the_page_only_forgets(
    page: Page, address: str
) -> None:
    """As browsers do that block cookies, and frames in a sandbox."""
    page.add_init_script(FORBIDDEN)
    visit(page, address)
    ask(page, "One")
    complete(page)
    page.click("#new")
    ask(page, "Two")
    complete(page)
    expect(page.locator("#conversations .title")).to_have_text(["Two", "One"])
    page.reload()
    expect(page.locator("#conversations .title")).to_have_text(["Two"])


FULL = """() => {
  Storage.prototype.setItem = () => {
    throw new DOMException("The quota has been exceeded.", "QuotaExceededError");
  };
}"""


def test_where_storage_is_full_nothing_is_taken_for_deleted(
    new_page: Callable[[], Page], address: str
) -> None:
    first, second = new_page(), new_page()
    visit(first, address, QUICK_ANSWER)
    ask(first, "Kept")
    complete(first)
    first.evaluate(FULL)
    first.click("#new")
    ask(first, "Not kept")
    complete(first)
    expect(first.locator("#conversations .title")).to_have_text(["Not kept", "Kept"])
    visit(second, address)
    second.on("dialog", lambda dialog: dialog.accept())
    second.locator("#conversations li").first.hover()
    second.locator("#conversations .delete").first.click()
    expect(first.locator("#conversations .title")).to_have_text(["Not kept"])
    expect(first.locator("#title")).to_have_text("Not kept")
    ask(first, "Goes on")
    complete(first, "complete", "complete")


@pytest.mark.parametrize(
    "kept",
    ["{}", '"x"', '[null, 1, {"id": 7}, {"title": "x"}]'],
)
def test_what_is_kept_and_is_none_of_ours_is_passed_over(
    page: Page, address: str, kept: str
) -> None:
    names = [f"wsserver.{name}" for name in ("conversations", "look")]
    for name in names:
        text = orjson.dumps(kept).decode()
        page.add_init_script(f"localStorage.setItem('{name}', {text})")
    for name in ("drafts", "active"):
        text = orjson.dumps(kept).decode()
        page.add_init_script(f"sessionStorage.setItem('wsserver.{name}', {text})")
    visit(page, address)
    expect(page.locator(".empty")).to_be_visible()
    expect(page.locator("#conversations .title")).to_have_text(["New chat"])
    page.fill("#input", "A draft")
    expect(page.locator("#title")).to_have_text("New chat")


def test_where_storage_is_forbidden_the_inspector_works(
    page: Page, address: str
) -> None:
    page.add_init_script(FORBIDDEN)
    page.goto(address + "inspect")
    expect(page.locator("#status-text")).to_have_text("Live: 0 connections")
    page.select_option("#theme", "dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
