"""`wsserver config check` and `env`."""

from pathlib import Path

import orjson
import pytest

from tests.operations.conftest import Command
from wsserver.settings import SECRETS, TABLES
from wsserver.settings.sources import FIELDS, load


def statuses(out: str) -> list[tuple[str, str]]:
    """Returns status and check of each line."""
    return [(line.split()[0], line.split()[1]) for line in out.splitlines()]


def test_what_a_server_would_start_with_is_ok(wsserver: Command) -> None:
    ran = wsserver("config", "check", "--port", "7", WSSERVER_HOST="::1")

    assert ran.code == 0
    checks = ["settings", "credentials", "endpoint", "metrics", "models"]
    assert statuses(ran.out) == [("ok", check) for check in checks]
    assert "2 given" in ran.out


def test_who_may_read_the_metrics(wsserver: Command, tmp_path: Path) -> None:
    keys, token = tmp_path / "keys", tmp_path / "token"
    keys.write_text("ann:0123456789abcdef\n")
    keys.chmod(0o600)
    token.write_text("s3cret\n")
    public = ("config", "check", "--host", "192.0.2.7", "--auth-keys-file", str(keys))
    for flags, said in (
        ((), "ok    metrics       for programs on this machine"),
        (("--metrics-access", "open"), "warn  metrics       anyone who reaches"),
        (
            ("--metrics-access", "token", "--metrics-token-file", str(token)),
            "ok    metrics       for whoever has the token",
        ),
    ):
        ran = wsserver(*public, *flags)
        assert ran.code == 0
        assert said in ran.out
        assert "s3cret" not in ran.out
    assert (
        "for whoever reaches"
        in wsserver("config", "check", "--metrics-access", "open").out
    )


@pytest.mark.parametrize("held", [None, "", "two words", "\u00e4", b"\xff"])
def test_a_token_for_the_metrics_that_is_none(
    wsserver: Command, tmp_path: Path, held: str | bytes | None
) -> None:
    token = tmp_path / "token"
    if held is not None:
        token.write_bytes(held if isinstance(held, bytes) else held.encode())
    ran = wsserver(
        "config", "check", "--metrics-access", "token",
        "--metrics-token-file", str(token),
    )  # fmt: skip
    assert ran.code == 2
    assert "fail  metrics       metrics_token_file: " in ran.out


def test_a_name_that_is_no_setting_is_a_warning(wsserver: Command) -> None:
    ran = wsserver("config", "check", WSSERVER_PROT="1", WSSERVER_URL="a client's")

    assert ran.code == 0
    (warning,) = [line for line in ran.lines if line.startswith("warn")]
    assert "WSSERVER_PROT: no such setting -> did you mean WSSERVER_PORT?" in warning


@pytest.mark.parametrize(
    ("flags", "failure"),
    [
        (
            ["--port", "x"],
            "settings      port: 'x' from --port can't be used -> expected",
        ),
        (["--config", "/nowhere"], "settings      config: /nowhere: No such file"),
        (["--host", "192.0.2.7"], "no credentials are configured, so anyone"),
        (
            ["--store", "sqlite:/proc/x/y.db"],
            "store         /proc/x/y.db: nothing can be made in /proc: No such file",
        ),
        (
            ["--store", f"sqlite:{__file__}/x/y.db"],
            f"y.db: {__file__} is no folder -> set another",
        ),
        (["--record", __file__], f"can't make {__file__}: File exists -> name a new"),
        (
            ["--record", "/nonexist/z.jsonl"],
            "recording     record: can't make /nonexist/z.jsonl: No such file",
        ),
        (["--auth-keys-file", "/nowhere"], "credentials   /nowhere: No such file"),
        (
            ["--tls-cert-file", "/nowhere", "--tls-key-file", "/nowhere"],
            "endpoint      tls_cert_file: /nowhere: No such file",
        ),
        (
            ["--default-model", "m"],
            "models        default_model: 'm' leads nowhere -> add",
        ),
        (
            ["--default-model", "demo/nope", "--openai-base-url", "http://x/v1"],
            "'demo/nope': there is no demo model 'nope' -> there are demo/markdown, demo",
        ),
        (
            ["--default-model", "demo/long:tokns=3"],
            "unknown field `tokns` -> there are tokens, tokens_per_second,",
        ),
        (
            ["--model-path", "/nowhere"],
            "models        local_model_path: there is no file",
        ),
        (
            ["--openai-base-url", "x"],
            "openai_base_url: 'x' is no HTTP URL -> write one",
        ),
        (
            [
                "--auth-jwt-key-file=/nowhere",
                "--auth-jwt-audience=a",
                "--auth-jwt-algorithms=RS256",
            ],
            "credentials   auth_jwt_key_file: /nowhere",
        ),
    ],
)
def test_what_would_stop_a_server_is_a_failure(
    wsserver: Command, flags: list[str], failure: str
) -> None:
    ran = wsserver("config", "check", *flags)

    assert (ran.code, ran.err) == (2, "")
    (line,) = [line for line in ran.lines if line.startswith("fail")]
    assert failure in line
    assert " -> " in line


