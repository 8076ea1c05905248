"""Rules on security: data in clear, refused logins and permissions, weak TLS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.exposure import ENCRYPTED_ALERTS, NO_CERTIFICATE, Exposure
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.speakers import address
from kdissect.analysis.tcp import Tcp
from kdissect.insight.causes import may_explain
from kdissect.insight.expired_logins import client_and_user, closed_when_login_expired
from kdissect.insight.finding import (
    CERTAIN,
    CRITICAL,
    INFO,
    LIKELY,
    NOTICE,
    WARNING,
    Finding,
    FindingSubject,
    key_of,
)
from kdissect.insight.gaps import without_gaps
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import having, named, of_connections, of_numbers, span
from kdissect.wording import plural

_DAY = 24 * 3600 * SECOND
_OF_BROKERS = re.compile(r"\d+|raft-client-.*|broker-\d+-.*|controller-\d+-.*|NodeTo.*|.*fetcher.*")
"""Client ids that brokers use for the connections among themselves."""


def _groups(rows: Iterable[Row], key: Callable[[Row], FindingSubject]) -> dict[FindingSubject, list[Row]]:
    found: dict[FindingSubject, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _when(rows: list[Row]) -> dict[str, int]:
    return {"first_ns": min(row["first_ns"] for row in rows), "last_ns": max(row["last_ns"] for row in rows)}


def _connections(rows: list[Row]) -> dict[str, object]:
    numbers = [row["connection"] for row in rows[:8]]
    return {
        "connections": numbers,
        "exchanges": [number for row in rows[:8] for number in row["exchanges"][:1]],
        "filter": of_connections(numbers),
        **_when(rows),
    }


def _user(row: Row) -> FindingSubject:
    """The user, or the client if no user is named."""
    return (
        FindingSubject(principal=row["principal"]) if row["principal"] is not None else client_and_user(row)
    )


def _only_client(subject: FindingSubject, rows: list[Row]) -> FindingSubject:
    """The subject with the client, if there is only one."""
    clients = {(address(row["client"]), row["client_id"]) for row in rows}
    if len(clients) > 1:
        return subject
    client, client_id = clients.pop()
    return subject._replace(client=client, client_id=client_id)


def _clients(rows: list[Row]) -> str:
    names = sorted({row["client_id"] or "a client without a name" for row in rows})
    return f"{named(names)} {'sends' if len(names) == 1 else 'send'}"


@rule("plaintext-credentials", CRITICAL, CERTAIN, needs=(Exposure,))
def plaintext_credentials(facts: Facts) -> Iterator[Finding]:
    """Passwords, tokens, or data that help to guess them cross the wire without TLS."""
    bare = [
        row
        for row in facts.rows(Exposure)
        if row["credentials"] in _CREDENTIALS_TEXT and not row["by_token"]  # a token's key is 64 bytes long
    ]
    carrying = [row for row in facts.rows(Exposure) if row["secrets"]]
    told: list[Row] = []
    for subject, rows in _groups(bare, _user).items():
        subject = _only_client(subject, rows)
        kind = min((row["credentials"] for row in rows), key=list(_CREDENTIALS_TEXT).index)
        mechanisms = named(sorted({row["mechanism"] for row in rows if row["mechanism"]}))
        whose = f"the user {subject.principal}" if subject.principal else "a user"
        also = [row for row in rows if row["secrets"]]
        told += also
        secrets = f" {_carried(also, 'It')}" if also else ""
        yield facts.finding(
            subject,
            f"{_clients(rows)} {_CREDENTIALS_TEXT[kind]} of {whose} without encryption (SASL {mechanisms}, "
            f"{plural(len(rows), 'connection')} without TLS): anybody who can capture here {_ABLE[kind]}."
            f"{secrets}",
            severity=NOTICE if kind == "hashed" and not also else CRITICAL,
            count=len(rows),
            measure=len(rows),
            unit="connections",
            **_connections([*also, *(row for row in rows if row not in also)]),
        )
    others = [row for row in carrying if row not in told]
    for subject, rows in _groups(others, lambda row: client_and_user(row)._replace(topic=None)).items():
        yield facts.finding(
            subject,
            _carried(rows, subject.client_id or "A client"),
            count=len(rows),
            measure=len(rows),
            unit="connections",
            **_connections(rows),
        )


def _carried(rows: list[Row], who: str) -> str:
    """Which requests carried secrets, as a sentence."""
    apis = named(sorted({api for row in rows for api in row["secrets"]}))
    return (
        f"{who} sends or is sent secrets (passwords, keys of tokens) in {apis} over "
        f"{plural(len(rows), 'connection')} without TLS."
    )


@rule("secrets-readable", INFO, CERTAIN, needs=(Exposure,), settings=1)
def secrets_readable(facts: Facts) -> Iterator[Finding]:
    """Settings that look like secrets are shown to every client that may describe the configuration."""
    telling = [row for row in facts.rows(Exposure) if row["readable"]]
    for subject, rows in _groups(telling, lambda row: client_and_user(row)._replace(topic=None)).items():
        settings = sorted({each for row in rows for each in row["readable"]})
        if len(settings) < facts.limit("settings"):
            continue
        exchanges = sorted({number for row in rows for number in row["readable_exchanges"]})
        yield facts.finding(
            subject,
            f"{subject.client_id or 'A client'} got the values of {plural(len(settings), 'setting')} that "
            f"{'looks' if len(settings) == 1 else 'look'} like a secret: {named(settings)}.",
            count=len(settings),
            measure=len(settings),
            unit="settings",
            threshold=facts.limit("settings"),
            **{**_connections(rows), "exchanges": exchanges, "filter": of_numbers(exchanges[:8])},
        )


_CREDENTIALS_TEXT = {
    "clear": "the password",
    "token-clear": "the token",
    "hashed": "hashes of the password",
}
_ABLE = {
    "clear": "can read the password and log in with it",
    "token-clear": "can log in with the token while it is valid",
    "hashed": "can try passwords against them",
}


@rule("unencrypted-data", NOTICE, CERTAIN, needs=(Exposure,))
def unencrypted_data(facts: Facts) -> Iterator[Finding]:
    """Records cross between hosts without TLS."""
    rows = [
        row
        for row in facts.rows(Exposure)
        if row["data"] == "clear" and address(row["client"]) != address(row["broker"])
    ]
    if not rows:
        return
    size = sum(row["record_bytes"] for row in rows)
    topics = sorted({topic for row in rows for topic in row["topics"]})
    hosts = {address(row["client"]) for row in rows}
    yield facts.finding(
        FindingSubject(topic=topics[0] if len(topics) == 1 else None),
        f"{size:,} bytes of records ({named(topics)}) crossed the network without encryption, between "
        f"{plural(len(hosts), 'client host')} and the brokers ({plural(len(rows), 'connection')}).",
        count=len(rows),
        measure=size,
        unit="bytes",
        **_connections(rows),
    )


@rule("anonymous-clients", NOTICE, CERTAIN, needs=(Exposure,))
def anonymous_clients(facts: Facts) -> Iterator[Finding]:
    """Some clients log in at a broker, and others need not."""
    rows = facts.rows(Exposure)
    secured = {address(row["broker"]) for row in rows if row["outcome"] == "authenticated"}
    nameless = [
        row
        for row in rows
        if address(row["broker"]) in secured
        and row["mechanism"] is None
        and row["tls"] is None
        and row["credentials"] == "none"
        and row["client_id"]
        and not _OF_BROKERS.fullmatch(row["client_id"])
        and row["record_bytes"]
    ]
    for subject, some in _groups(nameless, lambda row: FindingSubject(broker=row["broker"])).items():
        yield facts.finding(
            subject,
            f"{named(sorted({row['client_id'] for row in some}))} read or wrote records without logging "
            "in, on a "
            "listener of a broker where others log in.",
            count=len(some),
            measure=len(some),
            unit="connections",
            **_connections(some),
        )


_OLD_TLS = re.compile(r"SSL.*|TLS 1\.[01]")
_WEAK_SUITE = re.compile(r"_(NULL|RC4|3DES|DES|DES40|RC2|EXPORT|anon)_|^TLS_RSA_WITH_|_EXPORT|_anon_")


@rule("tls-weak", WARNING, CERTAIN, needs=(Exposure,))
def tls_weak(facts: Facts) -> Iterator[Finding]:
    """TLS uses versions or cipher suites that are no longer safe."""

    def why(row: Row) -> str | None:
        if row["tls"] and _OLD_TLS.fullmatch(row["tls"]):
            return str(row["tls"])
        return str(row["suite"]) if row["suite"] and _WEAK_SUITE.search(row["suite"]) else None

    weak = [row for row in facts.rows(Exposure) if why(row) is not None]
    for subject, rows in _groups(
        weak, lambda row: FindingSubject(client=address(row["client"]), broker=row["broker"])
    ).items():
        what = named(sorted({str(why(row)) for row in rows}))
        yield facts.finding(
            subject,
            f"{plural(len(rows), 'connection')} from {subject.client} to {subject.broker} "
            f"{'uses' if len(rows) == 1 else 'use'} {what}, which is no longer safe.",
            count=len(rows),
            measure=len(rows),
            unit="connections",
            **_connections(rows),
        )


@rule("certificate-expires", WARNING, CERTAIN, needs=(Exposure,), days=30, critical_days=3)
def certificate_expires(facts: Facts) -> Iterator[Finding]:
    """A broker's certificate has expired, or expires soon."""
    told = [row for row in facts.rows(Exposure) if row["certificate_ends_ns"] is not None]
    for subject, rows in _groups(told, lambda row: FindingSubject(broker=row["broker"])).items():
        ends_ns = min(row["certificate_ends_ns"] for row in rows)
        days = (ends_ns - max(row["last_ns"] for row in rows)) / _DAY
        if days >= facts.limit("days"):
            continue
        when = f"expires in {days:.0f} days" if days >= 0 else f"expired {-days:.0f} days ago"
        yield facts.finding(
            subject,
            f"The certificate of the broker {subject.broker} ({rows[0]['certificate']}) {when}: clients that "
            "check it will not connect from then on.",
            severity=CRITICAL if days < facts.limit("critical_days") else WARNING,
            count=len(rows),
            measure=days,
            unit="days",
            threshold=facts.limit("days"),
            **_connections(rows),
        )


