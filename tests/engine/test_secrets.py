"""Where what is configured holds credentials."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsserver.engine.secrets import (
    hide,
    is_telling,
    telling_values,
    url_secrets,
    without_userinfo,
)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "Proxy-Authorization",
        "api-key",
        "X-API-Key",
        "apikey",
        "Ocp-Apim-Subscription-Key",
        "CF-Access-Client-Secret",
        "Helicone-Auth",
        "Cookie",
        "GITHUB_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "PGPASSWORD",
    ],
)
def test_names_that_tell(name: str) -> None:
    assert is_telling(name)


@pytest.mark.parametrize(
    "name", ["X-Team", "OpenAI-Organization", "User-Agent", "X-Author", "PATH", "HOME"]
)
def test_names_that_do_not(name: str) -> None:
    assert not is_telling(name)


def test_of_a_header_with_a_scheme_the_credential_counts() -> None:
    headers = {"Authorization": "Bearer abcdef", "api-key": "two words", "X-Team": "a"}
    assert list(telling_values(headers)) == ["abcdef", "two words"]


def test_a_password_of_a_url_in_all_its_forms() -> None:
    found = set(url_secrets("http://ann:s%40fe@host/v1"))
    assert found == {"s%40fe", "s@fe", "YW5uOnNAZmU="}
    for url in ("http://host/v1", "http://ann@host/v1", "", "http://[", "a:b"):
        assert not list(url_secrets(url))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://ann:secret@host:1/v1", "http://***@host:1/v1"),
        ("http://ann@host/v1?mail=a@b", "http://***@host/v1?mail=a@b"),
        ("ann:secret@host/v1", "***@host/v1"),
        ("https//ann:secret@host", "https//***@host"),
        ("http://ann:se@cret@host/v1", "http://***@host/v1"),
        ("http://host/v1/@me", "http://host/v1/@me"),
    ],
)
def test_a_url_is_shown_without_who_asks(url: str, shown: str) -> None:
    assert without_userinfo(url) == shown


@given(
    st.lists(st.text("abc", min_size=4), min_size=1),
    st.lists(st.text("abc ")),
    st.data(),
)
def test_no_secret_is_left_whatever_is_part_of_what(
    secrets: list[str], between: list[str], data: st.DataObject
) -> None:
    pieces = data.draw(st.permutations([*secrets, *between]))
    shown = hide("".join(pieces), secrets)
    assert not any(secret in shown for secret in secrets)


def test_what_is_short_stays() -> None:
    assert hide("a flag is 1", ["1", ""]) == "a flag is 1"


def test_a_secret_that_begins_with_another_is_hidden_whole() -> None:
    assert hide("it is abcd-1234", ["abcd", "abcd-1234"]) == "it is ***"


@pytest.mark.parametrize("length", range(4, 9))
def test_the_beginning_of_one_is_hidden_where_the_text_was_cut(length: int) -> None:
    assert hide("it is " + "abcd1234"[:length], ["abcd1234"]) == "it is ***"


def test_less_than_four_characters_may_be_anything() -> None:
    assert hide("it is abc", ["abcd1234"]) == "it is abc"
