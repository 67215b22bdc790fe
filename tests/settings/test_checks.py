"""What has to hold between settings."""

import pytest

from wsserver.settings import Settings, SettingsError, load
from wsserver.settings.checks import check_together, is_loopback


def settings(flags: dict[str, str]) -> Settings:
    return load(flags=flags, environ={}).settings


def complaint(flags: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        settings(flags)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_the_defaults_go_together() -> None:
    check_together(Settings(), dict.fromkeys(Settings.__struct_fields__, "default"))


@pytest.mark.parametrize(
    "flags",
    [
        {"metrics_access": "token"},
        {"metrics_token_file": "token"},
        {"metrics_token_file": "token", "metrics_access": "open"},
    ],
)
def test_the_token_for_the_metrics_and_its_rule_go_together(
    flags: dict[str, str],
) -> None:
    assert "metrics_token_file do not go together" in complaint(flags)
    both = settings({"metrics_access": "token", "metrics_token_file": "token"})
    assert both.metrics_access == "token"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])  # noqa: S104
def test_what_others_can_reach_needs_credentials(host: str) -> None:
    text = complaint({"host": host})
    assert f"host: {host} from --host" in text
    assert "set auth_keys_file, or bind 127.0.0.1" in text
    assert settings({"host": host, "auth_keys_file": "keys"}).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    assert settings({"host": host}).host == host


def test_a_name_without_an_address_is_no_host() -> None:
    with pytest.raises(SettingsError, match=r"host: no\.such\.invalid has no address"):
        is_loopback("no.such.invalid")


def test_settings_that_do_not_go_together() -> None:
    text = complaint({"tls_key_file": "key.pem"})
    assert text.startswith("tls_key_file: --tls-key-file gives one half")
    text = complaint({"dead_after_seconds": "20"})
    assert "set more than heartbeat_seconds (20)" in text
