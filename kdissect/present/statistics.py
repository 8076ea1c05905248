"""The columns of the statistics, whose rows :mod:`kdissect.analysis` makes: all of them plain numbers and
texts. How they print for people: :mod:`kdissect.present.statistics_text`."""

from __future__ import annotations

from functools import partial
from typing import Any

from kdissect.present.columns import Column, Table
from kdissect.present.options import Options
from kdissect.present.sanitise import valid_text

Row = dict[str, Any]


def _value(name: str, kind: str, row: Row, _: Options) -> Any:
    value = row[name]
    if value is None:
        return None
    if kind == "text":
        return valid_text(value)
    return [valid_text(each) for each in value] if kind == "texts" else value


def _column(name: str, kind: str, meaning: str) -> Column:
    return Column(name, kind, meaning, partial(_value, name, kind))


def _times(what: str) -> tuple[Column, Column]:
    return (
        _column("first_ns", "int64", f"time of the first {what}, ns since the epoch"),
        _column("last_ns", "int64", f"time of the last {what}, ns since the epoch"),
    )


_TOPIC = _column("topic", "text", "the topic, by name where the capture tells it, else its id")
_PARTITION = _column("partition", "int32", "the partition")


def _errors(what: str) -> tuple[Column, Column, Column]:
    return (
        _column("errors", "int64", f"{what}; none of them routine"),
        _column("fatal", "int64", "of errors, those after which the client gives the request up"),
        _column("routine", "int64", "the same that are ordinary steps, which errors does not count"),
    )


_BYTES = (
    _column("request_bytes", "int64", "bytes of the requests without their sizes"),
    _column("response_bytes", "int64", "bytes of the responses without their sizes"),
)
_TYPES = _column("types", "texts", "classic, consumer (KIP-848), share (KIP-932), streams (KIP-1071)")

_SRT = Table(
    "srt",
    (
        _column("api", "text", "Kafka's newest name of the API"),
        _column("api_version", "int16", "version of the API"),
        _column("broker", "text", "address:port of the broker; null unless asked for (srt,broker)"),
        _column("client", "text", "address of the client; null unless asked for (srt,client)"),
        _column("client_id", "text", "the client's id; null unless asked for (srt,client_id)"),
        _column("topic", "text", "the topic; null unless asked for (srt,topic), or where there is none"),
        _column("count", "int64", "exchanges with request and response; the times are theirs"),
        _column("min_ns", "int64", "the shortest latency_ns; may be negative, as captured"),
        _column("p50_ns", "int64", "half of them took no longer (within 0.4 %)"),
        _column("p90_ns", "int64", "90 % took no longer (within 0.4 %)"),
        _column("p99_ns", "int64", "99 % took no longer (within 0.4 %)"),
        _column("max_ns", "int64", "the longest"),
        _column("mean_ns", "int64", "their mean, rounded down"),
        _column("unanswered", "int64", "requests without a response in the capture, acks=0 among them"),
        _column(
            "may_wait", "int64", "of count, those in which the broker may have waited as it was asked to"
        ),
        _column("waited_out", "int64", "of them, those that show that it waited for all of max_wait"),
        _column(
            "work_count",
            "int64",
            "of count, those of which the time without waits is known: without behind_ns, and none else was "
            "asked for, or it was waited out, and what went beyond max_wait remains",
        ),
        _column("work_p50_ns", "int64", "half of them took no longer without the waits (within 0.4 %)"),
        _column("work_p90_ns", "int64", "90 % took no longer (within 0.4 %)"),
        _column("work_p99_ns", "int64", "99 % took no longer (within 0.4 %)"),
        _column("work_max_ns", "int64", "the longest of them"),
        _column("throttled", "int64", "responses that tell of throttling"),
        _column("throttle_ms", "int64", "the times they tell, together, ms"),
        _column("throttle_max_ms", "int64", "the longest of them, ms"),
        _column(
            "bands",
            "int64s",
            "how many latencies were below 100 µs, 316 µs, 1 ms … 3.16 s (two bands a power of ten), and how "
            "many longer (within 0.4 %)",
        ),
    ),
)