def test_what_could_be_made_is_not_made(wsserver: Command, tmp_path: Path) -> None:
    ran = wsserver(
        "config", "check", "--store", f"sqlite:{tmp_path}/new/s.db",
        "--record", f"{tmp_path}/new.jsonl",
    )  # fmt: skip

    assert ran.code == 0
    assert f"recording     can be made: {tmp_path}/new.jsonl" in ran.out
    assert list(tmp_path.iterdir()) == []


def test_keys_without_tls_are_warned_of(wsserver: Command, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("ann:0123456789abcdef0123456789abcdef\n")
    keys.chmod(0o600)
    clear = (
        "warn  settings      host: 192.0.2.7 can be reached from other machines, and"
    )
    public = ("config", "check", "--host", "192.0.2.7", "--auth-keys-file", str(keys))
    for arguments, warned in (
        (public, True),
        ((*public, "--trusted-proxies", "192.0.2.8"), False),
        ((*public, "--host", "127.0.0.1"), False),
        ((*public, "--tls-cert-file", "/no", "--tls-key-file", "/no"), False),
    ):
        assert (clear in wsserver(*arguments).out) is warned


def test_all_failures_are_told_at_once(wsserver: Command) -> None:
    ran = wsserver(
        "config", "check", "--auth-keys-file", "/nowhere", "--default-model", "m"
    )

    failures = [word for status, word in statuses(ran.out) if status == "fail"]
    assert failures == ["credentials", "models"]


def test_all_settings_that_can_not_be_used_are_told_at_once(
    wsserver: Command, tmp_path: Path
) -> None:
    file = tmp_path / "wsserver.toml"
    file.write_text('defualt_model = "x"\nport = "abc"\n[models.x]\nbase_ur = "x"\n')

    ran = wsserver("config", "check", "--config", str(file), "--log-format", "xml")

    assert statuses(ran.out) == [("fail", "settings")] * 4
    for name in ("defualt_model", "port", "models.x", "log_format"):
        assert f"settings      {name}: " in ran.out
    assert all(" -> " in line for line in ran.lines)
    served = wsserver("serve", "--config", str(file), "--log-format", "xml")
    assert served.code == 2
    assert [line.split()[0] for line in served.err.splitlines()] == ["wsserver:"] * 4


def test_keys_that_can_be_guessed_or_read_are_warned_of(
    wsserver: Command, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("ann:short\n")
    keys.chmod(0o644)

    ran = wsserver("config", "check", "--auth-keys-file", str(keys))

    assert ran.code == 0
    assert statuses(ran.out)[1:4] == [
        ("ok", "credentials"),
        ("warn", "credentials"),
        ("warn", "credentials"),
    ]
    assert "short\n" not in ran.out
    assert "chmod 600" in ran.out


def test_a_secret_that_others_can_read_is_warned_of(
    wsserver: Command, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x" * 32)
    secret.chmod(0o644)

    ran = wsserver(
        "config", "check", "--auth-jwt-algorithms", "HS256",
        "--auth-jwt-key-file", str(secret), "--auth-jwt-audience", "a",
    )  # fmt: skip

    assert ran.code == 0
    assert statuses(ran.out)[1:3] == [("ok", "credentials"), ("warn", "credentials")]
    assert "-> chmod 600 stops that" in ran.out
    assert "auth_jwt_key_file" not in ran.out + ran.err, "a line of the log"


def test_a_program_gets_json(wsserver: Command) -> None:
    ran = wsserver("config", "check", "--json", "--port", "x")

    assert ran.code == 2
    (finding,) = map(orjson.loads, ran.lines)
    assert finding["status"] == "fail"
    assert finding["check"] == "settings"


def test_tools_are_loaded(
    wsserver: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "tools_to_check.py"
    module.write_text('def add(a: int, b: int) -> int:\n    """Adds."""\n')
    file = tmp_path / "w.toml"
    file.write_text(
        '[tools.add]\ncall = "tools_to_check:add"\n'
        '[mcp.files]\ncommand = ["no-such-program"]\n'
    )

    ran = wsserver("config", "check", "--config", str(file))

    assert "1 by name, and those of MCP servers, which were not asked: files" in ran.out


def test_a_port_that_changes_is_a_warning(wsserver: Command) -> None:
    ran = wsserver("config", "check", "--port", "0")

    assert ("warn", "endpoint") in statuses(ran.out)


def test_a_local_model_is_looked_for_but_not_started(
    wsserver: Command, tmp_path: Path
) -> None:
    weights = tmp_path / "m.gguf"
    weights.write_bytes(b"no weights at all")

    ran = wsserver("config", "check", "--model-path", str(weights))

    assert ran.code == 0


def test_the_variables_say_what_the_settings_say(
    wsserver: Command, tmp_path: Path
) -> None:
    """What `env` prints, taken as an environment, gives the same settings."""
    file = tmp_path / "w.toml"
    file.write_text(
        'port = 7\nallowed_origins = ["https://a.example", "https://b.example"]\n'
        "retention_days = 1234567.25e-2\nhost = 'localhost'\n"
    )
    flags = ["--config", str(file), "--drain-seconds", "0.5", "--store", "sqlite:/a b"]

    ran = wsserver("config", "env", *flags, OPENAI_API_KEY="sk-hush")

    assert ran.code == 0
    assert "hush" not in ran.out
    assert "# OPENAI_API_KEY is set" in ran.out
    given = [line for line in ran.lines if not line.startswith("#")]
    assert len(given) == 6
    as_environ = dict(line.split("=", 1) for line in given)
    again = load(flags={}, environ=as_environ)
    asked = load(
        flags={"drain_seconds": "0.5", "store": "sqlite:/a b"},
        environ={},
        config=file,
    )
    assert again.settings == asked.settings
    assert again.warnings == ()


def test_each_setting_has_its_variable_and_the_defaults_hold(wsserver: Command) -> None:
    ran = wsserver("config", "env")

    assert [line for line in ran.lines if not line.startswith("#")] == []
    commented = [line[1:] for line in ran.lines if not line.startswith("# ")]
    as_environ = dict(line.split("=", 1) for line in commented)
    assert len(as_environ) == len(set(FIELDS) - TABLES - SECRETS)
    assert (
        load(flags={}, environ=as_environ).settings
        == load(flags={}, environ={}).settings
    )


def test_own_params_beyond_their_bound_are_one_fault_with_one_remedy(
    wsserver: Command, tmp_path: Path
) -> None:
    file = tmp_path / "wsserver.toml"
    file.write_text(
        '[models.a]\nbase_url = "http://a.invalid/v1"\nparams = { max_tokens = 11 }\n'
        "params_max = { max_tokens = 10 }\n"
    )
    ran = wsserver("config", "check", "--config", str(file))
    assert ran.code == 2
    assert ran.out.splitlines()[-1] == (
        "fail  models        models.a.params.max_tokens: models.a.params_max takes a"
        " number from 0 to 10 only -> correct the one or the other"
    )
