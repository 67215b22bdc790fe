"""Takes the pictures of the chat page that the docs show.

    python -m tests.page.screenshots [FOLDER]

Against the real server and its demo models; without a folder it writes to docs/images.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.fakes.plain_server import plain_server

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DESKTOP = {"width": 1080, "height": 700}
PHONE = {"width": 390, "height": 780}
QUICK = "demo/markdown:tokens_per_second=2000"
SLOW = "demo/long:tokens=400,tokens_per_second=60"


class Visit:
    """A page that somebody uses, and its pictures."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page = page
        self._folder = folder

    def ask(self, text: str, *, model: str, wait: bool = True) -> None:
        self.page.evaluate(
            """model => { const models = document.getElementById('model');
              models.append(new Option(model, model)); models.value = model;
              models.dispatchEvent(new Event('change')); }""",
            model,
        )
        self.page.fill("#input", text)
        self.page.keyboard.press("Enter")
        if wait:
            self.ended()

    def ended(self) -> None:
        """Waits until every message has an answer, and every answer has ended."""
        self.page.wait_for_function(
            """() => document.getElementById('stop').hidden
              && document.querySelector('.turn:last-of-type .ending') !== null"""
        )

    def take(self, name: str) -> None:
        self.page.evaluate(
            "new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))"
        )
        self.page.screenshot(path=self._folder / f"{name}.png")


@contextmanager
def visit(
    browser: Browser, address: str, folder: Path, *, size: dict[str, int], theme: str
) -> Iterator[Visit]:
    with browser.new_context(
        viewport={"width": size["width"], "height": size["height"]},
        has_touch=size is PHONE,
        timezone_id="Europe/Paris",
    ) as context:
        page = context.new_page()
        look = orjson.dumps({"theme": theme, "numbers": size is DESKTOP}).decode()
        page.add_init_script(f"localStorage.setItem('wsserver.look', {look!r})")
        page.goto(address)
        expect(page.locator("#connection")).to_have_attribute("data-state", "online")
        yield Visit(page, folder)


def everyday(visit: Visit, name: str) -> None:
    """A short history, in the middle of an answer."""
    page = visit.page
    new_chat = "document.getElementById('new').click()"
    visit.ask("Something with emoji", model="demo/emoji:tokens_per_second=2000")
    page.evaluate(new_chat)
    visit.ask("Why is a cursor enough?", model=SLOW, wait=False)
    page.evaluate(new_chat)
    visit.ask("What time is it in Tokyo and in Paris?", model=QUICK)
    visit.ask("What can I try here?", model="demo/markdown", wait=False)
    page.wait_for_function(
        "() => document.querySelectorAll('.turn')[1]?.querySelectorAll('li').length > 1"
    )
    visit.take(name)


def rare(visit: Visit) -> None:
    """What does not happen every day."""
    page = visit.page
    visit.ask("Tell me something long.", model=SLOW, wait=False)
    page.wait_for_function(
        "() => document.querySelector('.turn .markdown')?.textContent.length > 300"
    )
    page.keyboard.press("Escape")
    expect(page.locator(".facts")).to_contain_text("characters saved")
    visit.ask("Now change the theme of this page.", model=QUICK, wait=False)
    expect(page.locator(".tool .ask")).to_be_visible()
    visit.take("chat-stopped-and-asking")
    page.get_by_role("button", name="Deny").click()
    visit.ended()
    page.locator(".message").last.hover()
    page.locator(".edit").last.click()
    page.locator(".editor textarea").fill("Tell me what you think instead.")
    page.locator(".editor .primary").click()
    expect(page.locator(".versions")).to_contain_text("2/2")
    visit.ended()
    visit.ask("And what did you think?", model="demo/reasoning:tokens_per_second=2000")
    page.locator(".reasoning summary").click()
    page.click("#drop")
    page.fill("#input", "Written into a tunnel")
    page.keyboard.press("Enter")
    expect(page.locator(".unsent .note")).to_be_visible()
    visit.take("chat-offline")
    page.get_by_role("button", name="Earlier version").hover()
    visit.take("chat-versions")


def main(arguments: list[str]) -> int:
    """Takes all pictures; returns the exit status."""
    folder = Path(arguments[0]) if arguments else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        sys.stderr.write("chromium is not installed (CHROMIUM may name another)\n")
        return 2
    with sync_playwright() as playwright, plain_server() as server:
        address = f"http://{server}/"
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        for theme in ("light", "dark"):
            with visit(browser, address, folder, size=DESKTOP, theme=theme) as desk:
                everyday(desk, f"chat-{theme}")
            with visit(browser, address, folder, size=PHONE, theme=theme) as phone:
                everyday(phone, f"chat-phone-{theme}")
        with visit(browser, address, folder, size=DESKTOP, theme="light") as desk:
            rare(desk)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