_TOPICS = Table(
    "topics",
    (
        _TOPIC,
        _PARTITION,
        _column(
            "direction", "text", "produce, fetch (by consumers), replicate (by brokers), share or snapshot"
        ),
        _column("exchanges", "int64", "exchanges with records or errors of the partition, empty sets too"),
        _column("batches", "int64", "whole batches of records; in magic 0 and 1, outer messages"),
        _column("records", "int64", "records in them, as their headers announce"),
        _column("bytes", "int64", "bytes of the record sets as sent, compressed or not"),
        _column("records_per_s", "float64", "records a second between the first and the last exchange"),
        _column("bytes_per_s", "float64", "the same of the bytes"),
        _column("batch_bytes_min", "int64", "the smallest batch"),
        _column("batch_bytes_mean", "int64", "the mean batch, rounded down"),
        _column("batch_bytes_max", "int64", "the largest batch"),
        _column("codecs", "texts", "none, gzip, snappy, lz4, zstd: those that occur"),
        _column("control_batches", "int64", "batches of control records, which are not counted above"),
        _column("partial_batches", "int64", "batches that the end of a set cuts; not counted above"),
        _column("uncounted_batches", "int64", "batches that do not tell how many records they hold"),
        *_errors("error codes of the partition in responses"),
        *_times("exchange"),
    ),
)

_POSITIONS = Table(
    "positions",
    (
        _column("connection", "int64", "number of the connection"),
        _column("client", "text", "address:port of the client"),
        _column("broker", "text", "address:port of the broker"),
        _column("client_id", "text", "the name the client gives itself"),
        _column("replica_id", "int32", "id of the broker that follows the partition; -1 for a consumer"),
        _TOPIC,
        _PARTITION,
        _column("position", "int64", "the offset last asked for; null where no request named it"),
        _column("high_watermark", "int64", "as last told by a response"),
        _column("lag", "int64", "high_watermark - position"),
        _column("max_lag", "int64", "the largest when a response told the high watermark"),
        _column("last_stable_offset", "int64", "as last told"),
        _column("log_start_offset", "int64", "as last told"),
        _column("fetched_to", "int64", "the offset after the last whole batch that a response brought"),
        _column("fetches", "int64", "requests that asked for it, by name or by their session"),
        _column("named", "int64", "of them, those that name it"),
        _column("records", "int64", "records that responses brought, as the headers of batches announce"),
        _column("bytes", "int64", "bytes of their record sets"),
        *_errors("error codes of the partition"),
        _column("asked", "bool", "whether it is still asked for at the end"),
        _column("session_id", "int32", "the connection's last fetch session (KIP-227)"),
        _column(
            "from_start",
            "bool",
            "whether all that the connection fetches was seen named; if not, partitions may be missing here",
        ),
        *_times("exchange that names it"),
    ),
)

_MEMBERSHIP = (
    _column("joins", "int64", "JoinGroup requests, or heartbeats with member epoch 0"),
    _column(
        "heartbeats",
        "int64",
        "heartbeats; of the newer groups all requests, with those that join (epoch 0) or leave (-1, -2)",
    ),
    _column("commits", "int64", "OffsetCommit and TxnOffsetCommit requests"),
    _column("committed_partitions", "int64", "partitions in them"),
)

