"""The inspector's page in a real browser, with the chat page as what it looks at."""

import re
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]

SERVER_FLAGS = ["--inspect"]
MODEL = "demo/long:tokens=480,tokens_per_second=40"


def chat(page: Page, address: str) -> None:
    look = orjson.dumps({"model": MODEL}).decode()
    page.add_init_script(f"localStorage.setItem('wsserver.look', {look!r})")
    page.goto(address)
    expect(page.locator("#connection")).to_have_attribute("data-state", "online")
    page.fill("#input", "Go on and on")
    page.keyboard.press("Enter")


def test_a_conversation_is_seen_cut_and_gone_back_to(
    new_page: Callable[[], Page], address: str, tmp_path: Path
) -> None:
    inspector, visitor = new_page(), new_page()
    inspector.goto(address + "inspect")
    expect(inspector.locator("#content")).to_have_text("texts redacted")
    chat(visitor, address)
    inspector.bring_to_front()
    state, rows = inspector.locator("#state"), inspector.locator("#rows .row")
    expect(state.locator(".turn-state")).to_have_text("running")

    # Some come before anything goes wrong.
    inspector.select_option("#by-type", "delta")
    expect(rows.nth(8)).to_be_visible()
    inspector.select_option("#by-type", "")

    # An event is kept from the chat, which notices and opens again.
    card = inspector.locator(".connection").first
    card.locator("summary").click()
    card.get_by_role("button", name="Lose next event").click()
    inspector.select_option("#by-type", "open")
    expect(rows).to_have_count(2)
    inspector.select_option("#by-type", "")

    # The socket is cut in mid-answer; the chat comes back, and the answer is whole.
    inspector.locator(".connection .danger", has_text="Drop").first.click()
    expect(inspector.locator(".connection[data-open=false]")).to_contain_text(
        "dropped here"
    )
    expect(state.locator(".turn-state")).to_have_text("completed", timeout=20_000)
    expect(state.locator(".fits")).to_have_text(" · length proven")
    expect(inspector.locator(".connection[data-open=true]")).to_have_count(1)
    expect(visitor.locator(".turn .ending")).to_have_text("complete")
    expect(visitor.locator(".wrong")).to_have_count(0)

    # Back to a frame in the middle: its JSON, and the conversation as it was then.
    inspector.select_option("#by-type", "delta")
    inspector.locator("#table").evaluate("table => (table.scrollTop = 0)")
    # Not by the mouse: rows are drawn anew while the table scrolls.
    rows.nth(5).dispatch_event("click")
    expect(inspector.locator("#json")).to_contain_text('"delta"')
    json = inspector.locator("#json").inner_text()
    frame = orjson.loads(json)["frame"]
    assert frame["type"] == "delta"
    assert re.fullmatch(r"«\d+»", frame["text"])
    expect(inspector.locator("#live")).to_have_attribute("aria-pressed", "false")
    expect(inspector.locator("#facts dd").first).to_have_text(str(frame["seq"]))
    expect(state.locator(".turn-state")).to_have_text("running")
    inspector.locator("#table").press("ArrowDown")
    expect(inspector.locator("#json")).not_to_have_text(json)
    after = orjson.loads(inspector.locator("#json").inner_text())["frame"]["seq"]
    assert after > frame["seq"]
    expect(inspector.locator("#facts dd").first).to_have_text(str(after))
    inspector.fill("#by-text", '"done"')
    inspector.select_option("#by-type", "")
    expect(rows).to_have_count(1)

    save_and_open(inspector, tmp_path / "recording.jsonl")


def save_and_open(inspector: Page, path: Path) -> None:
    """What is saved can be opened again."""
    with inspector.expect_download() as saved:
        inspector.click("#save")
    saved.value.save_as(path)
    assert b"Go on and on" not in path.read_bytes()
    inspector.fill("#by-text", "")
    inspector.set_input_files("#file", path)
    expect(inspector.locator("#status-text")).to_have_text("recording.jsonl")
    state = inspector.locator("#state")
    expect(state.locator(".turn-state")).to_have_text("completed")
    inspector.click("#live")
    inspector.click("#load")
    expect(inspector.locator("#status-text")).to_contain_text("Live")


MANY = 1500


def busy_recording(path: Path) -> None:
    """Conversations of a busy server, each on a connection of its own."""
    lines: list[dict[str, object]] = [
        {
            "recording": 1,
            "server": {"name": "s", "version": "1"},
            "started_at": "2026-01-01T00:00:00.000Z",
            "content": "redacted",
        }
    ]
    for number in range(MANY):
        name, link = f"c{number:04}", f"w{number:04}"
        about = {"connection": link, "at_ms": 10 * number}
        event = {"type": "message", "conversation": name, "seq": 1, "id": "s"}
        more = {"role": "user", "content": "«3»", "by": "me", "at": ""}
        lines += [
            {"n": 2 * number + 1, "kind": "opened", **about},
            {"n": 2 * number + 2, "kind": "out", "bytes": 99, **about}
            | {"frame": event | more},
        ]
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)))


def test_of_many_conversations_only_what_is_seen_is_drawn(
    page: Page, address: str, tmp_path: Path
) -> None:
    busy_recording(tmp_path / "busy.jsonl")
    page.goto(address + "inspect")
    page.set_input_files("#file", tmp_path / "busy.jsonl")
    labels = page.locator("#labels .label.group")
    expect(page.locator("#labels [aria-pressed=true]")).to_have_attribute(
        "title", f"c{MANY - 1:04}"
    )
    page.select_option("#state-of", "c0700")
    chosen = page.locator("#labels [aria-pressed=true]")
    expect(chosen).to_have_attribute("title", "c0700")
    expect(chosen).to_be_in_viewport()
    assert labels.count() < 50
    expect(page.locator("#connections .connection")).to_have_count(50)
    expect(page.locator("#connections")).to_contain_text("and 1,450 more")
    canvas = page.locator("#canvas")
    seen = page.locator(".lanes-body").bounding_box()
    drawn, at = canvas.bounding_box(), chosen.bounding_box()
    assert seen is not None
    assert drawn is not None
    assert at is not None
    assert drawn["height"] <= seen["height"]

    # A mark can be picked where it is seen, however far down that is.
    picked = page.evaluate(
        """([left, top]) => {
          const canvas = document.getElementById("canvas");
          for (let x = left; x < left + canvas.clientWidth; x += 4) {
            const event = { clientX: x, clientY: top, bubbles: true, pointerId: 1 };
            canvas.dispatchEvent(new PointerEvent("pointermove", event));
            if (document.getElementById("tip").hidden) continue;
            canvas.dispatchEvent(new PointerEvent("pointerdown", event));
            return true;
          }
          return false;
        }""",
        [drawn["x"], at["y"] + 30 + 20],
    )
    assert picked
    expect(page.locator("#json")).to_contain_text("c0700")


def test_where_nothing_can_be_copied_it_is_said(page: Page, address: str) -> None:
    page.add_init_script("delete Navigator.prototype.clipboard")
    page.goto(address + "inspect")
    page.evaluate("document.getElementById('copy').hidden = false")
    page.click("#copy")
    expect(page.locator("#refused")).to_contain_text("does not let this page copy")
