"""Hellos of the same shape are read once; what differs is read of each."""

from __future__ import annotations

from random import Random

import pytest

from kdissect.model import DecodeError
from kdissect.tls import handshake
from kdissect.tls.handshake import KEY_SHARE, Hello, read_client_hello, read_server_hello
from tests.tls.forge import extensions, message, vector

SERVER_NAME = vector(2, b"\0" + vector(2, b"broker-1"))


def client(
    random: bytes, session_id: bytes = b"", share: bytes = b"share", name: bytes = SERVER_NAME
) -> bytes:
    given = {0: name, 43: b"\x02\x03\x04", KEY_SHARE: share, 16: vector(2, vector(1, b"kafka"))}
    suites, compression = vector(2, b"\x13\x01\x13\x02"), vector(1, b"\0")
    body = b"\x03\x03" + random + vector(1, session_id) + suites + compression + extensions(given)
    return message(handshake.CLIENT_HELLO, body)


def server(
    random: bytes, session_id: bytes = b"", share: bytes = b"share", version: bytes = b"\x03\x04"
) -> bytes:
    given = extensions({KEY_SHARE: share, 43: version})
    body = b"\x03\x03" + random + vector(1, session_id) + b"\x13\x01\0" + given
    return message(handshake.SERVER_HELLO, body)


def read(one: bytes) -> Hello | str:
    try:
        return read_client_hello(one) if one[0] == handshake.CLIENT_HELLO else read_server_hello(one)
    except DecodeError as error:
        return str(error)


def read_alone(one: bytes) -> Hello | str:
    """The hello as if none had been read before."""
    handshake._HELLOS.clear()
    return read(one)


@pytest.mark.parametrize("hello", [client, server])
def test_each_hello_has_its_own_random_and_session(hello: object) -> None:
    assert callable(hello)
    for seed in range(3):
        chance = Random(seed)
        random, session_id = chance.randbytes(32), chance.randbytes(32)
        found = read(hello(random, session_id, chance.randbytes(5)))
        assert isinstance(found, Hello)
        assert (found.random, found.session_id) == (random, session_id)
        assert KEY_SHARE not in found.extensions
    assert isinstance(found, Hello)
    assert found.extensions[43] == (b"\x02\x03\x04" if hello is client else b"\x03\x04")


def test_hellos_of_one_shape_are_read_once() -> None:
    first, second = read(client(bytes(32), b"a" * 32)), read(client(b"r" * 32, b"b" * 32, b"other"))
    assert isinstance(first, Hello)
    assert isinstance(second, Hello)
    assert first.extensions is second.extensions


def test_the_lengths_belong_to_the_shape() -> None:
    assert read(client(bytes(32), b"", b"12")) == read_alone(client(bytes(32), b"", b"12"))
    assert read(client(bytes(32), b"x", b"123")) == read_alone(client(bytes(32), b"x", b"123"))


@pytest.mark.parametrize("seed", range(200))
def test_a_damaged_hello_is_read_as_if_it_were_the_first(seed: int) -> None:
    chance = Random(seed)
    whole = chance.choice((client, server))(chance.randbytes(32), chance.randbytes(chance.choice((0, 8, 32))))
    damaged = bytearray(whole)
    for _ in range(chance.randint(0, 2)):
        damaged[chance.randrange(38, len(damaged))] = chance.choice((0, 1, 4, 51, chance.randrange(256)))
    one = bytes(damaged[: chance.choice((len(damaged), len(damaged), chance.randrange(4, len(damaged))))])
    alone = read_alone(one)
    handshake._HELLOS.clear()
    read(whole)
    assert read(one) == alone
    assert read(one) == alone


def test_a_hello_without_extensions_has_a_shape_too() -> None:
    body = b"\x03\x03" + bytes(32) + vector(1, b"") + b"\xc0\x30\0"
    bare = message(handshake.SERVER_HELLO, body)
    assert read(bare) == read(bare) == read_alone(bare)
    assert read_server_hello(bare).extensions is read_server_hello(bare).extensions


def test_the_kept_hellos_are_bounded() -> None:
    handshake._HELLOS.clear()
    for number in range(1000):
        read(client(bytes(32), name=vector(2, b"\0" + vector(2, b"broker-%03d" % number))))
    assert 0 < len(handshake._HELLOS) <= 256
    handshake._HELLOS.clear()
    read(client(bytes(32), name=bytes(5000)))
    assert not handshake._HELLOS