@rule("tls-handshake-failed", CRITICAL, CERTAIN, needs=(Exposure,), without_kafka=True, encrypted=2)
def tls_handshake_failed(facts: Facts) -> Iterator[Finding]:
    """A TLS handshake fails."""
    failed = [
        row
        for row in facts.rows(Exposure)
        if row["alerts"]
        and facts.may_be_kafka(row["broker"])
        and (not all(map(_is_encrypted, row["alerts"])) or row["end"] in ("fin", "rst"))
    ]
    for subject, rows in _groups(
        failed, lambda row: FindingSubject(client=address(row["client"]), broker=row["broker"])
    ).items():
        alerts = sorted({alert for row in rows for alert in row["alerts"]})
        is_known = not all(map(_is_encrypted, alerts))
        if not is_known and len(rows) < facts.limit("encrypted"):
            continue
        refused = _REFUSED.issuperset(alerts)
        shown = _shown_certificate(rows, facts.rows(Exposure), subject.broker) if refused else None
        name = shown["certificate"] if shown is not None else None
        whose = f" The broker shows the certificate of {name}." if name else ""
        has_ended = shown is not None and shown["certificate_ends_ns"] < _when(rows)["last_ns"]
        yield facts.finding(
            subject,
            f"{plural(len(rows), 'connection')} from {subject.client} to {subject.broker} failed in the "
            f"handshake of TLS: {named(map(_alert, alerts))}.{whose}",
            because=key_of("certificate-expires", FindingSubject(broker=subject.broker))
            if has_ended
            else None,
            confidence=CERTAIN if is_known else LIKELY,
            count=len(rows),
            measure=len(rows),
            unit="connections",
            **_connections(rows),
        )


