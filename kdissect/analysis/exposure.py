"""Exposure: the data that crosses the wire in clear on each connection, and how well the others are
protected.

No credential is kept: only that one was sent, by which mechanism, and whose it was.

* ``clear``: a password that anyone who captures can read (PLAIN).
* ``token-clear``: a token with which anyone who captures may log in while it is valid (OAUTHBEARER).
* ``hashed``: an exchange of hashes or a signature, against which passwords can be tried (SCRAM, AWS_MSK_IAM).
* ``none``: nothing of these was sent, or it was inside TLS.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Self

from kdissect.analysis.counters import Span
from kdissect.analysis.declared import (
    BROKER_COLUMN,
    BYTES,
    CLIENT_COLUMN,
    CLIENT_ID_COLUMN,
    EXCHANGE,
    column,
    first_and_last,
    time_column,
)
from kdissect.analysis.fold import SECOND, Batched, OneTable, Row
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import record_sets
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import SASL_TOKEN, Request, Token
from kdissect.protocol.config_names import TOPIC, is_secret_config
from kdissect.protocol.definition import ALWAYS
from kdissect.protocol.library import Library, library
from kdissect.protocol.schema import Struct
from kdissect.protocol.select import Selection, pick, selection
from kdissect.protocol.traits import field_traits
from kdissect.session.conversation import Connection
from kdissect.tls.summary import NOTHING_SHOWN, SOMETHING_SHOWN

CLEAR, TOKEN, HASHED, NONE, ENCRYPTED = "clear", "token-clear", "hashed", "none", "encrypted"
_LOGINS = frozenset(("SaslAuthenticate", SASL_TOKEN))
_KINDS = {"PLAIN": CLEAR, "OAUTHBEARER": TOKEN, "AWS_MSK_IAM": HASHED}
_SECRET_CONFIG = re.compile(r"password|secret|jaas\.config|credential|keystore\.key|token", re.IGNORECASE)
_IF_SENSITIVE, _IF_REPEATED = "if sensitive", "if repeated"
"""Rules of the definitions: for a config in a broker's answer, and for an answer that repeats the request."""
_MOST_TOPICS = 64
"""The most topics that are named of a connection."""
_MOST_SETTINGS = 64
MOST_EXCHANGES = 8
NO_CERTIFICATE = f"broker: {NOTHING_SHOWN}"
ENCRYPTED_ALERTS = NO_CERTIFICATE, f"broker: {SOMETHING_SHOWN}"
"""The ``alerts`` that nobody can read, and that are all that the broker sent after the client's part."""


class _ConnectionExposure:
    """The exposed data of a connection."""

    __slots__ = (
        *("broker", "by_token", "bytes", "client", "client_id", "encrypted", "login", "login_exchanges"),
        *("mechanism", "over", "principal", "readable", "record_bytes", "requests", "secrets"),
        *("span", "topics"),
    )

    def __init__(self) -> None:
        self.client = ""
        self.broker = ""
        self.client_id: str | None = None
        self.principal: str | None = None
        self.mechanism: str | None = None
        self.encrypted = False
        self.login = False
        """Whether the client sent a token of its mechanism."""
        self.by_token = False
        """Whether that token names a delegation token in place of a user (KIP-48)."""
        self.secrets: set[str] = set()
        self.readable: dict[str, int] = {}
        """Settings that are marked as secrets and whose values were sent, with the first exchange."""
        self.topics: dict[Topic, None] = {}
        self.record_bytes = 0
        self.bytes = 0
        self.requests = 0
        self.login_exchanges: list[int] = []
        self.span = Span()
        self.over: Connection | None = None

    @property
    def is_counted(self) -> bool:
        return bool(self.requests) or self.over is not None

    def add(self, exchange: Exchange, request: Request | Token | None, counts: bool) -> None:
        """Take in the speakers of an exchange, and its bytes."""
        self.client, self.broker = exchange._client_address(), exchange._broker_address()
        if request is not None and request.client_id is not None:
            self.client_id = request.client_id
        if exchange.principal is not None:
            self.principal = exchange.principal
        if exchange.is_encrypted:
            self.encrypted = True
        if not counts:
            return
        self.requests += 1
        if request is not None:
            self.bytes += request.frame.size
        response = exchange.response
        if response is not None:
            self.bytes += response.frame.size
        if request is not None and response is not None:  # the same as ``cover``, without Python numbers
            self.span.add(request.frame.last_ns, exchange.number)
            self.span.add(response.frame.last_ns, exchange.number)
        else:
            self.span.cover(exchange)

    def merge(self, later: _ConnectionExposure) -> None:
        self.client, self.broker = later.client or self.client, later.broker or self.broker
        self.client_id = later.client_id if later.client_id is not None else self.client_id
        self.principal = later.principal if later.principal is not None else self.principal
        self.mechanism = later.mechanism if later.mechanism is not None else self.mechanism
        self.encrypted = self.encrypted or later.encrypted
        self.login = self.login or later.login
        self.by_token = self.by_token or later.by_token
        self.secrets |= later.secrets
        for setting, number in later.readable.items():
            self.read(setting, number)
        for topic in later.topics:
            self.name(topic)
        self.record_bytes += later.record_bytes
        self.bytes += later.bytes
        self.requests += later.requests
        self.login_exchanges = (self.login_exchanges + later.login_exchanges)[:4]
        self.span.merge(later.span)
        self.over = later.over or self.over

    def read(self, setting: str, number: int) -> None:
        """Note a setting whose value was sent."""
        if setting in self.readable or len(self.readable) < _MOST_SETTINGS:
            self.readable[setting] = min(number, self.readable.get(setting, number))

    def name(self, topic: Topic) -> None:
        """Note a topic whose records went over the connection."""
        if len(self.topics) < _MOST_TOPICS:
            self.topics[topic] = None


