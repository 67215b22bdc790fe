"""Settings written down can be given back, and hold no secret."""

import tomllib
from pathlib import Path

from wsserver.operations.settings_text import as_toml
from wsserver.settings import TABLES
from wsserver.sources import FIELDS, load


def test_what_is_shown_can_be_used_as_the_file(tmp_path: Path) -> None:
    file = tmp_path / "wsserver.toml"
    file.write_text(
        'port = 7\nallowed_origins = ["https://a.example"]\nretention_days = 1.5\n'
        '[models."a b"]\nbase_url = "http://up/v1"\ncontext_tokens = 9\n'
    )
    loaded = load(flags={"log_format": "json"}, environ={}, config=file)
    again = file.with_name("again.toml")
    again.write_text(as_toml(loaded))
    assert load(flags={}, environ={}, config=again).settings == loaded.settings


def test_what_is_shown_says_where_it_comes_from_and_no_secret() -> None:
    secret = "HUSH123"  # noqa: S105
    loaded = load(flags={"port": "7"}, environ={"OPENAI_API_KEY": secret})
    text = as_toml(loaded)
    assert secret not in text
    assert "# openai_api_key is set " in text
    (line,) = [line for line in text.splitlines() if line.startswith("port ")]
    assert line.split() == ["port", "=", "7", "#", "--port"]
    assert set(tomllib.loads(text)) == set(FIELDS) - TABLES - {"openai_api_key"}