def _is_encrypted(alert: str) -> bool:
    return alert in ENCRYPTED_ALERTS


def _alert(text: str) -> str:
    """An alert in words."""
    if _is_encrypted(text):
        shown = (
            "the client shows no certificate though the broker asks for one"
            if text == NO_CERTIFICATE
            else "the broker does not accept the certificate that the client shows"
        )
        return f"{shown} (the broker answers only with an encrypted alert)"
    side, _, name = text.partition(": ")
    words = (_BY_BROKERS if side == "broker" else _BY_CLIENTS).get(name) or _ALERTS.get(name, name)
    return f"the {side} says {words}"


_ALERTS = {
    "unknown_ca": "that it does not trust who issued the certificate (unknown_ca)",
    "bad_certificate": "that the certificate is wrong (bad_certificate)",
    "certificate_expired": "that the certificate has expired (certificate_expired)",
    "certificate_unknown": "that it cannot accept the certificate (certificate_unknown)",
    "certificate_required": "that it wants a certificate of the client (certificate_required)",
    "handshake_failure": "that nothing it offers is acceptable (handshake_failure)",
    "protocol_version": "that the version of TLS is not acceptable (protocol_version)",
    "unrecognized_name": "that it is not the host that was asked for (unrecognized_name)",
}
_BY_BROKERS = {
    "bad_certificate": "that the client shows no certificate, or a wrong one (bad_certificate)",
}
"""What a broker's alert means. Java brokers send these if a client has no certificate
(``CertificateMessage``)."""
_BY_CLIENTS = {
    name: f"that it cannot accept the broker's certificate, which may be for another host ({name})"
    for name in ("bad_certificate", "certificate_unknown")
}
"""What a client's alert means. OpenSSL and Java send these if the certificate does not name the host."""
_REFUSED = {f"client: {name}" for name in ("certificate_expired", *_BY_CLIENTS)}
"""Alerts of clients that refuse the broker's certificate."""


