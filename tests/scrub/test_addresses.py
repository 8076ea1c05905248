"""Addresses share the prefixes that they shared, and their texts keep their lengths."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kdissect.scrub.addresses import Addresses, identifies_host
from kdissect.scrub.permutation import KEY_BYTES, Permutation
from tests.scrub.runs import KEY, OTHER_KEY

ADDRESSES = Addresses(Permutation(KEY))
IPV4 = st.ip_addresses(v=4)
IPV6 = st.ip_addresses(v=6) | st.binary(min_size=16, max_size=16).map(IPv6Address)


def shared(one: bytes, other: bytes) -> int:
    """How many bits two addresses share."""
    bits = 8 * len(one)
    return bits - (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_length()


@given(IPV4, IPV4)
def test_prefixes_stay_shared(one: IPv4Address, other: IPv4Address) -> None:
    made = ADDRESSES.packed(one.packed), ADDRESSES.packed(other.packed)
    assert shared(*made) == shared(one.packed, other.packed)


@pytest.mark.parametrize(
    "network", ["10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12", "fd00::/8", "2001:db8::/32"]
)
@given(st.data(), st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES))
def test_no_key_turns_a_network_into_itself(network: str, data: st.DataObject, key: bytes) -> None:
    inside = ip_network(network)
    address = inside[data.draw(st.integers(0, min(inside.num_addresses, 1 << 32) - 1))]
    assume(identifies_host(address.packed))
    assert ip_address(Addresses(Permutation(key)).packed(address.packed)) not in inside


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_prefixes_within_a_network_stay_shared(one: int, other: int) -> None:
    net = IPv6Address("2001:db8:1::")
    first, second = (net + each for each in (one, other))
    made = ADDRESSES.packed(first.packed), ADDRESSES.packed(second.packed)
    assert shared(*made) == shared(first.packed, second.packed)


@given(IPV4 | IPV6)
def test_the_text_of_an_address_keeps_its_length(address: IPv4Address | IPv6Address) -> None:
    assert len(ADDRESSES.host(str(address))) == len(str(address))


@given(IPV4)
def test_messages_tell_the_address_that_headers_have(address: IPv4Address) -> None:
    assert ip_address(ADDRESSES.host(str(address))).packed == ADDRESSES.packed(address.packed)


def test_a_key_decides() -> None:
    made = {key: Addresses(Permutation(key)).host("192.168.17.200") for key in (KEY, OTHER_KEY)}
    assert made[KEY] != made[OTHER_KEY]
    assert "192.168.17.200" not in made.values()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"])
def test_what_says_nothing_stays(address: str) -> None:
    packed = ip_address(address).packed
    assert ADDRESSES.packed(packed) == packed
    assert not identifies_host(packed)


@given(IPV4)
def test_no_other_address_becomes_one_of_this_machine(address: IPv4Address) -> None:
    assert identifies_host(address.packed) == identifies_host(ADDRESSES.packed(address.packed))


@pytest.mark.parametrize(
    ("host", "form"),
    [
        ("/10.0.0.7", "/{}"),
        ("[fd00::7]:9092", "[{}]:9092"),
        ("10.0.0.7:9092", "{}:9092"),
        ("fd00::7", "{}"),
    ],
)
def test_an_address_is_found_in_what_stands_around_it(host: str, form: str) -> None:
    begin, end = form.split("{}")
    bare = host.removeprefix(begin).removesuffix(end)
    assert ADDRESSES.host(host) == form.format(ip_address(ADDRESSES.packed(ip_address(bare).packed)))


def test_hosts_of_a_domain_stay_together() -> None:
    first, second = (ADDRESSES.host(f"kafka-{number}.prod.example") for number in (1, 2))
    assert first != second
    assert first.split(".")[1:] == second.split(".")[1:]
    assert not {"kafka-1", "prod", "example"} & set(first.split("."))


@pytest.mark.parametrize("host", ["localhost", "*", ""])
def test_a_host_that_says_nothing_stays(host: str) -> None:
    assert ADDRESSES.host(host) == host


@given(st.text(max_size=30))
def test_any_text_keeps_its_length(text: str) -> None:
    assert len(ADDRESSES.host(text).encode()) == len(text.encode())
