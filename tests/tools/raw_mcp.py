"""An MCP server on standard streams, written by hand: of an old version, and rude.

It speaks version 2025-06-18 and answers one line after the other. `--log FILE` gets
a line for each message it was sent; `--refuse` makes it end at once, `--stay` makes
it end by force only, `--idle` takes its tools away, `--odd` adds such as no client
can take, and lists them in circles, `--batch` makes it send arrays of messages.
"""

import json  # noqa: TID251 - it stands for servers of others
import os
import signal
import sys
import threading
from pathlib import Path

LOCK = threading.Lock()
NEVER = threading.Event()


def say(message: dict) -> None:
    whole = {"jsonrpc": "2.0", **message}
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    with LOCK:
        said = [notice, whole] if "--batch" in sys.argv else whole
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


def listed() -> list[dict]:
    return [
        {
            "name": name,
            "description": f"It is {name}.",
            "inputSchema": {"type": "object", "properties": properties},
        }
        for name, (_, properties) in TOOLS.items()
    ]


def text(what: str, *, is_error: bool = False) -> dict:
    return {"content": [{"type": "text", "text": what}], "isError": is_error}


def echo(given: dict, _: dict) -> dict:
    return text(given["text"])


def fail(given: dict, _: dict) -> dict:
    return text(given["text"], is_error=True)


def wait(given: dict, _: dict) -> dict:
    NEVER.wait(given["seconds"])
    return text("waited")


def steps(given: dict, params: dict) -> dict:
    token = params["_meta"]["progressToken"]
    for step in range(given["count"]):
        NEVER.wait(0.1)
        progress = {"progressToken": token, "progress": step}
        say({"method": "notifications/progress", "params": progress})
    return text("stepped")


def huge(given: dict, _: dict) -> dict:
    return text("x" * given["size"])


def endless(*_: dict) -> dict:
    with LOCK:
        sys.stdout.write("x" * (6 * 2**20))
        sys.stdout.flush()
        NEVER.wait()
    return text("")


def die(*_: dict) -> dict:
    sys.stderr.write(f"I die. {os.environ.get('WRONG_TOKEN', '')}\n")
    sys.stderr.flush()
    os._exit(3)


def deaf(*_: dict) -> dict:
    NEVER.wait()
    return text("")


def grow(*_: dict) -> dict:
    TOOLS["late"] = (deaf, {})
    say({"method": "notifications/tools/list_changed"})
    return text("grown")


def babble(*_: dict) -> dict:
    with LOCK:
        sys.stdout.write('hello\n{"a": 1}\n[]\n\n')
    return text("babbled")


def whoami(*_: dict) -> dict:
    names = ("PATH", "MINE", "OPENAI_API_KEY")
    seen = {name: os.environ.get(name, "") != "" for name in names}
    return {"content": [], "structuredContent": seen}


def nonsense(*_: dict) -> dict:
    return {"content": "nonsense"}


def half(*_: dict) -> dict:
    return text("cut \ud83d")


def deep(*_: dict) -> dict:
    inner: list = []
    for _ in range(300):
        inner = [inner]
    return {"content": [], "structuredContent": {"deep": inner}}


def video(*_: dict) -> dict:
    blocks = [{"type": "video", "data": "x"}, 3, {"type": "text"}]
    return {"content": [*text("see:")["content"], *blocks]}


def refuse(*_: dict) -> dict:
    raise ValueError(os.environ.get("WRONG_TOKEN", "No."))


TOOLS = {
    "echo": (echo, {"text": {"type": "string"}}),
    "fail": (fail, {"text": {"type": "string"}}),
    "wait": (wait, {"seconds": {"type": "number"}}),
    "steps": (steps, {"count": {"type": "integer"}}),
    "huge": (huge, {"size": {"type": "integer"}}),
    "endless": (endless, {}),
    "die": (die, {}),
    "deaf": (deaf, {}),
    "grow": (grow, {}),
    "babble": (babble, {}),
    "refuse": (refuse, {}),
    "whoami": (whoami, {}),
    "nonsense": (nonsense, {}),
    "half": (half, {}),
    "deep": (deep, {}),
    "video": (video, {}),
    "bad name/x": (echo, {}),
}


OBJECT = {"type": "object"}
ODD = [
    {"name": "no_schema"},
    {"name": "no_object", "inputSchema": {"type": "string"}},
    {"inputSchema": OBJECT},
    "nothing",
    {"name": "word", "inputSchema": {"type": "object", "properties": {"x": 3}}},
    {"name": "int", "inputSchema": {**OBJECT, "properties": {"x": {"type": "int"}}}},
    {"name": "told", "description": 3, "inputSchema": OBJECT},
    # What is wrong with these concerns nobody here.
    {"name": "icons", "inputSchema": OBJECT, "icons": 3, "outputSchema": []},
    {"name": "titled", "title": "It.", "description": None, "inputSchema": OBJECT},
]


def call(request: int, params: dict) -> None:
    function, _ = TOOLS[params["name"]]
    try:
        result = function(params.get("arguments", {}), params)
    except (KeyError, ValueError) as error:
        say({"id": request, "error": {"code": -32603, "message": str(error)}})
    else:
        say({"id": request, "result": result})


def answer(message: dict) -> None:
    request = message.get("id")
    match message["method"]:
        case "initialize":
            capabilities = (
                {} if "--idle" in sys.argv else {"tools": {"listChanged": True}}
            )
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": capabilities,
                "serverInfo": {"name": "raw", "version": "1"},
            }
            say({"id": request, "result": result})
        case "tools/list" if "--odd" in sys.argv:
            first = "cursor" not in message.get("params", {})
            tools = ODD + listed()[:1] if first else []
            page = {"tools": tools, "nextCursor": "again"}
            say({"id": request, "result": page})
        case "tools/list":
            first = "cursor" not in message.get("params", {})
            page = {"tools": listed()[:9], "nextCursor": "more"}
            say({"id": request, "result": page if first else {"tools": listed()[9:]}})
        case "tools/call" if message["params"]["name"] == "deaf":
            call(request, message["params"])
        case "tools/call":
            threading.Thread(
                target=call, args=(request, message["params"]), daemon=True
            ).start()
        case _ if request is not None:
            say({"id": request, "error": {"code": -32601, "message": "No method."}})


def main() -> None:
    options = sys.argv[1:]
    if "--refuse" in options:
        sys.stderr.write("I won't.\n")
        sys.exit(1)
    if "--stay" in options:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log = Path(options[options.index("--log") + 1]) if "--log" in options else None
    for line in sys.stdin:
        message = json.loads(line)
        if log is not None:
            with log.open("a") as out:
                out.write(f"{message['method']} {message.get('params', {})}\n")
        answer(message)
    if "--stay" in options:
        NEVER.wait()


main()