def _shown_certificate(refusing: list[Row], rows: list[Row], broker: str | None) -> Row | None:
    """A connection that shows the certificate of a broker: the last one on which a client refused it, else
    the last of all. TLS 1.3 hides certificates."""
    for some in (refusing, rows):
        shown = [row for row in some if row["broker"] == broker and row["certificate_ends_ns"]]
        if shown:
            return max(shown, key=lambda row: int(row["last_ns"]))
    return None


may_explain("certificate-expires", "tls-handshake-failed", within_s=60)


_UNOFFERED = "UNSUPPORTED_SASL_MECHANISM"
_LOGIN_ERRORS = ("SASL_AUTHENTICATION_FAILED", _UNOFFERED, "ILLEGAL_SASL_STATE")
_LOGIN_WORDS = {
    _UNOFFERED: "the listener does not offer the mechanism that the client asks for",
    "ILLEGAL_SASL_STATE": "the client sends a request before or during the login",
}
_DELEGATED = "delegation token"
"""What SCRAM shows in place of a name and a password, if the client has one (KIP-48)."""
_SHOWN = {
    "OAUTHBEARER": "token",
    "GSSAPI": "Kerberos ticket",
    "AWS_MSK_IAM": "signature",
    _DELEGATED: _DELEGATED,
}
"""What a client sends to log in, by mechanism. With PLAIN and SCRAM it is a name and a password."""


_NO_LOGINS = (
    "The listener at this port is one without SASL (PLAINTEXT or SSL in listener.security.protocol.map), and "
    "the client is configured for a listener with it. The name and password play no part."
)
_OTHER_PORT = (
    "Use the port of a listener with SASL (kdissect cluster lists them), or set security.protocol to "
    "PLAINTEXT or SSL if nobody has to log in there."
)


