"""Rules on credentials, log-ins, permissions and TLS."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.exposure import Exposure
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.tcp import Tcp
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import CERTAIN, CRITICAL, INFO, LIKELY, NOTICE, WARNING, Finding
from kdissect.tls.summary import NOTHING_SHOWN, SOMETHING_SHOWN
from tests.insight.judged import CAPTURES, judged_file
from tests.insight.made import Facts, row, said, said_by, unjudged

SEVERITIES = {
    "plaintext-credentials": CRITICAL,
    "secrets-readable": INFO,
    "unencrypted-data": NOTICE,
    "anonymous-clients": NOTICE,
    "tls-weak": WARNING,
    "certificate-expires": WARNING,
    "tls-handshake-failed": CRITICAL,
    "authentication-failed": WARNING,
    "authorization-denied": WARNING,
    "reauthentication-missed": WARNING,
}
DAY = 24 * 3600 * SECOND


def connection(**values: Any) -> Row:
    defaults = {
        "connection": 3,
        "client": "10.0.0.1:5000",
        "broker": "10.0.0.9:9092",
        "client_id": "app",
        "credentials": "none",
        "record_bytes": 0,
        "end": "fin",
        "first_ns": 1 * SECOND,
        "last_ns": 90 * SECOND,
    }
    return row(Exposure, **(defaults | values))


def refused(error: str, **values: Any) -> Row:
    defaults = {
        "error": error,
        "client": "10.0.0.1",
        "client_id": "app",
        "principal": "alice",
        "count": 3,
        "first_ns": 1 * SECOND,
        "last_ns": 2 * SECOND,
        "first_exchange": 5,
        "last_exchange": 8,
    }
    return row(Errors, **(defaults | values))


def judged(id: str, *rows: Row) -> list[Finding]:
    return said(id, {Exposure: list(rows)})


@pytest.mark.parametrize(("id", "severity"), SEVERITIES.items())
def test_severities_are_the_catalogue_s(id: str, severity: str) -> None:
    assert (RULES[id].severity, RULES[id].category) == (severity, "security")
    page = RULES[id].page
    assert page.what
    assert page.why
    assert page.do


@pytest.mark.parametrize("id", SEVERITIES)
def test_an_ordinary_connection_is_no_finding(id: str) -> None:
    secured = connection(tls="TLS 1.3", suite="TLS_AES_256_GCM_SHA384", data="encrypted", record_bytes=9)
    assert not said(id, {Exposure: [connection(), secured]})


@pytest.mark.parametrize(
    ("credentials", "mechanism", "severity", "words"),
    [
        ("clear", "PLAIN", CRITICAL, "the password of the user alice"),
        ("token-clear", "OAUTHBEARER", CRITICAL, "the token of the user alice"),
        ("hashed", "SCRAM-SHA-256", NOTICE, "hashes of the password of the user alice"),
    ],
)
def test_credentials_are_told_by_user(credentials: str, mechanism: str, severity: str, words: str) -> None:
    bare = connection(credentials=credentials, mechanism=mechanism, principal="alice")
    (found,) = judged("plaintext-credentials", bare, bare | {"connection": 4})
    assert (found.subject.principal, found.subject.client_id, found.severity) == ("alice", "app", severity)
    assert words in found.message
    assert found.filter == "connection in {3, 4}"
    (several,) = judged("plaintext-credentials", bare, bare | {"client_id": "web"})
    assert several.subject.client_id is None


def test_secrets_in_other_requests_are_told() -> None:
    (found,) = judged("plaintext-credentials", connection(secrets=["AlterUserScramCredentials"]))
    assert "AlterUserScramCredentials" in found.message


def test_secrets_beside_hashes_of_a_password_are_critical() -> None:
    bare = connection(credentials="hashed", mechanism="SCRAM-SHA-256", principal="alice")
    carrying = bare | {"connection": 4, "secrets": ["CreateDelegationToken"]}
    (found,) = judged("plaintext-credentials", bare, carrying)
    assert (found.severity, found.count) == (CRITICAL, 2)
    assert "hashes of the password of the user alice" in found.message
    assert found.message.endswith("in CreateDelegationToken over 1 connection without TLS.")
    assert found.filter == "connection in {4, 3}"
    one, other = judged("plaintext-credentials", bare, carrying | {"credentials": "none", "principal": "bob"})
    assert {each.subject.principal: each.severity for each in (one, other)} == {
        "alice": NOTICE,
        "bob": CRITICAL,
    }


def test_settings_that_look_like_secrets_are_told_by_name() -> None:
    telling = connection(readable=["my.reporter.password"], readable_exchanges=[8], tls="TLS 1.3")
    (found,) = judged("secrets-readable", telling)
    assert "1 setting that looks like a secret: my.reporter.password" in found.message
    assert (found.exchanges, found.subject.client_id, found.measure) == ((8,), "app", 1)
    assert not judged("secrets-readable", connection())


def test_records_in_clear_count_between_hosts() -> None:
    near = connection(data="clear", record_bytes=9, topics=["t"], client="10.0.0.9:1")
    assert not judged("unencrypted-data", near)
    (found,) = judged("unencrypted-data", connection(data="clear", record_bytes=9, topics=["t"]))
    assert (found.subject.topic, found.measure) == ("t", 9)


def test_clients_without_a_log_in_beside_others() -> None:
    known = connection(mechanism="PLAIN", outcome="authenticated", broker="10.0.0.9:9093")
    nameless = connection(record_bytes=5)
    (found,) = judged("anonymous-clients", known, nameless)
    assert found.subject.broker == "10.0.0.9:9092"
    assert not judged("anonymous-clients", nameless)
    assert not judged("anonymous-clients", known, nameless | {"client_id": "broker-1-fetcher-0"})
    assert not judged("anonymous-clients", known, nameless | {"credentials": None})  # its begin is not there


@pytest.mark.parametrize(
    ("values", "weak"),
    [
        ({"tls": "TLS 1.1", "suite": "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"}, True),
        ({"tls": "TLS 1.2", "suite": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, False),
        ({"tls": "TLS 1.2", "suite": "TLS_RSA_WITH_AES_128_GCM_SHA256"}, True),
        ({"tls": "TLS 1.2", "suite": "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA"}, True),
        ({"tls": "TLS 1.2", "suite": "TLS_DH_anon_WITH_AES_128_CBC_SHA"}, True),
    ],
)
def test_weak_tls(values: dict[str, str], weak: bool) -> None:
    assert bool(judged("tls-weak", connection(**values))) == weak


def test_certificates_that_end_within_30_days() -> None:
    def ending(days: float) -> Row:
        return connection(certificate="CN=b", certificate_ends_ns=int(90 * SECOND + days * DAY))

    assert not judged("certificate-expires", ending(30))
    assert judged("certificate-expires", ending(29.9))[0].severity == WARNING
    assert judged("certificate-expires", ending(2.9))[0].severity == CRITICAL
    assert "expired 1 days ago" in judged("certificate-expires", ending(-1))[0].message


def test_alerts_are_said_in_words() -> None:
    (found,) = judged("tls-handshake-failed", connection(alerts=["client: unknown_ca"]))
    assert "the client says that it does not trust who issued the certificate" in found.message


@pytest.mark.parametrize(
    ("alert", "words"),
    [
        ("broker: bad_certificate", "the broker says that the client shows no certificate, or a wrong one"),
        ("client: bad_certificate", "the client says that it cannot accept the broker's certificate"),
        ("client: certificate_unknown", "which may be for another host (certificate_unknown)"),
        ("broker: certificate_unknown", "the broker says that it cannot accept the certificate"),
    ],
)
def test_whose_certificate_is_wrong(alert: str, words: str) -> None:
    (found,) = judged("tls-handshake-failed", connection(alerts=[alert]))
    assert words in found.message
    assert found.confidence == CERTAIN


@pytest.mark.parametrize(
    ("alert", "ends_s", "is_explained"),
    [
        ("client: certificate_expired", 89, True),
        ("client: certificate_unknown", 89, True),
        ("client: certificate_unknown", 90, False),
        ("client: unknown_ca", 89, False),
    ],
)
def test_a_certificate_that_has_expired_explains_who_refuses_it(
    alert: str, ends_s: int, is_explained: bool
) -> None:
    failed = connection(alerts=[alert])
    shown = connection(certificate="CN=a", certificate_ends_ns=ends_s * SECOND)
    found = said_by(("tls-handshake-failed", "certificate-expires"), (Exposure, failed), (Exposure, shown))
    (refusal,) = found["tls-handshake-failed"]
    assert (refusal.because is not None) == is_explained
    assert ("shows the certificate of CN=a" in refusal.message) == (alert != "client: unknown_ca")
    elsewhere = connection(broker="10.0.0.8:9092", certificate="CN=b", certificate_ends_ns=1)
    found = said_by(
        ("tls-handshake-failed", "certificate-expires"), (Exposure, failed), (Exposure, elsewhere)
    )
    assert found["tls-handshake-failed"][0].because is None


def test_the_certificate_that_was_refused_counts_before_others() -> None:
    alert = ["client: certificate_unknown"]
    old = connection(certificate="CN=old", certificate_ends_ns=1 * SECOND, first_ns=0, last_ns=1)
    new = {"certificate": "CN=new", "certificate_ends_ns": 10**6 * SECOND}
    for failed, others in (
        (connection(alerts=alert, **new), [old]),
        (connection(alerts=alert), [old, connection(**new)]),
    ):
        rows = [(Exposure, each) for each in (*others, failed)]
        (refusal,) = said_by(("tls-handshake-failed", "certificate-expires"), *rows)["tls-handshake-failed"]
        assert "shows the certificate of CN=new" in refusal.message
        assert refusal.because is None
    # Its names may all be alternative ones.
    nameless = connection(alerts=alert, certificate="", certificate_ends_ns=10**6 * SECOND)
    (refusal,) = said_by(("tls-handshake-failed",), (Exposure, nameless))["tls-handshake-failed"]
    assert "shows the certificate" not in refusal.message


def test_a_mechanism_that_is_not_offered_is_named() -> None:
    rows = {
        Errors: [refused("UNSUPPORTED_SASL_MECHANISM", principal=None)],
        Exposure: [connection(mechanism="SCRAM-SHA-256"), connection(client_id="b", mechanism="PLAIN")],
    }
    (found,) = said("authentication-failed", rows)
    assert "the mechanism that the client asks for (SCRAM-SHA-256)" in found.message
    assert found.fix.startswith("Set sasl.mechanism of the client to one that the listener accepts")
    (found,) = said("authentication-failed", {**rows, Exposure: []})
    assert "the mechanism that the client asks for." in found.message
    both = [*rows[Errors], refused("SASL_AUTHENTICATION_FAILED", principal=None)]
    (found,) = said("authentication-failed", {**rows, Errors: both})
    assert found.fix.startswith("Correct sasl.jaas.config")


def test_an_alert_that_cannot_be_read_is_told_when_it_comes_again() -> None:
    refused = connection(alerts=[f"broker: {NOTHING_SHOWN}"], end="rst")
    (found,) = judged("tls-handshake-failed", refused, refused)
    assert found.confidence == LIKELY
    assert "the client shows no certificate though the broker asks for one" in found.message
    wrong = connection(alerts=[f"broker: {SOMETHING_SHOWN}"])
    (found,) = judged("tls-handshake-failed", wrong, wrong)
    assert "does not accept the certificate that the client shows" in found.message
    assert not judged("tls-handshake-failed", refused)
    assert not judged("tls-handshake-failed", refused, refused | {"end": "open"})


def test_log_ins_that_fail_are_critical_at_10_a_minute() -> None:
    (found,) = said("authentication-failed", {Errors: [refused("SASL_AUTHENTICATION_FAILED")]})
    assert (found.subject.client_id, found.subject.principal, found.severity) == ("app", "alice", WARNING)
    assert found.message == (
        "app cannot log in as alice, 3 times in 1 s: the broker does not accept what the client shows to "
        "log in."
    )
    often = refused("SASL_AUTHENTICATION_FAILED", count=10, last_ns=61 * SECOND)
    (found,) = said("authentication-failed", {Errors: [often]})
    assert found.severity == CRITICAL
    often["last_ns"] += 1
    (found,) = said("authentication-failed", {Errors: [often]})
    assert found.severity == WARNING


@pytest.mark.parametrize(
    ("exchanges", "why", "confidence"),
    [([], "nobody can log in at this port", CERTAIN), ([7], "asks again within a second", LIKELY)],
)
def test_a_broker_that_took_a_login_has_logins(exchanges: list[int], why: str, confidence: str) -> None:
    asked = refused(
        "ILLEGAL_SASL_STATE", api="SaslHandshake", principal=None, broker="10.0.0.9:9092", count=1
    )
    taken = connection(mechanism="OAUTHBEARER", exchanges=exchanges)
    (found,) = said("authentication-failed", {Errors: [asked], Exposure: [taken]})
    assert why in found.message
    assert found.confidence == confidence
    assert ("Let logins last longer" in found.fix) == bool(exchanges)
    (found,) = said("authentication-failed", {Errors: [asked], Exposure: [taken | {"broker": "10.0.0.8:1"}]})
    assert "nobody can log in" in found.message


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, True),
        ({"login_ends_ns": 3 * SECOND + 1}, False),
        ({"login_ends_ns": None}, False),
        ({"mechanism": "SCRAM-SHA-256"}, False),
    ],
)
def test_a_token_that_has_expired(values: dict[str, Any], told: bool) -> None:
    failed = refused("SASL_AUTHENTICATION_FAILED", api="SaslAuthenticate")
    usual = {"mechanism": "OAUTHBEARER", "outcome": "SASL_AUTHENTICATION_FAILED", "principal": "alice"}
    shown = connection(**{**usual, "login_ends_ns": 3 * SECOND, "last_ns": 3 * SECOND, **values})
    (found,) = said("authentication-failed", {Errors: [failed], Exposure: [shown]})
    assert ("the token that it shows has expired" in found.message) == told
    assert ("provider of tokens" in found.cause) == told
    good = shown | {"connection": 9, "login_ends_ns": 99 * SECOND, "mechanism": "OAUTHBEARER"}
    (found,) = said("authentication-failed", {Errors: [failed], Exposure: [shown, good]})
    assert "has expired" not in found.message, "another one was refused, too"


def test_who_could_log_in_before_has_credentials_that_changed() -> None:
    failed = refused("SASL_AUTHENTICATION_FAILED")

    def told(*connections: dict[str, Any]) -> bool:
        usual = {"client": "10.0.0.1:5000", "client_id": "app", "principal": "alice", "first_ns": 0}
        rows = [connection(**{**usual, "outcome": "authenticated", **each}) for each in connections]
        (found,) = said("authentication-failed", {Errors: [failed], Exposure: rows})
        assert found.message.endswith("It had logged in as alice before.") == (
            "were good before" in found.cause
        )
        return found.message.endswith("before.")

    assert told({})
    renewed = {"outcome": "SASL_AUTHENTICATION_FAILED", "record_bytes": 9}
    assert told(renewed), "its session ended"
    assert not told({**renewed, "record_bytes": 0})
    assert not told({"first_ns": failed["first_ns"]})
    assert not told({}, {"first_ns": failed["first_ns"]}), "another one of its name can"
    for other in ({"principal": "bob"}, {"client": "10.0.0.2:5000"}, {"client_id": "other"}):
        assert not told(other)


@pytest.mark.parametrize(
    ("count", "lasted_s", "severity"),
    [(30, 60, CRITICAL), (30, 61, WARNING), (29, 1, WARNING), (60, 120, CRITICAL), (60, 121, WARNING)],
)
def test_how_often_a_minute_is_critical_is_the_threshold(count: int, lasted_s: int, severity: str) -> None:
    often = refused("SASL_AUTHENTICATION_FAILED", count=count, last_ns=(1 + lasted_s) * SECOND)
    (found,) = said("authentication-failed", {Errors: [often]}, critical_per_minute=30)
    assert (found.severity, found.threshold) == (severity, 30)


@pytest.mark.parametrize(
    ("error", "api", "mechanism", "why"),
    [
        ("SASL_AUTHENTICATION_FAILED", "SaslAuthenticate", "OAUTHBEARER", "does not accept the token."),
        ("SASL_AUTHENTICATION_FAILED", "SaslAuthenticate", "PLAIN", "does not accept the name and password."),
        ("ILLEGAL_SASL_STATE", "SaslHandshake", None, "nobody can log in at this port"),
        ("ILLEGAL_SASL_STATE", "Metadata", None, "sends a request before or during the login."),
    ],
)
def test_why_a_log_in_is_refused(error: str, api: str, mechanism: str | None, why: str) -> None:
    tried = connection(mechanism=mechanism, client="10.0.0.1:5000", client_id="app", principal=None)
    (found,) = said(
        "authentication-failed", {Errors: [refused(error, api=api, principal=None)], Exposure: [tried]}
    )
    assert found.message.startswith("app cannot log in, 3 times")
    assert why in found.message
    assert ("security.protocol to PLAINTEXT" in found.fix) == (api == "SaslHandshake")
    assert ("one without SASL" in found.cause) == (api == "SaslHandshake")


@pytest.mark.parametrize("by_token", [True, False])
def test_a_delegation_token_is_no_password(by_token: bool) -> None:
    tried = {
        "mechanism": "SCRAM-SHA-256",
        "principal": "alice",
        "by_token": by_token,
        "credentials": "hashed",
    }
    rows = {Errors: [refused("SASL_AUTHENTICATION_FAILED")], Exposure: [connection(**tried)]}
    (found,) = said("authentication-failed", rows)
    if by_token:
        assert found.message.startswith("app cannot log in with the delegation token alice, 3 times in 1 s")
        assert found.message.endswith(": the broker does not accept the delegation token.")
        assert "kafka-delegation-tokens.sh" in found.fix
    else:
        assert found.message.startswith("app cannot log in as alice, 3 times in 1 s")
        assert found.message.endswith(": the broker does not accept the name and password.")
    (other,) = said(
        "authentication-failed", {**rows, Errors: [refused("SASL_AUTHENTICATION_FAILED", client_id="b")]}
    )
    assert "delegation" not in other.message
    # Nobody guesses the key of a token.
    assert bool(judged("plaintext-credentials", connection(**tried))) == (not by_token)


def test_the_cluster_lets_write_idempotently_or_not() -> None:
    denied = refused("CLUSTER_AUTHORIZATION_FAILED", api="InitProducerId")
    (found,) = said("authorization-denied", {Errors: [denied]})
    assert found.message == "app (alice) may not write idempotently to the cluster: refused 3 times."
    assert "--operation IdempotentWrite --cluster" in found.fix


@pytest.mark.parametrize(("port", "told"), [(9093, True), (1024, True), (443, False)])
def test_without_kafka_the_ports_of_other_services_are_not_judged(port: int, told: bool) -> None:
    failed = connection(alerts=["client: unknown_ca"], broker=f"10.0.0.2:{port}")
    assert said("tls-handshake-failed", {Exposure: [failed]})
    nothing = JudgingContext(connections=1, dark=1)
    assert bool(said("tls-handshake-failed", {Exposure: [failed]}, context=nothing)) == told


def test_a_permission_that_lacks_is_told_with_the_command() -> None:
    rows = [
        refused("TOPIC_AUTHORIZATION_FAILED", api="Produce", topic="pay"),
        refused("TOPIC_AUTHORIZATION_FAILED", api="Metadata", topic="pay"),
        refused("GROUP_AUTHORIZATION_FAILED", api="JoinGroup", group="hr"),
    ]
    one, two = said("authorization-denied", {Errors: rows})
    topic, group = (one, two) if one.subject.topic else (two, one)
    assert (topic.subject.topic, topic.subject.principal, topic.count) == ("pay", "alice", 6)
    assert topic.message == "app (alice) may not write to and look at the topic pay: refused 6 times."
    assert (
        "--add --allow-principal User:alice --operation Describe --operation Write --topic pay" in topic.fix
    )
    assert (group.subject.group, group.subject.topic) == ("hr", None)


def ended(closed_by: str | None = "broker", **values: Any) -> Facts:
    """A connection whose log-in ended, and who closed it."""
    over = row(Tcp, connection=3, closed_by=closed_by)
    return {Exposure: [connection(**{"login_ends_ns": 85 * SECOND, **values})], Tcp: [over]}


def test_a_connection_that_ends_with_its_log_in() -> None:
    found = said("reauthentication-missed", ended())
    assert [each.confidence for each in found] == [CERTAIN]
    assert found[0].message.startswith("The broker closed 1 connection of app")
    assert not said("reauthentication-missed", ended(login_ends_ns=84 * SECOND))
    assert not said("reauthentication-missed", ended(login_ends_ns=91 * SECOND))
    assert not said("reauthentication-missed", ended(end="open"))
    assert not said("reauthentication-missed", ended(closed_by="client"))
    assert not unjudged("reauthentication-missed", ended(), ended(closed_by="client"))
    assert said("reauthentication-missed", ended(outcome="authenticated"))
    assert not said("reauthentication-missed", ended(outcome="SASL_AUTHENTICATION_FAILED")), "it tried"
    assert said("reauthentication-missed", ended(first_ns=85 * SECOND - 1))
    assert not said("reauthentication-missed", ended(first_ns=85 * SECOND)), "it had expired before"


def test_who_closed_a_connection_must_be_known_to_say_that_the_broker_did() -> None:
    """A broker that resets after a client's FIN that was not captured is not the first to close either."""
    unknown = ended(closed_by=None)
    unknown[Tcp][0]["reset_by"] = "broker"
    for each in (ended(closed_by=None), unknown, {Exposure: unknown[Exposure]}):
        assert not said("reauthentication-missed", each)
        assert len(unjudged("reauthentication-missed", each)) == 1
    assert not unjudged("reauthentication-missed", ended(closed_by=None, login_ends_ns=84 * SECOND))


