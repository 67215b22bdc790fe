"""What the figures were measured with: the machine and the versions, and no names."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    *("websockets", "uvloop", "openai", "aiohttp", "httpx2", "msgspec", "orjson"),
    *("fastapi", "uvicorn", "python-socketio"),
)


def machine() -> str:
    """Returns a line on the machine and a line on the software."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    python = f"{platform.python_implementation()} {platform.python_version()}"
    found = [f"{name} {number}" for name in PACKAGES if (number := _version(name))]
    programs = [
        f"{name} {number}"
        for name in ("node", "nginx")
        if (number := _program_version(name))
    ]
    return (
        f"{os.cpu_count()} cores ({_processor()}), {memory:.0f} GiB,"
        f" {platform.system()} {platform.release().split('-')[0]}.\n"
        f"{', '.join([python, *found, *programs])}.\n"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _program_version(name: str) -> str | None:
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if program is None:
        return None
    flag = "--version" if name == "node" else "-v"
    run = subprocess.run(  # noqa: S603
        [program, flag], capture_output=True, text=True, check=False, timeout=10
    )
    return (run.stdout + run.stderr).strip().rpartition("/")[2].lstrip("v")