_SOONER = (
    "Let logins last longer: connections.max.reauth.ms of the brokers, or the life of the tokens that the "
    "provider of the client gives. A client that is given the same token again has to log in again at once."
)
_ONCE_A_SECOND = (
    "A client logs in again on an open connection before its login ends (KIP-368). A broker accepts this at "
    "most once a second, and refuses a second attempt within that time."
)
_EXPIRED = (
    "A token is good until the time that stands in it. The client's provider of tokens (a callback, or a "
    "file) went on giving one whose time was over, or the client kept it for too long."
)
_NEW_TOKENS = (
    "Check the client's provider of tokens (sasl.login.callback.handler.class, oauth_cb): it has to give a "
    "token that is still valid. Let tokens be renewed earlier: sasl.login.refresh.window.factor, "
    "sasl.login.refresh.buffer.seconds. Compare the clocks of the client and of the issuer of tokens."
)


_NOT_VALID = (
    "The broker does not know the delegation token (any more): its time was over and nobody had renewed it, "
    "or somebody let it expire. A token lasts delegation.token.expiry.time.ms from each renewal (a day "
    "unless that was changed), and at most delegation.token.max.lifetime.ms (7 days) in all. Or the client "
    "has a wrong key for it."
)
_NEW_DELEGATED = (
    "Give the client a new token (kafka-delegation-tokens.sh --create) and restart it, because it keeps the "
    "old one. Renew tokens in time (--renew), or let the client log in with a user of its own."
)


def _refused(row: Row) -> FindingSubject:
    """The client and the user of an error."""
    return FindingSubject(client=row["client"], client_id=row["client_id"], principal=row["principal"])


def _is_no_start(row: Row) -> bool:
    """Whether the broker refuses even to start a login."""
    return bool(row["api"] == "SaslHandshake" and row["error"] == "ILLEGAL_SASL_STATE")


def _showed_expired_token(row: Row) -> bool:
    """Whether a connection whose login was refused showed a token whose time was over."""
    return (
        row["mechanism"] == "OAUTHBEARER"
        and row["outcome"] == "SASL_AUTHENTICATION_FAILED"
        and row["login_ends_ns"] is not None
        and row["login_ends_ns"] <= row["last_ns"]
    )


class _Logins:
    """What the connections of a capture tell of its logins."""

    def __init__(self, rows: list[Row]) -> None:
        self.mechanisms: dict[FindingSubject, set[str]] = {}
        """The mechanisms of each client, without its user."""
        self.brokers = {row["broker"] for row in rows if row["exchanges"]}
        """The listeners that took passwords, tokens or the like."""
        self._delegated: set[FindingSubject] = set()
        self._expired: dict[FindingSubject, list[bool]] = {}
        for row in rows:
            whose = client_and_user(row)
            if row["mechanism"]:
                shown = _DELEGATED if row["by_token"] else row["mechanism"]
                self.mechanisms.setdefault(whose._replace(principal=None), set()).add(shown)
            if row["by_token"]:
                self._delegated.add(whose)
            if row["outcome"] == "SASL_AUTHENTICATION_FAILED":
                self._expired.setdefault(whose, []).append(_showed_expired_token(row))

    def is_without(self, row: Row) -> bool:
        """Whether the listener has no logins."""
        return _is_no_start(row) and row["broker"] not in self.brokers

    def is_too_soon(self, row: Row) -> bool:
        """Whether a login is refused because one was begun less than a second before (``KafkaChannel``)."""
        return _is_no_start(row) and row["broker"] in self.brokers

    def has_expired(self, row: Row) -> bool:
        """Whether all tokens of the client that the broker refused had expired."""
        return row["error"] == "SASL_AUTHENTICATION_FAILED" and all(self._expired.get(_refused(row), [False]))

    def is_delegated(self, row: Row) -> bool:
        """Whether the client shows a delegation token."""
        return row["error"] == "SASL_AUTHENTICATION_FAILED" and _refused(row) in self._delegated


