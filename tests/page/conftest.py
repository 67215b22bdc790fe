"""A real browser, and a real server for it."""

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    expect,
    sync_playwright,
)

from tests.fakes.plain_server import plain_server
from tests.page.scripted import ScriptedServer

expect.set_options(
    timeout=15_000
)  # a machine may be busy; each wait ends when it is true


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's chromium; of one module only, as its loop would bar async tests."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed (CHROMIUM may name another)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where a server of the demo models is, for the whole module.

    A module's `SERVER_FLAGS` are added to its command line.
    """
    with plain_server(*getattr(request.module, "SERVER_FLAGS", ())) as address:
        yield f"http://{address}/"


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A visitor who was never here, on a screen of usual size."""
    with browser.new_context(viewport={"width": 1100, "height": 700}) as context:
        context.set_default_timeout(10_000)
        yield context


@pytest.fixture
def faults() -> list[str]:
    """What the browser complained of; a test that provokes nothing leaves it empty."""
    return []


@pytest.fixture
def new_page(
    context: BrowserContext, faults: list[str]
) -> Iterator[Callable[[], Page]]:
    """Makes tabs of one visitor."""

    def make() -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console",
            lambda message: (
                faults.append(message.text)
                if message.type in ("error", "warning", "assert")
                else None
            ),
        )
        return page

    yield make
    assert faults == []


@pytest.fixture
def page(new_page: Callable[[], Page]) -> Page:
    return new_page()


@pytest.fixture
def server(page: Page, address: str) -> ScriptedServer:
    """The page, open, with a server of which the test writes every frame."""
    server = ScriptedServer(page)
    server.load(address)
    expect(page.locator(".empty")).to_be_visible()
    return server
