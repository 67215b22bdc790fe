from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsserver.settings import TABLES, Settings, SettingsError
from wsserver.settings.sources import FIELDS, load

FIXED = {
    "host": "127.0.0.1",
    "port": 8765,
    "upstream_connect_timeout_seconds": 10,
    "upstream_first_token_timeout_seconds": 60,
    "upstream_idle_timeout_seconds": 30,
    "turn_timeout_seconds": 600,
    "tool_timeout_seconds": 120,
    "detach_grace_seconds": 60,
    "drain_seconds": 10,
    "heartbeat_seconds": 20,
    "dead_after_seconds": 60,
    "slow_after_seconds": 30,
    "max_frame_bytes": 262_144,
    "max_conversations": 128,
    "max_active_turns": 16,
    "max_queued": 8,
}


def settings(
    flags: dict[str, str] | None = None,
    environ: dict[str, str] | None = None,
    config: Path | None = None,
) -> Settings:
    return load(flags=flags or {}, environ=environ or {}, config=config).settings


def complaint(**sources: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        settings(**sources)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "wsserver.toml"


@pytest.mark.parametrize("name", FIXED)
def test_what_others_rely_on_has_its_name_and_default(name: str) -> None:
    assert getattr(Settings(), name) == FIXED[name]


@pytest.mark.parametrize(
    "name",
    ["retention_days", "allowed_origins", "auth_keys_file", "upstream_pool_size"],
)
def test_what_others_rely_on_can_be_set(name: str) -> None:
    assert name in FIELDS


def test_the_later_source_wins(file: Path) -> None:
    file.write_text("port = 1\nmax_queued = 2\ndrain_seconds = 3\n")
    environ = {"WSSERVER_MAX_QUEUED": "20", "WSSERVER_DRAIN_SECONDS": "30"}
    loaded = load(flags={"drain_seconds": "300"}, environ=environ, config=file)
    values = loaded.settings
    assert (values.port, values.max_queued, values.drain_seconds) == (1, 20, 300)
    assert loaded.origins["port"] == f"{file}: port"
    assert loaded.origins["max_queued"] == "WSSERVER_MAX_QUEUED"
    assert loaded.origins["drain_seconds"] == "--drain-seconds"
    assert loaded.origins["host"] == "default"


def test_the_file_may_be_named_by_a_variable(file: Path) -> None:
    file.write_text("port = 1\n")
    assert settings(environ={"WSSERVER_CONFIG": str(file)}).port == 1


def test_the_variables_of_the_sdk_mean_what_they_mean_everywhere() -> None:
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://up/v1"}
    values = settings(environ=environ)
    assert (values.openai_api_key, values.openai_base_url) == ("k", "http://up/v1")
    ours = environ | {"WSSERVER_OPENAI_BASE_URL": "http://other/v1"}
    assert settings(environ=ours).openai_base_url == "http://other/v1"
    empty = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}
    assert settings(environ=empty) == Settings()


def test_a_list_is_a_list_in_the_file_and_commas_elsewhere(file: Path) -> None:
    file.write_text('allowed_origins = ["https://a.example", "http://b.example:8"]')
    expected = ("https://a.example", "http://b.example:8")
    assert settings(config=file).allowed_origins == expected
    given_as = "https://a.example, http://b.example:8"
    assert settings({"allowed_origins": given_as}).allowed_origins == expected
    assert settings(environ={"WSSERVER_ALLOWED_ORIGINS": ""}).allowed_origins == ()


def test_none_takes_a_limit_away(file: Path) -> None:
    file.write_text("retention_days = 30\n")
    assert settings(config=file).retention_days == 30
    assert settings({"retention_days": "none"}, config=file).retention_days is None


