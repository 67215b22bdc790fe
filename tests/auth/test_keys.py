from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsserver.auth.keys import KeyAuthority, KeysError
from wsserver.auth.principal import ForbiddenError, Principal, UnauthorizedError

ALICE = "alice-key-long-enough"
VISIBLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1)
NAMES = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True)


def parse(text: str) -> KeyAuthority:
    return KeyAuthority.parse(text.splitlines(), "keys.txt")


async def who(authority: KeyAuthority, key: str) -> tuple[str, str]:
    """Returns the name and the space of a key's principal."""
    principal = await authority.authenticate(key)
    return principal.name, principal.space


async def test_a_key_names_its_principal_alone_in_a_space_of_its_name() -> None:
    authority = parse(f"# people\n\nalice:{ALICE}\n")
    assert await who(authority, ALICE) == ("alice", "alice")


async def test_principals_may_share_a_space() -> None:
    authority = parse("team/alice:aaaaaaaaaaaaaaaa\nteam/bob : bbbbbbbbbbbbbbbb")
    assert await who(authority, "aaaaaaaaaaaaaaaa") == ("alice", "team")
    assert await who(authority, "bbbbbbbbbbbbbbbb") == ("bob", "team")


async def test_a_principal_may_have_several_keys() -> None:
    authority = parse(f"alice:{ALICE}\nalice:second-key-of-alice")
    assert await who(authority, ALICE) == await who(authority, "second-key-of-alice")


@given(st.dictionaries(VISIBLE, NAMES, min_size=1, max_size=8), VISIBLE)
async def test_only_a_whole_key_opens(keys: dict[str, str], other: str) -> None:
    lines = [f"{name}:{key}" for key, name in keys.items()]
    authority = KeyAuthority.parse(lines, "keys.txt")
    for key, name in keys.items():
        assert (await authority.authenticate(key)).name == name
    for wrong in {other, "", *(key[:-1] for key in keys), *(f"{k}x" for k in keys)}:
        if wrong not in keys:
            with pytest.raises(UnauthorizedError):
                await authority.authenticate(wrong)


async def test_no_token_is_nobodys() -> None:
    with pytest.raises(UnauthorizedError):
        await parse(f"alice:{ALICE}").authenticate(None)


async def test_a_comment_may_stand_behind_a_key_that_holds_its_own_signs() -> None:
    authority = parse(
        "  # people\nann:a#long-enough-key  # on leave: #1\nbob:#2345678901234567"
    )
    assert (await authority.authenticate("a#long-enough-key")).name == "ann"
    assert (await authority.authenticate("#2345678901234567")).name == "bob"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("alice", "expected principal:key"),
        ("alice:", "expected principal:key"),
        (":hush-hush", "expected principal:key"),
        ("al ice:hush-hush", "expected principal:key"),
        ("a/b/c:hush-hush", "expected principal:key"),
        ("/alice:hush-hush", "expected principal:key"),
        ("alice:hush hush", "visible ASCII"),
        ("alice:hüsh-hush", "visible ASCII"),
        ("alice:hush\x07hush", "visible ASCII"),
        ("bob:one-and-the-same-key", "another principal"),
    ],
)
def test_a_bad_line_is_named_without_its_key(line: str, complaint: str) -> None:
    with pytest.raises(KeysError, match=complaint) as caught:
        parse(f"alice:one-and-the-same-key\n{line}")
    assert str(caught.value).startswith("keys.txt:2: ")
    assert "hush" not in str(caught.value)
    assert "same-key" not in str(caught.value)


def test_a_file_without_keys_is_refused() -> None:
    with pytest.raises(KeysError, match="no line holds"):
        parse("# nobody yet\n")


async def test_a_short_key_is_taken_with_a_warning() -> None:
    authority = parse("alice:short")
    assert (await authority.authenticate("short")).name == "alice"
    (warning,) = authority.warnings
    assert "keys.txt:1" in warning


def test_a_file_that_others_can_read_is_taken_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"alice:{ALICE}\n")
    file.chmod(0o644)
    (warning,) = KeyAuthority.load(file).warnings
    assert "others can read" in warning
    file.chmod(0o600)
    assert KeyAuthority.load(file).warnings == ()


@pytest.mark.parametrize(
    ("content", "complaint"), [(None, "No such file"), (b"a:\xff\xfe", "not UTF-8")]
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(KeysError, match=complaint) as caught:
        KeyAuthority.load(file)
    assert str(file) in str(caught.value)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"alice:{ALICE}\n", "utf-8-sig")
    file.chmod(0o600)
    assert KeyAuthority.load(file).warnings == ()


def test_a_key_of_sixteen_characters_is_good_and_a_shorter_one_is_told() -> None:
    authority = parse(f"alice:{'a' * 16}\n# bob\nbob:{'b' * 15}")
    assert authority.warnings == ("keys.txt:3: the key is shorter than 16 characters",)


async def test_everything_is_allowed_within_the_space_and_nothing_outside() -> None:
    authority = parse(f"alice:{ALICE}")
    alice = await authority.authenticate(ALICE)
    authority.authorize(alice, "delete", alice.key("c1"))
    for foreign in ("bob/c1", "alice2/c1", "alic/c1", "c1"):
        with pytest.raises(ForbiddenError):
            authority.authorize(alice, "open", foreign)


async def test_keys_are_given_and_taken_back() -> None:
    authority = parse(f"alice:{ALICE}\nbob:bbbbbbbbbbbbbbbb\neve:eeeeeeeeeeeeeeee")
    alice, bob, eve = [
        await authority.authenticate(key)
        for key in (ALICE, "bbbbbbbbbbbbbbbb", "eeeeeeeeeeeeeeee")
    ]
    assert all(map(authority.stands, (alice, bob, eve)))

    renewed = parse(f"carl:cccccccccccccccc\nalice:{ALICE}\nteam/bob:bbbbbbbbbbbbbbbb")
    assert authority.take(renewed) == {"keys": 3, "added": 2, "gone": 2}

    assert authority.stands(alice)
    assert not authority.stands(bob), "he is in another space now"
    assert not authority.stands(eve)
    assert authority.stands(Principal(name="x", space="x")), "none of ours"
    assert await who(authority, "cccccccccccccccc") == ("carl", "carl")
    with pytest.raises(UnauthorizedError):
        await authority.authenticate("eeeeeeeeeeeeeeee")
