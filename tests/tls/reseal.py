"""Two connections of TLS 1.2 → one that is renegotiated: the second's handshake goes through the first."""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from kdissect.tls.handshake import read_client_hello, read_server_hello
from kdissect.tls.keys import KeyBlock
from tests.tls.endpoints import BROKER, CLIENT, Flight, Talk


def renegotiated(first: Talk, second: Talk) -> list[Flight]:
    """Their suite must be ChaCha20-Poly1305."""
    hello = read_client_hello(first.flights[0][1][5:])
    answer = read_server_hello(first.flights[1][1][5:])
    master = first.secrets().of(hello.random)["CLIENT_RANDOM"]
    block = KeyBlock(master, hello.random, answer.random, "sha256", (0, 32, 12))
    flights = [each for each in first.flights if each[1][0] != 21]  # without their ends
    seqs = [0, 0]
    changed = [False, False]
    for side, data in flights:
        for one in records(data):
            seqs[side] += changed[side]
            changed[side] = changed[side] or one[0] == 20
    renewed = [False, False]
    for side, data in second.flights:
        out = b""
        for one in records(data):
            if renewed[side]:
                out += one
                continue
            iv = int.from_bytes(block.ivs[side], "big")
            nonce = (iv ^ seqs[side]).to_bytes(12, "big")
            head = one[:1] + b"\x03\x03"
            associated = seqs[side].to_bytes(8, "big") + head + one[3:5]
            sealed = ChaCha20Poly1305(block.keys[side]).encrypt(nonce, one[5:], associated)
            out += head + len(sealed).to_bytes(2, "big") + sealed
            seqs[side] += 1
            renewed[side] = one[0] == 20
        flights.append((side, out))
    assert {CLIENT, BROKER} == {side for side, _ in flights}
    return flights


def records(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        end = at + 5 + int.from_bytes(data[at + 3 : at + 5], "big")
        found.append(data[at:end])
        at = end
    return found