def test_models_are_tables_of_the_file(file: Path) -> None:
    file.write_text('[models."big one"]\nbase_url = "http://up/v1"\nmodel = "m"\n')
    model = settings(config=file).models["big one"]
    assert (model.base_url, model.model, model.api_key_env) == (
        "http://up/v1",
        "m",
        None,
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("port", "x", "a whole number from 0 to 65535"),
        ("port", "70000", "a whole number from 0 to 65535"),
        ("port", "", "a whole number from 0 to 65535"),
        ("port", "tcp://10.0.0.1:8765", "a whole number from 0 to 65535"),
        ("port", "none", "a whole number from 0 to 65535"),
        ("heartbeat_seconds", "0", "a number above 0 to 31536000"),
        ("drain_seconds", "-1", "a number from 0 to 31536000"),
        ("drain_seconds", "inf", "a number from 0 to "),
        ("drain_seconds", "nan", "a number from 0 to "),
        ("max_frame_bytes", "163839", "a whole number from 163840"),
        ("retention_days", "never", "a number above 0 to 36500 or none"),
        ("log_format", "xml", "console or json"),
        ("store", "postgres", "memory, sqlite or sqlite:PATH"),
        ("store", "memory:x", "memory, sqlite or sqlite:PATH"),
        ("host", "", "text"),
        (
            "allowed_origins",
            "chat.example.org",
            "a list, each an origin such as https://",
        ),
        (
            "allowed_origins",
            "https://a.example/path",
            "a list, each an origin such as https://",
        ),
    ],
)
def test_a_bad_value_is_blamed_on_its_source(
    name: str, value: str, expected: str
) -> None:
    variable = f"WSSERVER_{name.upper()}"
    for sources, origin in [
        ({"flags": {name: value}}, f"--{name.replace('_', '-')}"),
        ({"environ": {variable: value}}, variable),
    ]:
        text = complaint(**sources)
        assert text.startswith(f"{name}: ")
        assert f"from {origin} can't be used" in text
        assert f"expected {expected}" in text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("port = 'x'", "port: 'x' from {file}: port can't be used"),
        ("port = true", "port: true from {file}: port can't be used"),
        ("port = 2026-01-02", "port: 2026-01-02 from {file}: port can't be used"),
        ("port = 07:32:00", "port: 07:32:00 from {file}: port can't be used"),
        ("port = '80'", "expected a whole number from 0 to 65535, without quotes"),
        ("drain_seconds = '5'", "expected a number from 0 to 31536000, without quotes"),
        ("retention_days = '5'", " to 36500 or none, without quotes"),
        ("port = 80.0", "port: 80.0 from {file}: port can't be used"),
        ("inspect = 1", "inspect: 1 from {file}: inspect can't be used"),
        ("host = 5", "host: 5 from {file}: host can't be used; expected text"),
        (
            "allowed_origins = 'https://a.example'",
            "allowed_origins can't be used; expected a list, each an origin",
        ),
        ("prot = 1", "prot: unknown setting in {file}; did you mean port?"),
        ("zzzz = 1", "`wsserver config show` lists all"),
        ("port = ", "config: {file}: not valid TOML"),
        ("openai_api_key = 'k'", "may hold no secret; set OPENAI_API_KEY instead"),
        ("[models.a]\nmodel = 'b'", "missing required field `base_url`"),
        ("[models.a]\nbase_url = 'b'\nbase_ulr = 'c'", "unknown field `base_ulr`"),
        (
            "[models.a]\nbase_url = 4",
            "models.a.base_url: Expected text, got a whole number in",
        ),
        ("models = 3", "models: 3 from {file}: models can't be used; expected a table"),
        (
            "[params_max]\nn = 'x'",
            (
                "params_max.n: Expected a number, got text in {file}; write a number"
                " from 0"
            ),
        ),
        (
            "[params_max]\nn = -1",
            "params_max.n: Expected a whole number >= 0 in {file}; write",
        ),
        ("[params_max]\nn = inf", "params_max.n: Expected a number <= "),
        ("params_max = 3", "params_max can't be used; expected a table of numbers"),
        (
            "[models.a]\nbase_url = 'b'\nparams_max = 4",
            (
                "models.a.params_max: Expected a table, got a whole number in {file}; write"
                " a table of numbers\n"
            ),
        ),
        (
            "[models.a]\nbase_url = 'b'\nparams_max = {n = 1, seed = -1}",
            "models.a.params_max.seed: Expected a whole number >= 0 in {file}; write a number from 0\n",
        ),
        (
            "[models.a]\nbase_url = 'b'\nheaders = {x-team = 1}",
            "models.a.headers.x-team: Expected text, got a whole number in {file}; write text\n",
        ),
        (
            "[models.a]\nbase_url = 'b'\nheaders = 'x-team'",
            "models.a.headers: Expected a table, got text in {file}; write a table of text\n",
        ),
        (
            "[models.a]\nbase_url = 'b'\nparams = 1",
            "models.a.params: Expected a table, got a whole number in {file}; write a table\n",
        ),
        (
            "[models.a]\nbase_url = 'b'\nparams_allowed = [1]",
            (
                "models.a.params_allowed[0]: Expected text, got a whole number in {file}; write a"
                " list, each text\n"
            ),
        ),
        (
            "[models.a]\nbase_url = 'b'\ncontext_tokens = 0",
            "models.a.context_tokens: Expected a whole number >= 1 in {file}; write a whole number from 1\n",
        ),
        (
            "[models.a]\nbase_url = 'b'\nparams_max = {max_tokens = '5'}",
            (
                "models.a.params_max.max_tokens: Expected a number, got text in"
                " {file}; write a number from 0\n"
            ),
        ),
        ("[params_max]\nn = '5'", "params_max.n: Expected a number, got text in"),
        (
            "[tools.a]\ncall = 'b'\ntimeout_seconds = '5'",
            "tools.a.timeout_seconds: Expected a number, got text in {file}; write a",
        ),
        *(
            (
                f"[{table}]\n{misspelt} = 1",
                f"contains unknown field `{misspelt}` in {{file}}; did you mean {meant}?\n",
            )
            for table, misspelt, meant in (
                ("models.a", "base_ulr", "base_url"),
                ("models.a", "fallbak", "fallback"),
                ("models.a", "max_tokns", "params.max_tokens"),
                ("models.a", "max_tokens", "params.max_tokens"),
                ("tools.a", "timeout_second", "timeout_seconds"),
                ("mcp.a", "commandd", "command"),
            )
        ),
        (
            "[tools.a]\nzzzz = 1",
            (
                "tools.a: contains unknown field `zzzz` in {file}; [tools.NAME] may have"
                " call, description, timeout_seconds\n"
            ),
        ),
        (
            "[mcp.a]\nurl = 'ftp://b'",
            "'^https?://' in {file}; write text that fits ^https?://\n",
        ),
        (
            "[models]\na = 3",
            "models.a: Expected a table, got a whole number in {file}; [models.NAME] may have base_url,",
        ),
    ],
)
def test_a_bad_file_is_named(file: Path, content: str, expected: str) -> None:
    file.write_text(content)
    assert expected.format(file=file) in f"{complaint(config=file)}\n"