class Exposure(Batched, OneTable[int, _ConnectionExposure]):
    """The statistic ``exposure``."""

    name = "exposure"
    about = "what crosses the wire in the clear: credentials, records; TLS and certificates"
    row_bytes = 2_600
    columns = (
        column("connection", "int64", "number of the connection"),
        CLIENT_COLUMN,
        BROKER_COLUMN,
        CLIENT_ID_COLUMN,
        column("principal", "text", "user of the connection, from its login"),
        column("mechanism", "text", "SASL mechanism; null without a SASL login"),
        column(
            "by_token",
            "bool",
            "whether a login by SCRAM showed a delegation token (KIP-48), whose id is then the principal; "
            "null without such a login",
        ),
        column("outcome", "text", "outcome of the login: authenticated, or the error"),
        time_column("login_ends_ns", "time at which the login expires (KIP-368)"),
        column("tls", "text", "version of TLS; null without TLS, or if its handshake was not captured"),
        column("suite", "text", "the cipher suite"),
        column(
            "alerts",
            "texts",
            "fatal TLS alerts, each after its sender: client or broker; none if no part of the handshake was "
            "captured",
        ),
        column("certificate", "text", "subject of the broker's certificate, if the handshake shows it"),
        time_column("certificate_ends_ns", "time at which the certificate expires"),
        column(
            "credentials",
            "text",
            "clear (a password), token-clear, hashed (passwords can be guessed against it), none; null if "
            "the beginning of the connection was not captured",
        ),
        column(
            "secrets",
            "texts",
            "APIs that carried other secrets in clear: SCRAM credentials, tokens, configurations",
        ),
        column(
            "readable",
            "texts",
            "settings of brokers, topics and groups that look like secrets and whose values are in a "
            "response",
        ),
        column("readable_exchanges", "int64s", "the first exchanges with such a response", unit=EXCHANGE),
        column("data", "text", "clear or encrypted; null if no record was seen"),
        column("topics", "texts", f"topics whose records were sent in clear, at most {_MOST_TOPICS}"),
        column("bytes", "int64", "bytes of both directions"),
        column("record_bytes", "int64", "bytes of records that were seen", unit=BYTES),
        column("exchanges", "int64s", "exchanges of the login", unit=EXCHANGE),
        column("end", "text", "fin, rst, open, reused or evicted"),
        *first_and_last("packet"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_ConnectionExposure, limits)
        self._labels = Labels(self.latest, limits)
        self._clean: _Clean = set()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_clean": set()}

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _take(exchanges, True, self._rows, self._labels, self.limits, self._clean)

    def _other(self, exchange: Exchange) -> None:
        _take([exchange], False, self._rows, self._labels, self.limits, self._clean)

    def _connection(self, connection: Connection) -> None:
        if connection.protocol in ("kafka", "tls"):
            row = self._rows.row(connection.connection)
            if row is not None:
                row.over = connection

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        super().merge(later)

    def result(self) -> list[Row]:
        return list(self.result_rows())

    def result_rows(self) -> Iterator[Row]:
        self._labels.resolve_names()
        for number in sorted(self._rows):
            row = self._rows[number]
            if row.is_counted:
                yield self._result(number, row)

    def _result(self, number: int, row: _ConnectionExposure) -> Row:
        over = row.over
        tls: dict[str, Any] = (over.tls if over is not None else None) or {}
        login: dict[str, Any] = (over.sasl if over is not None else None) or {}
        encrypted = row.encrypted or bool(tls)
        certificates = tls.get("certificates") or []
        mechanism = login.get("mechanism") or row.mechanism
        topics = {self._labels.name(topic) or "" for topic in row.topics}
        return {
            "connection": number,
            "client": over.client if over is not None else row.client,
            "broker": over.broker if over is not None else row.broker,
            "client_id": row.client_id,
            "principal": login.get("principal") or row.principal,
            "mechanism": mechanism,
            "by_token": row.by_token if row.login and (mechanism or "").startswith("SCRAM-") else None,
            "outcome": login.get("outcome"),
            "login_ends_ns": _ms(login.get("expires_ms")),
            "tls": tls.get("version") or ("TLS" if encrypted else None),
            "suite": tls.get("suite"),
            "alerts": _fatal_alerts(tls),
            "certificate": certificates[0].get("subject") if certificates else None,
            "certificate_ends_ns": _ns(certificates[0].get("not_after")) if certificates else None,
            "credentials": _credentials(row, mechanism, encrypted, over),
            "secrets": [] if encrypted else sorted(row.secrets),
            "readable": sorted(row.readable),
            "readable_exchanges": sorted(set(row.readable.values()))[:MOST_EXCHANGES],
            "data": ENCRYPTED if encrypted else CLEAR if row.record_bytes else None,
            "topics": [] if encrypted else sorted(each for each in topics if each),
            "bytes": over.bytes_to_broker + over.bytes_from_broker if over is not None else row.bytes,
            "record_bytes": row.record_bytes,
            "exchanges": row.login_exchanges,
            "end": over.end if over is not None else None,
            "first_ns": over.start_ns if over is not None else row.span.first_ns,
            "last_ns": over.end_ns if over is not None else row.span.last_ns,
        }


def _fatal_alerts(tls: dict[str, Any]) -> list[str]:
    """Fatal alerts. If nothing of a handshake was captured, the message before an alert and the broker's end
    are unknown."""
    if not tls.get("offered") and tls.get("version") is None:
        return []
    return [f"{each['from']}: {each['name']}" for each in tls["alerts"] if each["level"] == "fatal"]


def _take(
    exchanges: list[Exchange],
    counts: bool,
    rows: Rows[int, _ConnectionExposure],
    labels: Labels,
    limits: Limits,
    clean: _Clean,
) -> None:
    """Take in exchanges.

    :param clean: messages that expose nothing; more are added.
    """
    known = library()
    for exchange in exchanges:
        row = rows.row(exchange.connection)
        if row is None:
            continue
        request = exchange.request
        row.add(exchange, request, counts)
        api = exchange._api() or ""
        if api == "SaslHandshake" and request is not None:
            mechanism = request.body().get("mechanism")
            row.mechanism = mechanism if isinstance(mechanism, str) else row.mechanism
        elif api in _LOGINS:
            if request is not None:
                row.login = True
                row.by_token = row.by_token or _names_token(request.body().get("authBytes") or b"")
            row.login_exchanges = [*row.login_exchanges, exchange.number][:4]
        if not counts:
            continue
        if _may_hold_secrets(known, api):
            _look_for_secrets(known, clean, row, exchange, api)
        response = exchange.response
        if not (request is not None and request.may_have_records()) and not (
            response is not None and response.may_have_records()
        ):
            continue
        for each in record_sets(exchange, limits):
            place = each.place
            if place.data:
                row.record_bytes += len(place.data)
                row.name(labels.topic(place.topic, place.topic_id))


def _names_token(data: bytes) -> bool:
    """Whether a client's first message of SCRAM names a delegation token: ``n,,n=ID,r=…,tokenauth=true``."""
    return b"tokenauth=true" in data.split(b",")


def _credentials(
    row: _ConnectionExposure, mechanism: str | None, encrypted: bool, over: Connection | None
) -> str | None:
    if encrypted:
        return NONE
    if mechanism is not None and row.login:
        return HASHED if mechanism.startswith("SCRAM") else _KINDS.get(mechanism, NONE)
    if row.login or (over is not None and not over.opened):
        return None
    return NONE


_OPAQUE = frozenset(("PushTelemetry",))
"""APIs with a field of unknown content, which outputs hide. It is no credential."""


@lru_cache(maxsize=4096)
def _may_hold_secrets(_: Library, api: str) -> bool:
    """Whether the definitions mark secrets in an API's messages, not counting logins."""
    if api in _LOGINS or api in _OPAQUE:
        return False
    return any(_secret_fields(f"{api}{kind}") for kind in ("Request", "Response"))


def _secret_fields(message: str) -> dict[str, str]:
    """The fields of a message class that may be secrets, with the rule. A field that holds another message is
    no secret itself. A broker's answer that repeats the request has no secrets of its own."""
    traits = field_traits(message)
    return {
        name: rule
        for name, rule in traits.secrets.items()
        if name not in traits.holds and rule != _IF_REPEATED
    }


@cache
def _selected(struct: Struct) -> tuple[dict[str, str], Selection]:
    rules = _secret_fields(struct.name)
    return rules, selection(struct, lambda field: field.name in rules)


_Clean = set[tuple[Any, ...]]
"""Recent messages that expose nothing: the definitions and limits in use, API and version, and a hash of
their bytes. The bytes may have secrets that Kafka itself hides."""
_MOST_CLEAN, _MOST_CLEAN_BYTES = 128, 16_384
"""The most of them, and the most bytes of one."""


def _look_for_secrets(
    known: Library, clean: _Clean, row: _ConnectionExposure, exchange: Exchange, api: str
) -> None:
    """Note secrets in the messages. A broker hides the settings that it knows as passwords, but not others,
    such as those of plug-ins. Anyone who may describe these settings can read them."""
    for message in exchange.messages:
        words: tuple[Any, ...] | None = None
        if len(message.frame.payload) <= _MOST_CLEAN_BYTES:
            whole = hashlib.blake2b(message.frame.payload[message.body_start :]).digest()
            kind = message.kind, message.api_key, message.api_version
            words = known, message.limits, kind, message.is_cut, whole
            if words in clean:
                continue
        body = message.decoded()
        if body.struct is None:
            continue
        rules, plan = _selected(body.struct)
        is_clean = True
        for name, value, ancestors in pick(plan, body.values) if plan else ():
            rule, config = rules[name], ancestors[-1]
            if not value:
                continue
            if rule == _IF_SENSITIVE:
                if config.get("isSensitive") is False and _is_secret(ancestors, config):
                    row.read(config["name"], exchange.number)
                    is_clean = False
            elif rule == ALWAYS or _is_secret(ancestors, config):
                row.secrets.add(api)
                is_clean = False
        if is_clean and words is not None:
            if len(clean) >= _MOST_CLEAN:
                clean.clear()
            clean.add(words)


def _is_secret(ancestors: tuple[dict[str, Any], ...], config: dict[str, Any]) -> bool:
    """Whether a setting is marked as a secret, and is not one of Kafka's settings that are no secrets.

    :param ancestors: the structs around it. None of them names a kind of resource if the request makes
        topics.
    """
    name = config.get("name")
    if not isinstance(name, str) or not _looks_secret(name):
        return False
    kinds = (each["resourceType"] for each in reversed(ancestors) if "resourceType" in each)
    return is_secret_config(next(kinds, TOPIC), name)


@lru_cache(maxsize=4096)
def _looks_secret(name: str) -> bool:
    """Whether a setting has a name of secrets. Brokers send the same few hundred names again and again."""
    return _SECRET_CONFIG.search(name) is not None


def _ms(ms: Any) -> int | None:
    """A time in ms since the epoch, converted to ns."""
    return ms * 1_000_000 if isinstance(ms, int) and 0 < ms < 1 << 43 else None


def _ns(text: Any) -> int | None:
    """A time in the form of certificates, converted to ns since the epoch."""
    return int(datetime.fromisoformat(text).timestamp()) * SECOND if isinstance(text, str) else None
