"""One sample, or a few, of every frame, as a client of any language sees them."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def client_frames() -> list[str]:
    return (HERE / "client_frames.jsonl").read_text().splitlines()


@pytest.fixture(scope="session")
def server_frames() -> list[str]:
    return (HERE / "server_frames.jsonl").read_text().splitlines()