def _refused_login(row: Row, logins: _Logins) -> str:
    """Why a log-in was refused."""
    if logins.is_without(row):
        return "nobody can log in at this port of the broker, and the client is configured to"
    if logins.is_too_soon(row):
        return "it asks again within a second on the same connection, which a broker does not allow"
    if logins.has_expired(row):
        return "the token that it shows has expired"
    mechanisms = logins.mechanisms
    known = mechanisms.get(FindingSubject(client=row["client"], client_id=row["client_id"]), set())
    if row["error"] != "SASL_AUTHENTICATION_FAILED":
        asked = f" ({named(sorted(known))})" if known and row["error"] == _UNOFFERED else ""
        return _LOGIN_WORDS[row["error"]] + asked
    shown = {_shown_by(each) for each in known} or {_WHATEVER}
    return f"the broker does not accept {named(sorted(shown))}"


def _shown_by(mechanism: str) -> str:
    """What a client sends to log in."""
    if mechanism == "PLAIN" or mechanism.startswith("SCRAM-"):
        return "the name and password"
    return f"the {_SHOWN[mechanism]}" if mechanism in _SHOWN else _WHATEVER


_WHATEVER = "what the client shows to log in"


@rule("authentication-failed", WARNING, CERTAIN, needs=(Errors, Exposure), critical_per_minute=10)
def authentication_failed(facts: Facts) -> Iterator[Finding]:
    """Log-ins are refused."""
    failed = [row for row in facts.rows(Errors) if row["error"] in _LOGIN_ERRORS]
    whose = _groups(failed, _refused)
    logins = _Logins(facts.rows(Exposure))
    for subject, rows in whose.items():
        count = sum(row["count"] for row in rows)
        when = _when(rows)
        lasted_ns = when["last_ns"] - when["first_ns"]
        limit = facts.limit("critical_per_minute")
        often = count >= limit and lasted_ns * limit <= count * 60 * SECOND
        reasons = named(dict.fromkeys(_refused_login(row, logins) for row in rows))
        by_token = "the delegation token " if any(map(logins.is_delegated, rows)) else ""
        user = f" {'with' if by_token else 'as'} {by_token}{subject.principal}" if subject.principal else ""
        again = f", {plural(count, 'time')} in {span(lasted_ns)}" if count > 1 else ""
        could = _logged_in_before(facts.rows(Exposure), subject, when["first_ns"])
        before = f" It had logged in{' with it' if by_token else user} before." if could else ""
        cause, fix = _cause_and_fix(rows, logins, could)
        yield facts.finding(
            subject,
            f"{subject.client_id or 'A client'} cannot log in{user}{again}: {reasons}.{before}",
            cause=cause or facts.written.why,
            severity=CRITICAL if often else WARNING,
            confidence=LIKELY if all(map(logins.is_too_soon, rows)) else CERTAIN,
            fix=fix or facts.written.do,
            count=count,
            measure=count,
            unit="log-ins",
            threshold=limit,
            exchanges=[number for row in rows for number in (row["first_exchange"], row["last_exchange"])],
            filter=having(client_id=subject.client_id, error=rows[0]["error"]),
            **when,
        )


def _cause_and_fix(rows: list[Row], logins: _Logins, could: bool) -> tuple[str | None, str | None]:
    """Why logins were refused, and what to do about it; None for what the page says.

    :param could: whether the client could log in before.
    """
    if all(map(logins.is_too_soon, rows)):
        return _ONCE_A_SECOND, _SOONER
    if all(map(logins.is_without, rows)):
        return _NO_LOGINS, _OTHER_PORT
    if all(map(logins.has_expired, rows)):
        return _EXPIRED, _NEW_TOKENS
    if all(map(logins.is_delegated, rows)):
        return _NOT_VALID, _NEW_DELEGATED
    unoffered = {row["error"] for row in rows} == {_UNOFFERED}
    return _CHANGED if could else _OTHERS_OFFERED if unoffered else None, (
        _OTHER_MECHANISM if unoffered else None
    )


