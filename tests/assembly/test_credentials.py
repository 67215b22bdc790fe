"""Settings of credentials: which go together, and what is made of them."""

from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.auth.issuer import AUDIENCE, SECRET, now, pem
from wsserver.assembly import credentials
from wsserver.assembly.credentials import authority
from wsserver.auth.either import EitherAuthority
from wsserver.auth.jwt import JwtAuthority
from wsserver.auth.keys import KeyAuthority
from wsserver.auth.open import OpenAuthority
from wsserver.lifecycle.reload import Reload
from wsserver.settings import Settings, SettingsError, load

JWKS = "https://issuer.example/.well-known/jwks.json"
GOOD = {
    "auth_jwt_algorithms": "RS256, ES256",
    "auth_jwt_jwks_url": JWKS,
    "auth_jwt_audience": AUDIENCE,
}


def settings(**flags: str | None) -> Settings:
    given = {name: value for name, value in flags.items() if value is not None}
    return load(flags=given, environ={}).settings


def complaint(**flags: str | None) -> str:
    with pytest.raises(SettingsError) as caught:
        settings(**flags)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_tokens_are_credentials() -> None:
    values = settings(host="0.0.0.0", **GOOD)  # noqa: S104
    assert values.has_jwt
    assert values.has_credentials
    assert values.auth_jwt_algorithms == ("RS256", "ES256")
    assert not settings().has_credentials
    assert settings(auth_keys_file="k").has_credentials


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"auth_jwt_algorithms": None}, "asks for tokens; set auth_jwt_algorithms too"),
        ({"auth_jwt_audience": None}, "asks for tokens; set auth_jwt_audience too"),
        ({"auth_jwt_jwks_url": None}, "set one of auth_jwt_key_file and auth_jwt_jwks"),
        ({"auth_jwt_key_file": "key.pem"}, "set one of auth_jwt_key_file and"),
        ({"auth_jwt_algorithms": "HS256"}, "need a secret"),
        ({"auth_jwt_algorithms": "RS256,HS256"}, "go with no other algorithm"),
        (
            {
                "auth_jwt_algorithms": "HS256,ES256",
                "auth_jwt_jwks_url": None,
                "auth_jwt_key_file": "k",
            },
            "go with no other algorithm",
        ),
        ({"auth_jwt_algorithms": "none"}, "auth_jwt_algorithms"),
        ({"auth_jwt_algorithms": "RS256,None"}, "a list, each ES256 or ES384"),
        ({"auth_jwt_algorithms": "rs256"}, "a list, each ES256 or ES384"),
        ({"auth_jwt_jwks_url": "file:///etc/keys"}, "an HTTP URL without @"),
        (
            {"auth_jwt_jwks_url": "https://user:hush@issuer.example/k"},
            "an HTTP URL without @",
        ),
        ({"auth_jwt_leeway_seconds": "3600"}, "a number from 0 to 300"),
    ],
)
def test_what_does_not_go_together_is_refused(
    flags: dict[str, str | None], expected: str
) -> None:
    assert expected in complaint(**(GOOD | flags))


@pytest.mark.parametrize("name", ["auth_jwt_issuer", "auth_jwt_scope_claim"])
def test_what_only_tokens_have_asks_for_tokens(name: str) -> None:
    text = complaint(auth_keys_file="keys", **{name: "x"})
    flag = name.replace("_", "-")
    assert text.startswith(f"{name}: --{flag} asks for tokens; set auth_jwt_algorithms")


@pytest.mark.parametrize("name", sorted(GOOD))
def test_one_setting_alone_is_blamed_on_its_source(name: str) -> None:
    text = complaint(**{name: GOOD[name]})
    assert text.startswith(f"{name}: --{name.replace('_', '-')} asks for tokens; set ")


def test_a_secret_goes_with_hmac() -> None:
    flags = {"auth_jwt_algorithms": "HS256,HS512", "auth_jwt_key_file": "secret"}
    assert settings(auth_jwt_audience="a", **flags).has_jwt


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    made: dict[str, str] = {}
    for name, content in {
        "keys": b"ann:a-key-that-is-long-enough",
        "secret": SECRET,
        "public": pem("rsa"),
    }.items():
        file = tmp_path / name
        file.write_bytes(content)
        file.chmod(0o600)
        made[name] = str(file)
    return made


def test_each_way_has_its_authority(files: dict[str, str]) -> None:
    jwt = {
        "auth_jwt_algorithms": "RS256",
        "auth_jwt_key_file": files["public"],
        "auth_jwt_audience": "a",
    }
    kinds: list[tuple[type[Any], dict[str, str]]] = [
        (OpenAuthority, {}),
        (KeyAuthority, {"auth_keys_file": files["keys"]}),
        (JwtAuthority, jwt),
        (JwtAuthority, GOOD),
        (EitherAuthority, jwt | {"auth_keys_file": files["keys"]}),
    ]
    with structlog.testing.capture_logs() as lines:
        for kind, flags in kinds:
            assert type(authority(settings(**flags), now, Reload())) is kind
    assert lines == []


@pytest.mark.parametrize(
    ("name", "file"), [("auth_jwt_key_file", "secret"), ("auth_jwt_key_file", "gone")]
)
def test_a_key_file_of_no_use_names_the_setting(
    files: dict[str, str], name: str, file: str
) -> None:
    flags = {
        "auth_jwt_algorithms": "RS256",
        "auth_jwt_audience": "a",
        name: files.get(file, "/nowhere"),
    }
    with pytest.raises(SettingsError, match=f"^{name}: ") as caught:
        authority(settings(**flags), now, Reload())
    assert SECRET.decode() not in str(caught.value)


def test_what_looks_like_a_mistake_is_a_warning(files: dict[str, str]) -> None:
    Path(files["secret"]).chmod(0o644)
    flags = {
        "auth_jwt_algorithms": "HS256",
        "auth_jwt_audience": "a",
        "auth_jwt_key_file": files["secret"],
    }
    plain = GOOD | {"auth_jwt_jwks_url": "http://issuer.example/keys"}
    for given, name in ((flags, "auth_jwt_key_file"), (plain, "auth_jwt_jwks_url")):
        with structlog.testing.capture_logs() as lines:
            authority(settings(**given), now, Reload())
        assert [(line["event"], line["log_level"]) for line in lines] == [
            (name, "warning")
        ]


@pytest.mark.parametrize("package", ["jwt", "cryptography"])
def test_without_the_extra_the_remedy_is_named(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setattr(
        credentials, "find_spec", lambda name: None if name == package else name
    )
    with pytest.raises(SettingsError, match=r"'\.\[jwt\]'") as caught:
        authority(settings(**GOOD), now, Reload())
    assert package in str(caught.value)
