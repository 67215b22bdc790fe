"""Where clients come from, and how many of each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.weight import weight
from wsserver.transports.addresses import (
    AddressCounts,
    client_address,
    read_networks,
)

TRUSTED = read_networks(["10.0.0.0/8", "127.0.0.1", "fd00::/8"])


@pytest.mark.parametrize(
    ("remote", "forwarded", "client"),
    [
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["192.0.2.1"], "192.0.2.1"),
        ("127.0.0.1", ["192.0.2.1, 10.1.2.3"], "192.0.2.1"),
        ("127.0.0.1", ["192.0.2.1", "10.1.2.3, 10.4.5.6"], "192.0.2.1"),
        # Whatever the client itself wrote stands before its address.
        ("127.0.0.1", ["198.51.100.9, 192.0.2.1"], "192.0.2.1"),
        ("127.0.0.1", ["10.0.0.1, 192.0.2.1"], "192.0.2.1"),
        ("127.0.0.1", ["10.0.0.1"], "10.0.0.1"),
        # Nobody who is not trusted is believed.
        ("192.0.2.7", ["198.51.100.9"], "192.0.2.7"),
        ("127.0.0.1", ["198.51.100.9, 192.0.2.1, 192.0.2.2"], "192.0.2.2"),
        # What is no address ends it with whoever sent it.
        ("127.0.0.1", ["unknown"], "127.0.0.1"),
        ("127.0.0.1", ["192.0.2.1, unknown, 10.0.0.1"], "10.0.0.1"),
        ("127.0.0.1", [""], "127.0.0.1"),
        ("127.0.0.1", ["192.0.2.1,"], "127.0.0.1"),
        # As proxies write them.
        ("127.0.0.1", ["192.0.2.1:5678"], "192.0.2.1"),
        ("127.0.0.1", ["[2001:db8::1]:5678"], "2001:db8::1"),
        ("127.0.0.1", ["2001:DB8::1"], "2001:db8::1"),
        ("127.0.0.1", ["::ffff:192.0.2.1"], "192.0.2.1"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        ("::ffff:127.0.0.1", ["192.0.2.1"], "192.0.2.1"),
        ("", ["192.0.2.1"], ""),
    ],
)
def test_an_address_is_believed_as_far_as_proxies_are(
    remote: str, forwarded: list[str], client: str
) -> None:
    assert client_address(remote, forwarded, TRUSTED) == client


def test_without_trust_the_header_means_nothing() -> None:
    assert client_address("127.0.0.1", ["192.0.2.1"], ()) == "127.0.0.1"


@given(st.lists(st.text(st.characters(codec="latin-1"), max_size=30), max_size=4))
def test_no_header_is_a_defect(forwarded: list[str]) -> None:
    assert client_address("192.0.2.7", forwarded, TRUSTED) == "192.0.2.7"
    client_address("127.0.0.1", forwarded, TRUSTED)


@given(
    st.lists(st.ip_addresses().map(str), max_size=3),
    st.ip_addresses(v=4).map(str),
)
def test_nobody_can_write_themselves_another_address(
    written: list[str], own: str
) -> None:
    """Whatever a client says, the trusted proxy adds where it comes from."""
    header = ", ".join([*written, own])
    found = client_address("127.0.0.1", [header], TRUSTED)
    if client_address(own, [], TRUSTED) == own and not any(
        client_address(own, ["192.0.2.99"], [network]) != own for network in TRUSTED
    ):
        assert found == own


@pytest.mark.parametrize("text", ["10.0.0.1/8", "proxy.example", "", "300.1.1.1"])
def test_what_is_no_network(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_networks([text])


def test_so_many_of_one_address_and_no_more() -> None:
    counts = AddressCounts(2)
    assert [counts.enter("192.0.2.1") for _ in range(4)] == [True, True, False, False]
    assert counts.enter("192.0.2.2")
    counts.leave("192.0.2.1")
    assert [counts.enter("192.0.2.1") for _ in range(2)] == [True, False]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "", "unknown"])
def test_this_machine_is_not_counted(address: str) -> None:
    counts = AddressCounts(1)
    assert all(counts.enter(address) for _ in range(9))
    counts.leave(address)
    assert weight(counts) == weight(AddressCounts(1))


def test_a_subscriber_has_a_whole_network_of_version_six() -> None:
    counts = AddressCounts(1)
    assert counts.enter("2001:db8:0:1::1")
    assert not counts.enter("2001:db8:0:1:ffff::2")
    assert counts.enter("2001:db8:0:2::1")
    counts.leave("2001:db8:0:1:9::9")
    assert counts.enter("2001:db8:0:1::3")


def test_a_mapped_address_is_the_one_it_maps() -> None:
    counts = AddressCounts(1)
    assert counts.enter("::ffff:192.0.2.1")
    assert not counts.enter("192.0.2.1")


def test_without_a_limit_nothing_is_counted() -> None:
    counts = AddressCounts(None)
    assert all(counts.enter("192.0.2.1") for _ in range(9))
    counts.leave("192.0.2.1")
    assert weight(counts) == weight(AddressCounts(None))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
def test_who_has_left_takes_no_memory(steps: list[tuple[str, bool]]) -> None:
    names = {"a": "192.0.2.1", "b": "2001:db8::1", "c": "198.51.100.7"}
    counts = AddressCounts(3)
    there = dict.fromkeys(names, 0)
    for name, enters in steps:
        if enters:
            assert counts.enter(names[name]) is (there[name] < 3)
            there[name] = min(3, there[name] + 1)
        elif there[name]:
            counts.leave(names[name])
            there[name] -= 1
    fresh = AddressCounts(3)
    for name, count in there.items():
        for _ in range(count):
            fresh.enter(names[name])
    assert weight(counts) == weight(fresh)
