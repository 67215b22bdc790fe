"""Takes the pictures of the chat page that the docs show.

    python -m tests.page.screenshots [FOLDER]

Against the real server and its demo models; without a folder it writes to docs/images.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from playwright.sync_api import Browser, Page, expect, sync_playwright

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DESKTOP = {"width": 1180, "height": 760}
PHONE = {"width": 390, "height": 780}
QUICK = "demo/markdown:tokens_per_second=2000"
SLOW = "demo/long:tokens=400,tokens_per_second=60"


@contextmanager
def server() -> Iterator[str]:
    command = [sys.executable, "-m", "wsserver", "serve", "--port", "0"]
    with subprocess.Popen(  # noqa: S603
        [*command, "--store", "memory", "--drain-seconds", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdout is not None
        line = program.stdout.readline()
        try:
            yield "http://" + line.split("://")[1].split("/")[0] + "/"
        finally:
            program.terminate()


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
        expect(self.page.locator("#stop")).to_be_visible()
        expect(self.page.locator("#stop")).to_be_hidden(timeout=30_000)

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
        device_scale_factor=1.5,
        has_touch=size is PHONE,
        timezone_id="Europe/Paris",
    ) as context:
        page = context.new_page()
        look = orjson.dumps({"theme": theme}).decode()
        page.add_init_script(f"localStorage.setItem('wsserver.look', {look!r})")
        page.goto(address)
        expect(page.locator("#connection")).to_have_attribute("data-state", "online")
        yield Visit(page, folder)


def tell(visit: Visit, name: str) -> None:
    """A short history, then pictures of its states."""
    page = visit.page
    visit.take(f"{name}-empty")
    visit.ask("Something with emoji", model="demo/emoji:tokens_per_second=2000")
    page.evaluate("document.getElementById('new').click()")
    visit.ask("Why is a cursor enough?", model=SLOW, wait=False)
    page.evaluate("document.getElementById('new').click()")
    visit.ask("What time is it in Tokyo and in Paris?", model=QUICK)
    visit.take(f"{name}-tools")
    visit.ask("And what can I try here?", model=QUICK)
    visit.take(name)


def states(visit: Visit, name: str) -> None:
    """Pictures of what does not happen every day."""
    page = visit.page
    visit.ask("Tell me something long.", model=SLOW, wait=False)
    page.wait_for_function(
        "() => document.querySelector('.turn .markdown')?.textContent.length > 300"
    )
    page.keyboard.press("Escape")
    expect(page.locator(".facts")).to_contain_text("stopped in")
    visit.ask("Think, then change the theme of this page.", model=QUICK, wait=False)
    expect(page.locator(".tool .ask")).to_be_visible()
    visit.take(f"{name}-stopped-and-asked")
    page.get_by_role("button", name="Deny").click()
    visit_ended = page.locator(".turn .ending")
    expect(visit_ended).to_have_count(2)
    expect(visit_ended.last).to_have_text("complete", timeout=20_000)
    page.locator(".message").last.hover()
    page.locator(".edit").last.click()
    page.locator(".editor textarea").fill("Think about something else.")
    page.keyboard.press("Enter")
    expect(page.locator(".versions")).to_contain_text("2/2")
    expect(page.locator("#stop")).to_be_hidden(timeout=20_000)
    visit.ask("Which thoughts had you?", model="demo/reasoning:tokens_per_second=2000")
    page.locator(".reasoning summary").click()
    page.check("#numbers")
    visit.take(f"{name}-versions-and-numbers")
    page.click("#drop")
    page.fill("#input", "Written into a tunnel")
    page.keyboard.press("Enter")
    expect(page.locator(".unsent .note")).to_be_visible()
    visit.take(f"{name}-offline")
    page.click("#keys")
    visit.take(f"{name}-keys")


def main(arguments: list[str]) -> int:
    """Takes all pictures; returns the exit status."""
    folder = Path(arguments[0]) if arguments else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        sys.stderr.write("chromium is not installed (CHROMIUM may name another)\n")
        return 2
    with sync_playwright() as playwright, server() as address:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        for theme in ("light", "dark"):
            with visit(browser, address, folder, size=DESKTOP, theme=theme) as desk:
                tell(desk, f"chat-{theme}")
            with visit(browser, address, folder, size=PHONE, theme=theme) as phone:
                tell(phone, f"chat-phone-{theme}")
        with visit(browser, address, folder, size=DESKTOP, theme="light") as desk:
            states(desk, "chat")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