@pytest.mark.parametrize(("connection", "told"), [(3, False), (4, True)])
def test_a_log_in_may_be_among_the_bytes_that_are_missing(connection: int, told: bool) -> None:
    rows = {**ended(), Connections: [row(Connections, connection=connection, gap_bytes=1)]}
    assert bool(said("reauthentication-missed", rows)) == told
    assert bool(unjudged("reauthentication-missed", rows)) != told


def test_a_connection_of_unknown_end_takes_nothing_from_another() -> None:
    other = {Exposure: [connection(connection=4, login_ends_ns=85 * SECOND)]}
    assert [each.count for each in said("reauthentication-missed", ended(), other)] == [1]
    assert len(unjudged("reauthentication-missed", ended(), other)) == 1


@pytest.mark.parametrize(("begin_s", "told"), [(6_280, True), (6_281, False), (8_000, False)])
def test_a_pause_of_the_capture_excuses_the_log_in_after_it(begin_s: int, told: bool) -> None:
    """One that ended an hour and more before the log-in did has nothing to do with it."""
    late = ended(login_ends_ns=10_000 * SECOND, first_ns=0, last_ns=10_001 * SECOND)
    silences = ((begin_s * SECOND, (begin_s + 120) * SECOND),)
    context = JudgingContext(first_ns=0, last_ns=10_001 * SECOND, silences=silences)
    assert bool(said("reauthentication-missed", late, context=context)) == told


