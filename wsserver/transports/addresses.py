"""Where clients come from, through proxies that are trusted, and how many of each.

Pure. An address stands for whoever can use it: of IPv6 that is a whole /64.
"""

from collections.abc import Iterable, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

_SUBSCRIBER_BITS: Final = 64


def read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Returns addresses and networks, such as `10.0.0.0/8`.

    Raises:
        ValueError: One is neither.
    """
    return tuple(ip_network(text) for text in texts)


def client_address(
    remote: str, forwarded: Sequence[str], trusted: Sequence[Network]
) -> str:
    """Returns the address that a connection comes from.

    Args:
        remote: Whose socket it is.
        forwarded: The values of `X-Forwarded-For`, in order. Each proxy adds whom it
            got the request from at the end, so they are believed from there, as long
            as a trusted proxy says so; what stands before that anybody can write.
        trusted: Proxies that are believed.
    """
    found = remote
    hops = [hop.strip() for value in forwarded for hop in value.split(",")]
    while hops and _within(found, trusted):
        hop = _read(hops.pop())
        if hop is None:
            break
        found = str(hop)
    return found


def is_loopback(text: str) -> bool:
    """Returns whether an address is of this machine."""
    address = _read(text)
    return address is not None and address.is_loopback


class AddressCounts:
    """How many connections each address has.

    Loopback is not counted: whoever is there, a proxy perhaps, is this machine.
    """

    def __init__(self, limit: int | None) -> None:
        """Begins with none; `limit` is None for as many as come."""
        self._limit = limit
        self._counts: dict[str, int] = {}

    def enter(self, address: str) -> bool:
        """Counts a connection in, if there is room; then `leave` has to follow."""
        key = _key(address)
        if self._limit is None or key is None:
            return True
        count = self._counts.get(key, 0)
        if count >= self._limit:
            return False
        self._counts[key] = count + 1
        return True

    def leave(self, address: str) -> None:
        """Counts a connection out that `enter` has counted in."""
        key = _key(address)
        if self._limit is None or key is None:
            return
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]


def _read(text: str) -> Address | None:
    """Reads an address as proxies write it: alone, in brackets, or with a port."""
    host, bracket, _ = text.removeprefix("[").partition("]")
    if not bracket and host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _within(text: str, networks: Sequence[Network]) -> bool:
    address = _read(text)
    return address is not None and any(address in network for network in networks)


def _key(text: str) -> str | None:
    """Returns what is counted; None for what is not."""
    address = _read(text)
    if address is None or address.is_loopback:
        return None
    if isinstance(address, IPv6Address):
        return str(ip_network((int(address), _SUBSCRIBER_BITS), strict=False))
    return str(address)
