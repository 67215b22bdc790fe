"""What every test has: the event loop's kind, and no blocking call inside it."""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator

import pytest
import structlog
from blockbuster import blockbuster_ctx
from hypothesis import settings

settings.register_profile("patient", settings(), deadline=None)  # machines are busy
settings.load_profile("patient")

# What a script starts in the background has Ctrl-C ignored, and so has all it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """asyncio, as in production; rooms that are portable ask for more in their own."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def plain_log() -> None:
    """Log lines as plain text: pretty tracebacks read files, which blocks the loop."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.KeyValueRenderer(),
        ]
    )


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails an async test in which our code calls what blocks the event loop."""
    if "anyio_backend" not in request.fixturenames:
        yield
        return
    ours = ["wsserver", "protocol", "client_demo"]
    with blockbuster_ctx(scanned_modules=ours) as blockbuster:
        for function in blockbuster.functions.values():
            # A log line may read source files, to show a traceback.
            function.can_block_in("structlog/_base.py", "_proxy_to_logger")
            # It does so for a bounded time, which its own tests look at.
            function.can_block_in("sqlite/worker.py", "call_shortly")
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for a process or a browser."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Begins with the slow ones, so that no worker is left alone with one at the end."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """What was collected stays: else a third of the time goes to looking through it."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    gc.unfreeze()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Measures nothing of a test that is marked `no_cover`: it takes three times as long.

    In a worker two measure, of which pytest-cov lets one pause.
    """
    tracer = sys.gettrace()
    if item.get_closest_marker("no_cover"):
        sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    """In CI a part that is missing is a fault, not a reason to skip its tests."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[
    None, pytest.CollectReport, pytest.CollectReport
]:
    """The same for a file that is skipped whole."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
    return report