def test_a_provider_of_tokens_that_gives_an_old_one() -> None:
    found = {
        (each.id, each.subject.client_id, each.severity): each
        for each in judged_file(CAPTURES / "incidents" / "token-expired.pcap.gz").findings
        if each.id in ("authentication-failed", "reauthentication-missed")
    }
    assert {(id, client_id) for id, client_id, _ in found} == {("authentication-failed", "shop")}
    failed = found["authentication-failed", "shop", CRITICAL]
    assert failed.message.endswith("the token that it shows has expired. It had logged in as shop before.")
    assert failed.fix.startswith("Check the client's provider of tokens")


def test_a_delegation_token_that_was_ended() -> None:
    judged = judged_file(CAPTURES / "incidents" / "delegation-token-ended.pcap.gz")
    found = [each for each in judged.findings if each.severity != NOTICE]
    assert {(each.id, each.subject.client_id, each.severity) for each in found} == {
        ("authentication-failed", "tok-cons", CRITICAL),
        ("authentication-failed", "tok-late", WARNING),
        ("plaintext-credentials", "adminclient-1", CRITICAL),
    }
    assert sum("does not know the delegation token (any more)" in each.cause for each in found) == 2
    kept = [each for each in found if each.message.endswith("It had logged in with it before.")]
    assert [each.subject.client_id for each in kept] == ["tok-cons"]


def test_no_finding_holds_a_password() -> None:
    found = [
        each for each in judged_file(CAPTURES / "sasl-scram.pcapng").findings if each.category == "security"
    ]
    assert {each.id for each in found} == {"plaintext-credentials"}
    assert all(each.severity == NOTICE for each in found)
