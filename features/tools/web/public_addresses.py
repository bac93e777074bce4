"""Which addresses are the public internet's, and who says so."""

from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

__all__ = ["IpAddress", "Refusal", "Resolver", "refusal"]

IpAddress = IPv4Address | IPv6Address

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, in the order in which they are to be tried. Raises OSError where there are none."""

Refusal = Callable[[IpAddress], str | None]
"""Why an address may not be reached; None where it may."""

# Python's own is_global changed its mind between releases, so the registries are written out here.
# Source: https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry
_CLOSED_V4 = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "this machine"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a provider's inner network"),
        ("127.0.0.0/8", "this machine"),
        ("168.63.129.16/32", "a cloud's host service"),
        ("169.254.0.0/16", "link-local, where clouds keep credentials"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "an old tunnel's relay"),
        ("192.168.0.0/16", "a private network"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_OPEN_V6 = IPv6Network("2000::/3")
_CLOSED_V6 = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::/128", "this machine"),
        ("::1/128", "this machine"),
        ("64:ff9b:1::/48", "a private translation"),
        ("2001::/23", "reserved, or a tunnel's"),
        ("2001:db8::/32", "for documentation"),
        ("3fff::/20", "for documentation"),
        ("fc00::/7", "a private network"),
        ("fe80::/10", "link-local"),
        ("ff00::/8", "multicast"),
    )
)
_CARRIES_V4 = (  # network, and how many bits stand behind the IPv4 address that it carries
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("::/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
)
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def refusal(address: IpAddress) -> str | None:
    """What keeps an address from being a public one; None for a public one.

    An IPv6 address that carries an IPv4 one (mapped, compatible, translated, NAT64, 6to4) is as public as that; ISATAP ones are refused.
    """
    if isinstance(address, IPv4Address):
        return next((what for network, what in _CLOSED_V4 if address in network), None)
    for closed, what in _CLOSED_V6:
        if address in closed:
            return what
    for carrier, behind in _CARRIES_V4:
        if address in carrier:
            return refusal(IPv4Address(int(address) >> behind & 0xFFFF_FFFF))
    if address not in _OPEN_V6:
        return "no public network"
    return "a tunnel's" if int(address) >> 32 & 0xFFFF_FFFF in _ISATAP else None
