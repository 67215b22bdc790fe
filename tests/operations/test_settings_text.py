"""Settings written down can be given back, and hold no secret."""

import tomllib
from pathlib import Path

import pytest

from wsserver.operations.settings_text import as_toml, as_variables
from wsserver.settings import TABLES, SettingsError
from wsserver.settings.sources import FIELDS, load


def test_what_is_shown_can_be_used_as_the_file(tmp_path: Path) -> None:
    file = tmp_path / "wsserver.toml"
    file.write_text(
        'port = 7\nallowed_origins = ["https://a.example"]\nretention_days = 1.5\n'
        'params_allowed = ["n", "temperature"]\n'
        "params_max = { max_tokens = 9, temperature = 1.5 }\n"
        '[models."a b"]\nbase_url = "http://up/v1"\ncontext_tokens = 9\n'
        "params = { max_tokens = 3, temperature = 0, logprobs = false,"
        ' stop = ["\\u2028"], plugins = [{ id = "web", n = [[{}]] }] }\n'
        "params_allowed = []\nparams_max = {}\n"
        '[models.b]\nbase_url = "http://up/v1"\n'
        'params_allowed = ["*"]\nparams_max = { max_tokens = 4 }\n'
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


def test_passwords_in_urls_and_telling_variables_are_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "wsserver.toml"
    file.write_text(
        '[models.m]\nbase_url = "http://ann:HUSH@up/v1"\n'
        '[mcp.files]\ncommand = ["files"]\n'
        'env = { LEVEL = "2", API_TOKEN = "HUSH", DATABASE = "db://ann:HUSH@db/" }\n'
        '[mcp.far]\nurl = "http://ann:HUSH@mcp/"\n'
    )
    environ = {"OPENAI_BASE_URL": "http://ann:HUSH@up/v1"}
    loaded = load(flags={}, environ=environ, config=file)
    shown, variables = as_toml(loaded), as_variables(loaded)
    assert "HUSH" not in shown + variables
    table = tomllib.loads(shown)
    assert table["mcp"] == {
        "files": {"command": ["files"], "env": {"LEVEL": "2"}, "tools": ["*"]},
        "far": {"tools": ["*"]},
    }
    lines = shown.splitlines()
    assert '# base_url = "http://***@up/v1"' in lines
    assert "# env.API_TOKEN is set" in lines
    assert "#OPENAI_BASE_URL=http://***@up/v1" in variables.splitlines()


def test_a_url_that_can_not_be_used_is_named_without_its_password() -> None:
    environ = {"WSSERVER_AUTH_JWT_JWKS_URL": "ftp://ann:HUSH@keys/"}
    with pytest.raises(SettingsError, match=r"auth_jwt_jwks_url: 'ftp://\*\*\*@keys/'"):
        load(flags={}, environ=environ)


def test_headers_that_are_secrets_are_named_only(tmp_path: Path) -> None:
    file = tmp_path / "wsserver.toml"
    file.write_text(
        '[models.m]\nbase_url = "http://up/v1"\n'
        'headers = { api-key = "HUSH", x-team = "red" }\n'
        'headers_env = { x-gateway-token = "TOKEN" }\n'
    )
    shown = as_toml(load(flags={}, environ={}, config=file))
    assert "HUSH" not in shown
    assert "# headers.api-key is set" in shown.splitlines()
    assert tomllib.loads(shown)["models"]["m"] == {
        "base_url": "http://up/v1",
        "headers": {"x-team": "red"},
        "headers_env": {"x-gateway-token": "TOKEN"},
    }
