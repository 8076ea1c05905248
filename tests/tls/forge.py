"""TLS records made by hand, for what Python's ssl does not do: key updates, early data, other suites."""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

from kdissect.tls.keys import next_traffic_secret, traffic_keys
from kdissect.tls.suites import Suite, suite
from tests.tls.endpoints import BROKER, CLIENT, Flight

CCS = b"\x14\x03\x03\0\x01\x01"


def record(kind: int, data: bytes) -> bytes:
    return bytes((kind, 3, 3)) + len(data).to_bytes(2, "big") + data


def message(kind: int, body: bytes) -> bytes:
    return bytes((kind,)) + len(body).to_bytes(3, "big") + body


def vector(width: int, data: bytes) -> bytes:
    return len(data).to_bytes(width, "big") + data


def extensions(given: dict[int, bytes]) -> bytes:
    return vector(2, b"".join(code.to_bytes(2, "big") + vector(2, data) for code, data in given.items()))


def client_hello(random: bytes, suites: tuple[int, ...], given: dict[int, bytes]) -> bytes:
    codes = b"".join(code.to_bytes(2, "big") for code in suites)
    body = b"\x03\x03" + random + vector(1, b"") + vector(2, codes) + b"\x01\0" + extensions(given)
    return message(1, body)


def server_hello(random: bytes, code: int, given: dict[int, bytes]) -> bytes:
    return message(2, b"\x03\x03" + random + b"\0" + code.to_bytes(2, "big") + b"\0" + extensions(given))


class Sealer:
    """Seals records of TLS 1.3 under a traffic secret."""

    def __init__(self, chosen: Suite, secret: bytes) -> None:
        self._suite = chosen
        self._secret = secret
        self._begin()

    def _begin(self) -> None:
        key, iv = traffic_keys(self._secret, self._suite.key_bytes, self._suite.hash)
        mode = self._suite.mode
        self._aead: AESGCM | ChaCha20Poly1305 | AESCCM
        if mode == "GCM":
            self._aead = AESGCM(key)
        elif mode == "CHACHA20":
            self._aead = ChaCha20Poly1305(key)
        else:
            self._aead = AESCCM(key, 8 if mode == "CCM_8" else 16)
        self._iv, self.seq = int.from_bytes(iv, "big"), 0

    def update(self) -> None:
        self._secret = next_traffic_secret(self._secret, self._suite.hash)
        self._begin()

    def seal(self, kind: int, data: bytes, padding: int = 0) -> bytes:
        inner = data + bytes((kind,)) + bytes(padding)
        tag = 8 if self._suite.mode == "CCM_8" else 16
        header = b"\x17\x03\x03" + (len(inner) + tag).to_bytes(2, "big")
        nonce = (self._iv ^ self.seq).to_bytes(12, "big")
        self.seq += 1
        return header + self._aead.encrypt(nonce, inner, header)


class Forged:
    """A connection of TLS 1.3 with made-up secrets: its flights and its key log."""

    def __init__(self, code: int = 0x1301, early: bool = False, early_accepted: bool = True) -> None:
        found = suite(code)
        assert found is not None
        self.suite = found
        self.random = bytes(range(32))
        length = 48 if found.hash == "sha384" else 32
        names = {
            "early": "CLIENT_EARLY_TRAFFIC_SECRET",
            "client": "CLIENT_TRAFFIC_SECRET_0",
            "client handshake": "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            "broker": "SERVER_TRAFFIC_SECRET_0",
            "broker handshake": "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        }
        secrets = {name: bytes((number,)) * length for number, name in enumerate(names)}
        self.sealers = {name: Sealer(found, secret) for name, secret in secrets.items()}
        self.labels = {label: secrets[name] for name, label in names.items()}
        self.flights: list[Flight] = []
        offered = {43: b"\x04\x03\x04\x03\x03", **({42: b"", 41: b""} if early else {})}
        self.clear(CLIENT, client_hello(self.random, (code,), offered))
        if early:
            self.send(CLIENT, CCS)
            self.say(CLIENT, "early", b"early ")
        self.clear(BROKER, server_hello(bytes(32), code, {43: b"\x03\x04"}))
        self.send(BROKER, CCS)
        accepts = {42: b""} if early and early_accepted else {}
        self.say(BROKER, "broker handshake", message(8, extensions(accepts)), kind=22)
        self.say(BROKER, "broker handshake", message(20, bytes(length)), kind=22)
        if early and early_accepted:
            self.say(CLIENT, "early", message(5, b""), kind=22)
        self.say(CLIENT, "client handshake", message(20, bytes(length)), kind=22)

    @property
    def key_log(self) -> bytes:
        lines = [f"{label} {self.random.hex()} {secret.hex()}\n" for label, secret in self.labels.items()]
        return "".join(lines).encode()

    def send(self, side: int, data: bytes) -> None:
        self.flights.append((side, data))

    def clear(self, side: int, data: bytes) -> None:
        self.send(side, record(22, data))

    def say(self, side: int, who: str, data: bytes, kind: int = 23, padding: int = 0) -> None:
        self.send(side, self.sealers[who].seal(kind, data, padding))
