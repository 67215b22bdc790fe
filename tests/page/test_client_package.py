"""The folder of the JavaScript client as a package: its types say what it has, and the
example of its README runs against the real server."""

import re
import shutil
import subprocess
from pathlib import Path

import orjson
import pytest

WEB = Path(__file__).parents[2] / "client_demo" / "web"
MEMBERS = """
import * as client from "./client.js";
import { Answer } from "./runtime/answer.js";
import { Conversation } from "./runtime/conversation.js";
import { Fold } from "./fold.js";
import { Session } from "./machine/session.js";
const own = (object) => Object.getOwnPropertyNames(object).filter((name) => name !== "constructor");
const fold = new Fold();
const log = { conversation: "c" };
fold.apply({ ...log, type: "message", seq: 1, id: "s", content: "hi", by: "", at: "" });
fold.apply({ ...log, type: "start", seq: 2, turn: 2, message: 1, model: "", request_id: "" });
fold.apply({ ...log, type: "delta", seq: 3, turn: 2, text: "x" });
fold.apply({ ...log, type: "tool_call", seq: 4, turn: 2, call: "x", name: "f", arguments: {} });
const all = (instance) => [...own(instance), ...own(Object.getPrototypeOf(instance))];
const conversation = new Conversation("c");
const turn = fold.turns.get(2);
console.log(JSON.stringify({
  exports: Object.keys(client),
  ChatClient: own(client.ChatClient.prototype),
  Session: all(new Session({ newId: () => "x" })),
  Conversation: all(conversation),
  Answer: all(new Answer(conversation, "s", () => {})),
  Fold: all(fold),
  Message: own(fold.messages.get(1)),
  Turn: all(turn),
  ShownText: all(turn.parts[0]),
  ShownTool: all(turn.parts[1]),
}));
"""
FAST = "demo/markdown:tokens_per_second=1000"
INTERNAL = {
    "Conversation": {
        "apply",
        "opened",
        "reset",
        "disproved",
        "forgetTaken",
        "messageOf",
        "turnAnswering",
    },
    "Answer": {"replied", "changed", "reset", "caughtUp", "fail"},
    "Turn": {
        *("start", "growing", "addText", "called", "settled", "ended", "cut", "prove"),
        "skipped",
    },
    "ShownTool": {"complete", "settle"},
}


def run_node(script: str, *options: str) -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    run = subprocess.run(  # noqa: S603
        [node, *options, "--input-type=module", "-"],
        cwd=WEB,
        input=script,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def declared(text: str, name: str) -> set[str]:
    """The members that a class or interface has in a file of types."""
    block = re.search(
        rf"export (?:class|interface) {name}\b.*?{{\n(.*?)\n}}", text, re.DOTALL
    )
    assert block is not None, name
    return set(re.findall(r"^  (?:readonly )?(\w+)\??[(:]", block[1], re.MULTILINE))


@pytest.mark.node
def test_the_types_are_those_of_the_client() -> None:
    found = {
        name: set(there) for name, there in orjson.loads(run_node(MEMBERS)).items()
    }
    types = (WEB / "client.d.ts").read_text() + (WEB / "fold.d.ts").read_text()
    values = re.findall(r"^export (?:class|function) (\w+)", types, re.MULTILINE)
    types += (WEB / "machine" / "session.d.ts").read_text()
    assert found.pop("exports") == set(values) - {"crc32", "contentText"}
    for name, there in found.items():
        expected = declared(types, name) - {"constructor"}
        assert there - INTERNAL.get(name, set()) == expected, name
    source = (WEB / "client.js").read_text()
    block = re.search(r"constructor\(\{\n(.*?)\n  \}\)", source, re.DOTALL)
    assert block is not None
    options = set(re.findall(r"^    (\w+)[ ,]", block[1], re.MULTILINE))
    assert options == declared(types, "ClientOptions")


@pytest.mark.node
def test_the_example_of_the_readme_runs(address: str) -> None:
    readme = (WEB / "README.md").read_text()
    example = re.findall(r"```js\n(.*?)```", readme, re.DOTALL)[0]
    assert len(example.strip().splitlines()) <= 11
    script = example.replace(
        "ws://127.0.0.1:8765/", address.replace("http:", "ws:")
    ).replace("open()", f"open('fast', {{ config: {{ model: '{FAST}' }} }})")
    out = run_node(script, "--experimental-websocket", "--no-warnings")
    assert "What can I try here?" in out.replace("\n", "")
    assert out.endswith("completed\n")


@pytest.mark.node
def test_sessions_on_the_real_server(address: str) -> None:
    url = address.replace("http:", "ws:") + "v1/chat"
    script = Path(__file__).parent / "on_server.mjs"
    went_well = run_node(
        f"process.argv[2] = {url!r}; await import({str(script)!r});",
        "--experimental-websocket",
        "--no-warnings",
    )
    assert len(went_well.splitlines()) == 8


def test_the_package_names_files_that_are_there() -> None:
    package = orjson.loads((WEB / "package.json").read_text())
    named = [package["types"]]
    for target in package["exports"].values():
        named += target.values() if isinstance(target, dict) else [target]
    assert all((WEB / name).is_file() for name in named), named


def test_the_package_brings_the_licence() -> None:
    licence = (WEB.parents[1] / "LICENSE").read_text()
    assert (WEB / "LICENSE").read_text() == licence


def test_the_page_of_the_docs_lists_all_keys() -> None:
    docs = (WEB.parents[1] / "docs" / "how-to" / "chat-page.md").read_text()
    source = (WEB / "page" / "page.js").read_text()
    keys = re.findall(r'key: "(.)", says', source)
    assert len(keys) > 5
    assert [key for key in keys if f"Alt Shift {key}" not in docs] == []