_OTHERS_OFFERED = (
    "The listener accepts other mechanisms only (sasl.enabled.mechanisms). The password plays no part "
    "yet: the client has not sent it."
)
_OTHER_MECHANISM = (
    "Set sasl.mechanism of the client to one that the listener accepts, which the client's log names. Or "
    "add the mechanism to sasl.enabled.mechanisms of the brokers; SCRAM also needs the user's credentials "
    "there (kafka-configs.sh)."
)
_CHANGED = (
    "The credentials were good before. They were changed or taken away since, or they ran out, and the "
    "client goes on with the old ones. A login is checked again when a client connects, or when its session "
    "ends (connections.max.reauth.ms)."
)


def _logged_in_before(rows: list[Row], subject: FindingSubject, first_ns: int) -> bool:
    """Whether a client was logged in as the same user before its first refusal, and never afterwards: on a
    connection that carried records, or that had no refused login. Otherwise there may be two clients of this
    name."""
    own = [row for row in rows if client_and_user(row) == subject] if subject.principal is not None else []
    good = [row["first_ns"] for row in own if row["outcome"] == "authenticated"]
    before = [*good, *(row["first_ns"] for row in own if row["record_bytes"])]
    return any(ns < first_ns for ns in before) and not any(ns >= first_ns for ns in good)


_OPERATIONS = {
    "Produce": ("write to", "Write"),
    "Fetch": ("read", "Read"),
    "ShareFetch": ("read", "Read"),
    "ListOffsets": ("look at", "Describe"),
    "Metadata": ("look at", "Describe"),
    "DescribeTopicPartitions": ("look at", "Describe"),
    "FindCoordinator": ("use", "Describe"),
    "JoinGroup": ("join", "Read"),
    "SyncGroup": ("join", "Read"),
    "Heartbeat": ("join", "Read"),
    "LeaveGroup": ("leave", "Read"),
    "ConsumerGroupHeartbeat": ("join", "Read"),
    "ShareGroupHeartbeat": ("join", "Read"),
    "StreamsGroupHeartbeat": ("join", "Read"),
    "OffsetCommit": ("commit offsets of", "Read"),
    "TxnOffsetCommit": ("commit offsets of", "Read"),
    "OffsetFetch": ("read offsets of", "Describe"),
    "InitProducerId": ("begin transactions as", "Write"),
    "AddPartitionsToTxn": ("write in transactions to", "Write"),
    "AddOffsetsToTxn": ("commit offsets of", "Read"),
    "EndTxn": ("end transactions of", "Write"),
    "CreateTopics": ("create", "Create"),
    "CreatePartitions": ("add partitions to", "Alter"),
    "DeleteTopics": ("delete", "Delete"),
    "DeleteRecords": ("delete records of", "Delete"),
    "DeleteGroups": ("delete", "Delete"),
    "OffsetDelete": ("delete offsets of", "Delete"),
    "DescribeConfigs": ("read settings of", "DescribeConfigs"),
    "AlterConfigs": ("change settings of", "AlterConfigs"),
    "IncrementalAlterConfigs": ("change settings of", "AlterConfigs"),
    "DescribeGroups": ("look at", "Describe"),
    "CreateAcls": ("change permissions of", "Alter"),
    "DeleteAcls": ("change permissions of", "Alter"),
    "DescribeAcls": ("look at permissions of", "Describe"),
}
"""API: in words, and the operation that kafka-acls.sh allows (AclEntry, the table of Kafka's "
"documentation)."""
_OF_CLUSTER = {
    "InitProducerId": ("write idempotently to", "IdempotentWrite"),
    "Produce": ("write idempotently to", "IdempotentWrite"),
    "Metadata": ("create topics of", "Create"),
}
"""The same for the cluster as the resource, if words or operation differ there."""
_RESOURCES = {
    "TOPIC_AUTHORIZATION_FAILED": ("topic", "--topic"),
    "GROUP_AUTHORIZATION_FAILED": ("group", "--group"),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": ("transactional_id", "--transactional-id"),
    "CLUSTER_AUTHORIZATION_FAILED": (None, "--cluster"),
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": (None, "--delegation-token"),
}