LONG, DEEP = "9" * 5000, "[" * 3000 + "]" * 3000
MODEL = "[models.a]\nbase_url = 'b'\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"port = {LONG}", "config: {file}: not valid TOML: an integer is too long; "),
        (f"port = {DEEP}", "config: {file}: not valid TOML: it is nested too deep; "),
        (
            f"port = 0x{'f' * 5000}",
            "port: an integer beyond 64 bits in {file}; write a smaller one",
        ),
        (
            f"{MODEL}params = {{ seed = {10**30} }}",
            "models.a.params.seed: an integer beyond 64 bits in {file}; write a smaller",
        ),
        (
            f"{MODEL}params = {{ x = [1, {{ y = -{2**63 + 1} }}] }}",
            "models.a.params.x[1].y: an integer beyond 64 bits in {file}",
        ),
        (
            f"{MODEL}params.{'.'.join('x' * 3000)} = 1",
            "models: tables and lists that stand more than 64 deep in each other in {file}",
        ),
        (
            f"port = {'[' * 100}{']' * 100}",
            "port: tables and lists that stand more than 64 deep in each other in {file}",
        ),
    ],
    ids=range(7),
)
def test_what_no_file_can_mean_is_named(
    file: Path, content: str, expected: str
) -> None:
    file.write_text(content)
    assert complaint(config=file).startswith(expected.format(file=file))


def test_what_is_as_large_and_as_deep_as_may_be_is_taken(file: Path) -> None:
    deep = "[" * 60 + "]" * 60
    file.write_text(f"{MODEL}params = {{ x = {deep}, y = {2**64 - 1}, z = -{2**63} }}")
    params = settings(config=file).models["a"].params
    assert (params["y"], params["z"]) == (2**64 - 1, -(2**63))


@pytest.mark.parametrize("value", [LONG, DEEP])
def test_a_long_value_is_told_by_its_beginning(value: str) -> None:
    text = complaint(environ={"WSSERVER_PORT": value})
    assert f"port: '{value[:64]}…' from WSSERVER_PORT can't be used" in text
    assert len(text) < 200


@pytest.mark.parametrize(
    "content",
    [
        "[[models]]\nbase_url = 'b'\nheaders = { X-Key = 'secret' }",
        "[[mcp]]\ncommand = ['a']\nenv = { KEY = 'secret' }",
        "[host]\nkey = 'secret'",
    ],
)
def test_a_table_in_the_wrong_place_is_told_without_what_is_in_it(
    file: Path, content: str
) -> None:
    file.write_text(content)
    text = complaint(config=file)
    assert "can't be used; expected" in text
    assert "secret" not in text


def test_a_list_that_can_not_be_used_is_told_by_its_beginning(file: Path) -> None:
    file.write_text(f"port = {list(range(1000))}")
    text = complaint(config=file)
    assert "port: [0, 1, 2, 3, " in text
    assert len(text) < 300


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    assert f"config: {file}: No such file" in complaint(config=file)
    file.write_bytes(b"\xff")
    assert f"config: {file}: the file is not UTF-8" in complaint(config=file)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_tables_do_not_fit_a_variable(name: str) -> None:
    assert "use a file" in complaint(environ={f"WSSERVER_{name.upper()}": "{}"})


def test_a_variable_that_is_no_setting_is_a_warning() -> None:
    loaded = load(flags={}, environ={"WSSERVER_PROT": "1", "OTHER": "2"})
    assert loaded.warnings == (
        "WSSERVER_PROT: no such setting; did you mean WSSERVER_PORT?",
    )


def test_a_variable_for_a_secret_under_our_prefix_is_a_warning() -> None:
    loaded = load(flags={}, environ={"WSSERVER_OPENAI_API_KEY": "hush"})
    assert loaded.settings.openai_api_key is None
    assert loaded.warnings == (
        "WSSERVER_OPENAI_API_KEY: no such setting; did you mean OPENAI_API_KEY?",
    )


@given(st.data())
def test_any_text_in_any_setting_is_taken_or_refused_in_one_line(
    data: st.DataObject,
) -> None:
    name = data.draw(st.sampled_from(sorted(set(FIELDS) - TABLES - {"host"})))
    value = data.draw(st.text(st.characters(exclude_categories=["Cs"])))
    text = ""
    try:
        taken = settings({name: value})
    except SettingsError as error:
        text = str(error)
    else:
        msgspec.convert(msgspec.to_builtins(taken), Settings)
    assert "\n" not in text
    assert not text or name in text
