"""The child process that holds a local model: llama.cpp's server, and a leash.

It is run by file name and imports nothing of this project. From its standard
input it reads one line, `ChildSettings` as JSON; to its standard output it
writes one line, `Ready` or `Unable`; then it serves until its standard input
ends, which happens when the parent closes it and also when the parent dies.
Loading a model holds the interpreter, so it notices either only after that.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Protocol

import msgspec

MISSING_PACKAGE = (
    "a local model needs the package xllamacpp: `requirements/install model` in a"
    " checkout, or pip install '.[local]' there"
)


class ChildSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the child serves, and to whom.

    Attributes:
        weights: Path of a GGUF file.
        name: What the model is called in requests.
        api_key: Whoever asks has to show it.
        port: On loopback; 0 for a free one.
        context_tokens: Shared evenly by all slots.
        slots: How many requests are answered at a time; more of them wait.
        threads: Of computation.
    """

    weights: str
    name: str
    api_key: str
    port: int
    context_tokens: int
    slots: int
    threads: int


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The model is loaded and requests are accepted at `url`."""

    url: str


class Unable(msgspec.Struct, frozen=True, tag="unable"):
    """There will be no server; `reason` is for whoever set it up."""

    reason: str


Report = Ready | Unable


class Server(Protocol):
    """What is used of `xllamacpp.Server`: it serves from construction on."""

    listening_address: str


def main() -> None:
    """Serves one model for as long as standard input is open."""
    report_fd = _keep_standard_output()
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=ChildSettings)
    if not Path(settings.weights).is_file():
        return _report(report_fd, Unable(f"there is no file {settings.weights}"))
    try:
        server = _serve(settings)
    except ModuleNotFoundError:
        return _report(report_fd, Unable(MISSING_PACKAGE))
    except (ImportError, RuntimeError) as error:
        return _report(report_fd, Unable(f"{settings.weights}: {error}"))
    _report(report_fd, Ready(server.listening_address))
    sys.stdin.buffer.read()
    # Not by returning: taking the server down in order waits for running requests.
    os._exit(0)


def _serve(settings: ChildSettings) -> Server:
    xllamacpp = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings.weights
    params.model_alias = {settings.name}
    params.hostnames = ["127.0.0.1"]
    params.port = settings.port
    params.api_keys = [settings.api_key]
    params.n_ctx = settings.context_tokens
    params.n_parallel = settings.slots
    params.cpuparams.n_threads = settings.threads
    params.cpuparams_batch.n_threads = settings.threads
    params.endpoint_slots = True
    params.endpoint_metrics = True
    return xllamacpp.Server(params)


def _keep_standard_output() -> int:
    """Makes standard output the report's alone; what is printed goes to the log."""
    report_fd = os.dup(1)
    os.dup2(2, 1)
    return report_fd


def _report(report_fd: int, report: Report) -> None:
    os.write(report_fd, msgspec.json.encode(report) + b"\n")
    os.close(report_fd)


if __name__ == "__main__":
    main()