_GROUPS = Table(
    "groups",
    (
        _column("group", "text", "the group id"),
        _TYPES,
        _column("protocols", "texts", "assignors or protocols that were chosen"),
        _column("members", "int64", "members; a static member counts once, however often it came back"),
        _column("first_generation", "int32", "the lowest generation or member epoch that members were given"),
        _column("last_generation", "int32", "the highest"),
        _column(
            "rebalances",
            "int64",
            "generations that a member of a classic group was seen joining, and one more where members still "
            "wait for the next; null for other groups",
        ),
        _column(
            "rebalance_max_ns",
            "int64",
            "the longest: first JoinGroup request to last SyncGroup response; so far, where it is not "
            "finished",
        ),
        _column("rebalance_last_ns", "int64", "the last; so far, where it is not finished"),
        _column(
            "rebalance_last_completed",
            "bool",
            "whether the last was finished in the capture; null where that is not known",
        ),
        _column(
            "not_finished",
            "int64",
            "rebalances that were not: they go on, or the next began before; null for other groups",
        ),
        *_MEMBERSHIP,
        _column("leaves", "int64", "members that left, or were removed"),
        *_errors("error codes in responses to members"),
        *_times("exchange"),
    ),
)

_MEMBERS = Table(
    "members",
    (
        _column("group", "text", "the group id"),
        _column("member_id", "text", "the member id; empty for clients that are not members"),
        _column("instance_id", "text", "group.instance.id of a static member"),
        _TYPES,
        _column("client_id", "text", "the name the client gives itself"),
        _column("client", "text", "address:port of the client"),
        _column("first_generation", "int32", "the lowest generation or member epoch it was given"),
        _column("last_generation", "int32", "the highest"),
        *_MEMBERSHIP,
        *_errors("error codes in responses"),
        _column("left", "text", "LeaveGroup, or member epoch -1 or -2; null where it did not leave"),
        _column("leave_reason", "text", "the reason that the request gives"),
        _column("left_ns", "int64", "when, ns since the epoch"),
        *_times("request of its own, else about it"),
    ),
)

_REBALANCES = Table(
    "rebalances",
    (
        _column("group", "text", "the group id"),
        _column(
            "generation", "int32", "the generation, or the member epoch; null where it still waits for one"
        ),
        _column("member_id", "text", "the member; a static one that has no id yet, by its instance id"),
        _TYPES,
        _column("protocol", "text", "the assignor or protocol that was chosen"),
        _column("leader", "bool", "whether it is the leader that assigns"),
        _column("join_ns", "int64", "time of its first JoinGroup request for it, ns since the epoch"),
        _column("sync_ns", "int64", "time of its first SyncGroup response, ns since the epoch"),
        _column("duration_ns", "int64", "sync_ns - join_ns; so far, where it is not finished"),
        _column(
            "completed",
            "bool",
            "whether it was given its assignment; null where it was not seen joining, or that is not known",
        ),
        _column("reason", "text", "why it joins, as its request says (KIP-800)"),
        _column(
            "assigned", "int32", "partitions (or active tasks) it was given; null where that is not told"
        ),
        _column("heartbeats", "int64", "its heartbeats in it that were answered without an error"),
        *_times("response"),
    ),
)

_CONNECTIONS = Table(
    "connections",
    (
        _column("connection", "int64", "0, 1, … by the first packet (Wireshark's tcp.stream)"),
        _column("client", "text", "address:port of the client"),
        _column("broker", "text", "address:port of the broker"),
        _column("client_id", "text", "the name the client gives itself"),
        _column("software", "text", "name and version of the client, from ApiVersions"),
        _column("protocol", "text", "kafka, tls, http or unknown"),
        _column("tls", "text", "version of TLS, and why it is not decrypted; null without TLS"),
        _column("end", "text", "fin, rst, open, reused or evicted"),
        _column("requests", "int64", "requests"),
        _column("responses", "int64", "responses"),
        *_BYTES,
        *_errors("responses with an error code"),
        _column("p50_ns", "int64", "half of the latencies are no longer (within 0.4 %)"),
        _column("p99_ns", "int64", "99 % are no longer (within 0.4 %)"),
        _column("max_ns", "int64", "the longest latency"),
        _column("in_flight_mean", "float64", "requests in flight when one is sent, itself included: mean"),
        _column("in_flight_max", "int32", "the most"),
        _column("packets", "int64", "packets of both directions"),
        _column("retransmitted", "int64", "bytes sent again"),
        _column("gap_bytes", "int64", "bytes that were not captured"),
        _column("skipped_bytes", "int64", "captured bytes that are in no frame"),
        *_times("packet"),
    ),
)