@rule("authorization-denied", WARNING, CERTAIN, needs=(Errors,))
def authorization_denied(facts: Facts) -> Iterator[Finding]:
    """Somebody is not allowed to do what the request asks for."""

    def whose(row: Row) -> FindingSubject:
        subject = FindingSubject(client=row["client"], client_id=row["client_id"], principal=row["principal"])
        kind, _ = _RESOURCES[row["error"]]
        return subject if kind is None else subject._replace(**{kind: row[kind]})

    denied = [row for row in facts.rows(Errors) if row["error"] in _RESOURCES]
    for subject, rows in _groups(denied, whose).items():
        kind, option = _RESOURCES[rows[0]["error"]]
        name = getattr(subject, kind) if kind is not None else None
        of = _OF_CLUSTER if kind is None else _OPERATIONS
        known = [of.get(row["api"], _OPERATIONS.get(row["api"])) for row in rows]
        words = named(
            each[0] if each is not None else f"use {row['api']} for"
            for each, row in zip(known, rows, strict=True)
        )
        operations = sorted({each[1] for each in known if each is not None})
        user = subject.principal or "a user that the capture does not name"
        what = f"the {kind.replace('_', ' ')} {name}" if kind is not None else "the cluster"
        count = sum(row["count"] for row in rows)
        yield facts.finding(
            subject,
            f"{subject.client_id or 'A client'} ({user}) may not {words} {what}: refused "
            f"{plural(count, 'time')}.",
            count=count,
            measure=count,
            fix=_grant(subject.principal, operations, option, name),
            exchanges=[number for row in rows for number in (row["first_exchange"], row["last_exchange"])],
            filter=having(client_id=subject.client_id, error=rows[0]["error"])
            or of_numbers([row["first_exchange"] for row in rows]),
            **_when(rows),
        )


def _grant(principal: str | None, operations: list[str], option: str, name: str | None) -> str:
    """The command that grants the permission."""
    user = principal.removeprefix("User:") if principal else "NAME"
    allowed = " ".join(f"--operation {each}" for each in operations) or "--operation OPERATION"
    target = option if option == "--cluster" else f"{option} {name or 'NAME'}"
    return (
        f"If it should be allowed: kafka-acls.sh --bootstrap-server HOST:PORT --add --allow-principal "
        f"User:{user} "
        f"{allowed} {target}. If not, correct the name or the user in the client's configuration."
    )


@rule("reauthentication-missed", WARNING, CERTAIN, needs=(Exposure, Tcp, Connections), within_s=5)
def reauthentication_missed(facts: Facts) -> Iterator[Finding]:
    """The broker closed a connection because its login had expired. If it is not known who closed it, the
    client may have done it with a FIN that was not captured. If bytes are missing, the client may have logged
    in again."""
    closed_by = {row["connection"]: row["closed_by"] for row in facts.rows(Tcp)}
    late = closed_when_login_expired(facts)
    if any(closed_by.get(row["connection"]) is None for row in late):
        facts.cannot_judge("nobody knows who closed a connection first, perhaps its client")
        late = [row for row in late if closed_by.get(row["connection"]) == "broker"]
    late = without_gaps(facts, late, "a log-in")
    for subject, rows in _groups(late, client_and_user).items():
        yield facts.finding(
            subject,
            f"The broker closed {plural(len(rows), 'connection')} of {subject.client_id or 'a client'} "
            "when the login expired: the client did not log in again before.",
            count=len(rows),
            measure=len(rows),
            unit="connections",
            **_connections(rows),
        )
