"""The guard in front of every request a tool makes: where it may go, decided on
addresses and never on names.

A name is resolved once and the connection goes to exactly the addresses that were checked, so a
name that changes its answer between check and use gains nothing. Every redirect passes here again.
"""

import asyncio
import os
import re
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

import httpx

from sennit.activities.limits import MAX_ADDRESSES, MAX_URL_CHARACTERS
from sennit.activities.toolbox.errors import AddressRefused, FetchFailed

Address: TypeAlias = IPv4Address | IPv6Address

ALLOW_VARIABLE: Final = "SENNIT_HTTP_ALLOW"

_PORTS: Final = frozenset({80, 443, 8080, 8443})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*\Z"
)
_NUMERIC_END: Final = re.compile(r"(?:.*\.)?(?:\d+|0x[0-9a-f]*)\Z")

# IANA special-purpose registries, spelled out because `is_global` differs between Python releases.
_BLOCKED_V4: Final = tuple(
    map(IPv4Network, (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "168.63.129.16/32",
    ))
)  # fmt: skip
_GLOBAL_V6: Final = IPv6Network("2000::/3")
_BLOCKED_V6: Final = tuple(
    map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "3ffe::/16"))
)
_METADATA: Final = frozenset(
    map(ip_address, (
        "169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.42.42", "168.63.129.16",
        "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
    ))
)  # fmt: skip
_NAT64: Final = IPv6Network("64:ff9b::/96")
_V4_IN_LAST_BITS: Final = (
    _NAT64,
    IPv6Network("64:ff9b:1::/48"),
    IPv6Network("::ffff:0:0/96"),
    IPv6Network("::ffff:0:0:0/96"),
    IPv6Network("::/96"),
)
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})


@dataclass(frozen=True, slots=True)
class Destination:
    """A URL that may be fetched and the checked addresses it may be fetched from."""

    url: httpx.URL
    host: str
    addresses: tuple[str, ...]


async def admit(url: str, *, declared: bool = False) -> Destination:
    """Check a URL and resolve its host once.

    Raises AddressRefused for anything that is not plain http(s) to a public address, unless an
    operator has `declared` the host or SENNIT_HTTP_ALLOW (a comma list of `host` or
    `host:port`) names it; metadata services stay refused even then. Raises FetchFailed when
    the name has no address.
    """
    parsed = _parse(url)
    host = parsed.raw_host.decode("ascii").lower()
    literal = _literal(host)
    port = parsed.port or _DEFAULT_PORTS[parsed.scheme]
    trusted = declared or _is_allowed(host, port)
    if not trusted and port not in _PORTS:
        raise AddressRefused(
            f"port {port} is refused; an operator can allow it with "
            f"{ALLOW_VARIABLE}={host[:80]}:{port}"
        )
    if literal is not None:
        addresses = [literal]
    else:
        addresses = await _lookup(host, port)
    for address in addresses:
        if _is_metadata(address):
            raise AddressRefused(f"{host[:80]} is a cloud's metadata service; no tool may ask it")
        if not trusted and is_blocked(address):
            raise AddressRefused(
                f"{host[:80]} is not a public address; an operator can allow it in {ALLOW_VARIABLE}"
            )
    return Destination(parsed, host, tuple(map(str, addresses[:MAX_ADDRESSES])))


def is_blocked(address: Address) -> bool:
    """Whether an address is private, local, reserved, a metadata service, or wraps one that is."""
    if isinstance(address, IPv4Address):
        return any(address in block for block in _BLOCKED_V4)
    if address in _NAT64:
        return is_blocked(_last_bits(address))
    if any(map(is_blocked, _embedded(address))):
        return True
    if address not in _GLOBAL_V6:
        return True
    return any(address in block for block in _BLOCKED_V6)


async def resolve(host: str, port: int) -> list[str]:
    """Ask the system's resolver once; returns addresses in its order of preference."""
    answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(answer[4][0]) for answer in answers]
    return list(dict.fromkeys(addresses))


def _parse(url: str) -> httpx.URL:
    """Parse once, strictly: what another parser could read differently is
    refused rather than repaired.
    """
    if len(url) > MAX_URL_CHARACTERS:
        raise AddressRefused(f"the URL is longer than {MAX_URL_CHARACTERS:,} characters")
    if " " in url or "\\" in url or not url.isprintable():
        raise AddressRefused(
            "the URL holds a space, a control character or a backslash; encode them with %"
        )
    try:
        parsed = httpx.URL(url)
        host = parsed.raw_host
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise AddressRefused(f"the URL cannot be read: {error}") from None
    if parsed.scheme not in _DEFAULT_PORTS:
        raise AddressRefused(f"only http and https are fetched, not {parsed.scheme[:20]!r}")
    rest = url.split("://", 1)[-1]
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if parsed.userinfo or "@" in authority:
        raise AddressRefused("the URL carries a user name or password; tools send no credentials")
    if not host or "://" not in url:
        raise AddressRefused("the URL names no host; write it as https://host/path")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise AddressRefused(f"port {parsed.port} does not exist")
    return parsed.copy_with(fragment=None)


def _literal(host: str) -> Address | None:
    """Return the address that `host` spells, None for a name; odd spellings
    of either are refused.
    """
    if ":" not in host and not _NUMERIC_END.match(host):
        if not _NAME.match(host):
            raise AddressRefused(
                f"{host[:80]!r} is not a plain host name; write it without a final dot, % or zone"
            )
        return None
    try:
        if "%" in host:
            raise ValueError
        return ip_address(host)
    except ValueError:
        raise AddressRefused(
            f"{host[:80]!r} is an odd spelling of an address; write it as 203.0.114.7"
        ) from None


async def _lookup(host: str, port: int) -> list[Address]:
    try:
        texts = await resolve(host, port)
        found = [ip_address(text.partition("%")[0]) for text in texts]
    except socket.gaierror as error:
        again = error.errno == socket.EAI_AGAIN
        raise FetchFailed(f"{host} cannot be resolved: {error.strerror}", retryable=again) from None
    except (UnicodeError, ValueError):
        raise AddressRefused(f"{host[:80]!r} is not a name that can be resolved") from None
    if not found:
        raise FetchFailed(f"{host} has no address")
    return found


def _is_allowed(host: str, port: int) -> bool:
    """Whether the operator has named this host, or this port of it."""
    allowed = os.environ.get(ALLOW_VARIABLE, "").lower().split(",")
    entries = set(map(str.strip, allowed))
    shown = host
    if ":" in host:
        shown = f"[{host}]"
    return not entries.isdisjoint((host, shown, f"{shown}:{port}"))


def _is_metadata(address: Address) -> bool:
    if isinstance(address, IPv6Address) and any(inner in _METADATA for inner in _embedded(address)):
        return True
    return address in _METADATA


def _embedded(address: IPv6Address) -> list[IPv4Address]:
    """Return every IPv4 address that a gateway could take out of an IPv6 address."""
    found: list[IPv4Address] = []
    if any(address in network for network in _V4_IN_LAST_BITS):
        found.append(_last_bits(address))
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        found.append(_last_bits(address))
    if address.sixtofour:
        found.append(address.sixtofour)
    if address.teredo:
        found.extend(address.teredo)
    return found


def _last_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)