_CLIENTS = Table(
    "clients",
    (
        _column("client", "text", "address of the client"),
        _column("client_id", "text", "the name the client gives itself"),
        _column("software", "text", "the name of its software, from ApiVersions (KIP-511)"),
        _column("software_version", "text", "and the version of it"),
        _column("connections", "int64", "connections on which it spoke"),
        _column("exchanges", "int64", "requests"),
        *_BYTES,
        _column("apis", "texts", "the APIs it speaks, each with the version"),
        *_times("message"),
    ),
)

_VERSIONS = Table(
    "versions",
    (
        _column("client_id", "text", "the name the client gives itself"),
        _column("client", "text", "address of the client"),
        _column("software", "text", "the name of its software, from ApiVersions (KIP-511)"),
        _column("software_version", "text", "and the version of it"),
        _column("broker", "text", "address:port of the broker"),
        _column("api", "text", "the API that it speaks; what brokers ask each other is left out"),
        _column("api_version", "int16", "in this version"),
        _column(
            "offered_min",
            "int16",
            "the lowest that the broker offers, by ApiVersions on the connection, else on others to that "
            "broker; null where that is not known",
        ),
        _column("offered_max", "int16", "the highest"),
        _column(
            "limited_by",
            "text",
            "client (it could go higher with this broker), broker (it is the highest that this offers), or "
            "unknown (no ApiVersions response of the broker was captured)",
        ),
        _column("removed_in", "text", "the Kafka release that removed this version; null where none did"),
        _column("reads", "bool", "whether kdissect reads this version"),
        _column("count", "int64", "requests"),
        _column(
            "verdict",
            "text",
            "whether brokers from removed_in on understand it: ok; breaks (the client has to be upgraded or "
            "set otherwise); upgrade-broker-first (only a newer broker shows what the client can); unknown",
        ),
    ),
)

_ERRORS = Table(
    "errors",
    (
        _column("error", "text", "the error's name"),
        _column("error_code", "int16", "and number"),
        _column(
            "error_class",
            "text",
            "fatal (the client gives the request up), retriable (it goes on by itself), routine (an ordinary "
            "step, within its bound)",
        ),
        _column("api", "text", "the API whose responses have it"),
        _column("broker", "text", "address:port of the broker"),
        _column("client", "text", "address of the client"),
        _column("client_id", "text", "the name the client gives itself"),
        _column("principal", "text", "who logged in on the connection, as the login says it"),
        _column("group", "text", "the group that it is about, as response or request name it"),
        _column("transactional_id", "text", "the transactional id that it is about"),
        _TOPIC,
        _PARTITION,
        _column("count", "int64", "how often; one response may have it many times"),
        _column("first_exchange", "int64", "number of the exchange in which it came first"),
        _column("first_ns", "int64", "when, ns since the epoch"),
        _column("last_exchange", "int64", "number of the exchange in which it came last"),
        _column("last_ns", "int64", "when, ns since the epoch"),
    ),
)

_IO = Table(
    "io",
    (
        _column("start_ns", "int64", "beginning of the interval, ns since the epoch"),
        _column("interval_ns", "int64", "its length"),
        _column("requests", "int64", "requests that were complete in it"),
        _column("responses", "int64", "responses that were complete in it"),
        *_BYTES,
        _column("records_produced", "int64", "records in the requests"),
        _column("records_fetched", "int64", "records in the responses"),
        *_errors("error codes in the responses"),
    ),
)

STATISTICS = {
    table.name: table
    for table in (
        _SRT,
        _TOPICS,
        _POSITIONS,
        _GROUPS,
        _MEMBERS,
        _REBALANCES,
        _CONNECTIONS,
        _CLIENTS,
        _VERSIONS,
        _ERRORS,
        _IO,
    )
}
"""The tables of ``stats`` by the name that ``-z`` gives them."""
