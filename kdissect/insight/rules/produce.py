"""Producing: what brokers refuse, what was lost, written twice or out of order, and how little was asked "
"for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterPartitions, ClusterTopics
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.pace import Pace
from kdissect.analysis.producers import Producers
from kdissect.analysis.tcp import Tcp
from kdissect.insight.broker_stops import BrokerStop, gone_brokers, subject_of
from kdissect.insight.causes import explains, may_explain
from kdissect.insight.clocks import AHEAD_MS, behind_ms
from kdissect.insight.context import SLEPT
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
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import having, named, of_numbers, showing, span
from kdissect.wording import plural

explains("under-min-isr", "produce-retries-exhausted", "duplicate-appended", shares=("topic",), within_s=60)
may_explain("broker-gone", "under-min-isr", within_s=60)
explains("under-min-isr", "lso-lag", shares=("topic",), at_once=True)
explains("message-too-large", "produce-refused", shares=("client_id", "topic"))
explains("request-abandoned", "duplicate-absorbed", "duplicate-appended", shares=("client_id",), within_s=60)


def group_by(rows: Iterable[Row], *names: str) -> dict[FindingSubject, list[Row]]:
    """Rows grouped by the subject that these columns give."""
    return {
        FindingSubject(**dict(zip(names, values, strict=True))): found
        for values, found in group_rows(rows, *names).items()
    }


def _place(row: Row) -> str:
    return f"{row['topic']}-{row['partition']}" if row["partition"] is not None else str(row["topic"])


def _client(subject: FindingSubject) -> str:
    return subject.client_id or "A producer"


def _errors(rows: list[Row]) -> dict[str, object]:
    """The fields that findings on errors share."""
    count = sum(row["count"] for row in rows)
    return {
        "count": count,
        "measure": count,
        "first_ns": min(row["first_ns"] for row in rows),
        "last_ns": max(row["last_ns"] for row in rows),
        "exchanges": sorted({row[end] for row in rows for end in ("first_exchange", "last_exchange")}),
    }


def common_fields(rows: list[Row]) -> dict[str, object]:
    """The fields that findings on producers share."""
    return {
        "first_ns": min(row["first_ns"] for row in rows),
        "last_ns": max(row["last_ns"] for row in rows),
        "exchanges": [number for row in rows for number in row["exchanges"]],
    }


_FINAL = {
    "RECORD_LIST_TOO_LARGE": "the request is larger than a segment of the log may be (RECORD_LIST_TOO_LARGE)",
    "INVALID_RECORD": "the topic does not accept such records; a compacted topic, for example, needs keys "
    "(INVALID_RECORD)",
    "INVALID_TIMESTAMP": "the records' times are further from the broker's clock than the topic allows "
    "(INVALID_TIMESTAMP)",
    "INVALID_REQUIRED_ACKS": "acks has a value that the broker does not know (INVALID_REQUIRED_ACKS)",
    "UNSUPPORTED_COMPRESSION_TYPE": "the broker or the version of the request does not know the compression "
    "(UNSUPPORTED_COMPRESSION_TYPE)",
    "POLICY_VIOLATION": "a policy of the broker forbids it (POLICY_VIOLATION)",
    "INVALID_TOPIC_EXCEPTION": "the topic may not be written to: its name is not valid, or it is Kafka's own "
    "(INVALID_TOPIC_EXCEPTION)",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": "the topic's message format is too old for it "
    "(UNSUPPORTED_FOR_MESSAGE_FORMAT)",
    "CORRUPT_MESSAGE": "the checksum of the records is wrong (CORRUPT_MESSAGE)",
}
_FIXES = {
    "INVALID_TIMESTAMP": "Set the clock of the producer's host (NTP), or the time that the application "
    "gives to its "
    "records: Kafka wants milliseconds since 1970. If old or future times are meant, raise the topic's "
    "message.timestamp.before.max.ms or message.timestamp.after.max.ms, or set "
    "message.timestamp.type=LogAppendTime.",
    "INVALID_RECORD": "If the topic is compacted (cleanup.policy=compact), give each record a key. "
    "Otherwise look at "
    "the message that the client logs: it names the records and why.",
    "RECORD_LIST_TOO_LARGE": "Lower batch.size and max.request.size of the producer, or raise "
    "segment.bytes of the "
    "topic.",
    "UNSUPPORTED_COMPRESSION_TYPE": "Set compression.type of the producer to one that the broker knows "
    "(zstd from "
    "2.1 on), or update the client library.",
    "INVALID_REQUIRED_ACKS": "Set acks to 0, 1 or all.",
}


_OF_OTHER_CLOCK = {
    "cause": "By the clock of the capture, the records are dated when they were sent. So the clock of the "
    "broker is probably wrong. Or the packets were captured on the producer's host, and that clock is wrong.",
    "fix": "Compare the clocks of the broker, of the producer's host and of the capturing machine, and set "
    "the wrong one by NTP. If all are right, the topic allows too little: raise its "
    "message.timestamp.before.max.ms or message.timestamp.after.max.ms.",
}
"""Words for records that are refused for their times although they are dated when they were sent."""


@rule("produce-refused", WARNING, CERTAIN, needs=(Errors, Producers))
def produce_refused(facts: Facts) -> Iterator[Finding]:
    """Records that the broker will never take."""
    refused = [row for row in facts.rows(Errors) if row["api"] == "Produce" and row["error"] in _FINAL]
    skews = group_by(facts.rows(Producers), "client", "client_id", "topic") if refused else {}
    for (subject, code), rows in _by_code(refused, "client", "client_id", "topic").items():
        more, why = "", {"fix": _FIXES.get(code, facts.written.do)}
        if code == "INVALID_TIMESTAMP":
            off = [
                row[name]
                for row in skews.get(subject, ())
                for name in ("skew_min_ms", "skew_max_ms")
                if row[name] is not None
            ]
            furthest = max(off, key=abs, default=0)
            side = "behind" if furthest < 0 else "ahead of"
            more = (
                f" Its records are dated up to {span(abs(furthest) * 1e6)} {side} the packets." if off else ""
            )
            if off and abs(furthest) <= AHEAD_MS:
                why = _OF_OTHER_CLOCK
        yield facts.finding(
            subject,
            f"The broker refused records of {subject.client_id or 'a producer'} for {subject.topic} "
            f"{plural(sum(row['count'] for row in rows), 'time')}, and sending them again does not help: "
            f"{_FINAL[code]}.{more}",
            filter=having(client_id=subject.client_id, topic=subject.topic, error=code),
            **why,
            **_errors(rows),
        )


def _by_code(rows: Iterable[Row], *names: str) -> dict[tuple[FindingSubject, str], list[Row]]:
    found: dict[tuple[FindingSubject, str], list[Row]] = {}
    for subject, some in group_by(rows, *names).items():
        for row in some:
            found.setdefault((subject, row["error"]), []).append(row)
    return found


@rule("message-too-large", WARNING, CERTAIN, needs=(Errors, Producers))
def message_too_large(facts: Facts) -> Iterator[Finding]:
    """A batch is larger than the topic allows."""
    refused = [
        row for row in facts.rows(Errors) if row["error"] == "MESSAGE_TOO_LARGE" and row["api"] == "Produce"
    ]
    written = group_by(facts.rows(Producers), "client", "client_id", "topic") if refused else {}
    for subject, rows in group_by(refused, "client", "client_id", "topic").items():
        largest = max((row["batch_bytes_max"] or 0 for row in written.get(subject, ())), default=0)
        size = f" The largest batch of this producer for this topic has {largest:,} bytes." if largest else ""
        told = _errors(rows) | {"measure": largest or None, "unit": "bytes"}
        yield facts.finding(
            subject,
            f"The broker refused {plural(sum(row['count'] for row in rows), 'batch', 'batches')} of "
            f"{subject.client_id or 'a producer'} for {subject.topic}: larger than the topic allows "
            f"(max.message.bytes).{size}",
            filter=having(client_id=subject.client_id, error="MESSAGE_TOO_LARGE"),
            **told,
        )


@rule(
    "under-min-isr",
    CRITICAL,
    CERTAIN,
    needs=(Errors, ClusterTopics, ClusterPartitions, ClusterBrokers, ClusterChanges, Tcp),
)
def under_min_isr(facts: Facts) -> Iterator[Finding]:
    """Writes fail because too few replicas are in sync. If a topic has a single replica, that one is in sync,
    because it is the one that refuses. Then more replicas are required than there are."""
    copies: dict[str, set[int | None]] = {}
    for row in facts.rows(ClusterTopics):
        copies.setdefault(row["topic"], set()).add(row["replication"])
    stops = gone_brokers(facts)
    codes = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
    failed = [row for row in facts.rows(Errors) if row["error"] in codes and row["topic"] is not None]
    for subject, rows in group_by(failed, "topic").items():
        clients = named(sorted({row["client_id"] or "a client" for row in rows}))
        parts = sorted({row["partition"] for row in rows if row["partition"] is not None})
        lasted = max(row["last_ns"] for row in rows) - min(row["first_ns"] for row in rows)
        told = _errors(rows)
        is_single = copies.get(subject.topic or "") == {1}
        yield facts.finding(
            subject,
            f"Writes of {clients} to {subject.topic} failed {plural(int(str(told['count'])), 'time')}"
            f"{f' over {span(lasted)}' if lasted else ''}: "
            + (
                "the topic has a single replica, and min.insync.replicas asks for more."
                if is_single
                else f"fewer replicas of {plural(len(parts), 'partition')} are in sync than "
                "min.insync.replicas asks for."
            ),
            cost_ns=lasted,
            because=None if is_single else _lacks(facts, stops, subject.topic, parts),
            filter=having(topic=subject.topic, error=rows[0]["error"]),
            **told,
            **(_SINGLE if is_single else {}),
        )


def _lacks(facts: Facts, stops: list[BrokerStop], topic: str | None, partitions: list[int]) -> str | None:
    """The key of the finding that a broker is gone that has a replica of one of these partitions."""
    nodes = {
        (node, row["cluster_id"])
        for row in facts.rows(ClusterPartitions)
        if row["topic"] == topic and row["partition"] in partitions
        for node in (row["replicas"] or "").split(",")
    }
    for each in stops:
        if each.node is not None and any((str(each.node.number), one) in nodes for one in each.node.clusters):
            return key_of("broker-gone", subject_of(each))
    return None


_SINGLE = {
    "cause": "The topic was made with one replica, by hand or at first use (default.replication.factor). "
    "With acks=all every write needs min.insync.replicas replicas, so none can succeed.",
    "fix": "Give the topic more replicas (kafka-reassign-partitions.sh), or set min.insync.replicas of the "
    "topic to 1. One replica means that its records are lost with its broker.",
    "configs": ("min.insync.replicas", "default.replication.factor"),
}


@rule("produce-retries-exhausted", CRITICAL, LIKELY, needs=(Producers,), tried_s=30)
def produce_retries_exhausted(facts: Facts) -> Iterator[Finding]:
    """A producer tried for a long time and gave up. Any pause of the capture may lie between its tries."""
    least_ns = facts.limit("tried_s") * SECOND
    for row in facts.rows(Producers):
        if not row["given_up"] or row["tried_ns"] < least_ns:
            continue
        first_ns, last_ns = row["first_ns"], row["last_ns"]
        slept_ns = last_ns - first_ns - facts.context.awake_ns(first_ns, last_ns)
        tried_ns = row["tried_ns"] - slept_ns
        if tried_ns < least_ns:
            facts.cannot_judge(SLEPT)
            continue
        yield facts.finding(
            _subject(row),
            f"{_client(_subject(row))} tried {plural(row['given_up'], 'batch', 'batches')} for {_place(row)} "
            f"again and again for {'at least' if slept_ns else 'up to'} {span(tried_ns)}, and the broker "
            "never confirmed the write: the records are probably lost.",
            count=row["given_up"],
            measure=tried_ns / SECOND,
            unit="s",
            threshold=facts.limit("tried_s"),
            cost_ns=tried_ns,
            filter=of_numbers(row["exchanges"]),
            **common_fields([row]),
        )


def _subject(row: Row) -> FindingSubject:
    return FindingSubject(
        client=row["client"], client_id=row["client_id"], topic=row["topic"], partition=row["partition"]
    )


@rule("acks-none", NOTICE, CERTAIN, needs=(Producers,), records=100)
def acks_none(facts: Facts) -> Iterator[Finding]:
    """Nobody confirms what is written."""
    for subject, rows in group_by(
        (row for row in facts.rows(Producers) if "0" in row["acks"]), "client", "client_id", "topic"
    ).items():
        records = sum(row["records"] for row in rows)
        if records < facts.limit("records"):
            continue
        yield facts.finding(
            subject,
            f"{_client(subject)} wrote {plural(records, 'record')} to {subject.topic} with acks=0: brokers "
            "never answer such requests, so records can be lost without a trace.",
            count=records,
            measure=records,
            unit="records",
            threshold=facts.limit("records"),
            filter=having(client_id=subject.client_id, api="Produce"),
            **common_fields(rows),
        )


@rule("acks-leader-only", INFO, CERTAIN, needs=(Producers, ClusterTopics), records=100)
def acks_leader_only(facts: Facts) -> Iterator[Finding]:
    """Only the leader confirms what is written."""
    replicated = {
        row["topic"]: row["replication"]
        for row in facts.rows(ClusterTopics)
        if (row["replication"] or 0) >= 2
    }
    only_leader = (
        row for row in facts.rows(Producers) if row["acks"] == ["1"] and row["topic"] in replicated
    )
    for subject, rows in group_by(only_leader, "client", "client_id", "topic").items():
        records = sum(row["records"] for row in rows)
        if records < facts.limit("records"):
            continue
        yield facts.finding(
            subject,
            f"{_client(subject)} wrote {plural(records, 'record')} to {subject.topic} with acks=1. Only the "
            f"leader of its {replicated[subject.topic]} replicas confirms them, and records that the "
            "others have not copied are lost with it.",
            count=records,
            measure=records,
            unit="records",
            threshold=facts.limit("records"),
            filter=having(client_id=subject.client_id, api="Produce"),
            **common_fields(rows),
        )


@rule("duplicate-appended", WARNING, LIKELY, needs=(Producers,))
def duplicate_appended(facts: Facts) -> Iterator[Finding]:
    """Records are in the log twice."""
    for row in facts.rows(Producers):
        if row["resent_appended"]:
            # The text does not give the number of retransmitted batches. Not all of them are written twice,
            # and a capture of both sides of a proxy has each of them twice.
            them = "it" if row["resent_appended"] == 1 else "them"
            yield facts.finding(
                _subject(row),
                f"{plural(row['resent_appended'], 'record')} of {row['client_id'] or 'a producer'} "
                f"{'stands' if row['resent_appended'] == 1 else 'stand'} twice in {_place(row)}. The "
                f"client sent {them} again after an answer did not come, and the broker had written {them} "
                "already.",
                count=row["resent_appended"],
                measure=row["resent_appended"],
                unit="records",
                filter=of_numbers(row["exchanges"]),
                **common_fields([row]),
            )


@rule("duplicate-absorbed", INFO, CERTAIN, needs=(Producers,))
def duplicate_absorbed(facts: Facts) -> Iterator[Finding]:
    """The broker recognised a batch that was sent again."""
    for row in facts.rows(Producers):
        if row["absorbed"]:
            yield facts.finding(
                _subject(row),
                f"{row['client_id'] or 'A producer'} sent {plural(row['absorbed'], 'batch', 'batches')} for "
                f"{_place(row)} again after an answer did not come; the broker knew them by their sequence "
                "numbers "
                "and wrote nothing twice.",
                count=row["absorbed"],
                measure=row["absorbed"],
                unit="batches",
                filter=of_numbers(row["exchanges"]),
                **common_fields([row]),
            )


@rule("sequence-gap", CRITICAL, CERTAIN, needs=(Producers, Errors))
def sequence_gap(facts: Facts) -> Iterator[Finding]:
    """Batches are missing between those of an idempotent producer."""
    refused = group_by(
        (row for row in facts.rows(Errors) if row["error"] == "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        *("client", "client_id", "topic", "partition"),
    )
    for row in facts.rows(Producers):
        if not row["gaps"] or _subject(row) not in refused:
            continue
        yield facts.finding(
            _subject(row),
            f"Between the batches of {row['client_id'] or 'a producer'} for {_place(row)} "
            f"{plural(row['lost_sequences'], 'record')} {'is' if row['lost_sequences'] == 1 else 'are'} "
            "missing: the broker refuses what comes after them (OUT_OF_ORDER_SEQUENCE_NUMBER).",
            count=row["gaps"],
            measure=row["lost_sequences"],
            unit="records",
            filter=having(client_id=row["client_id"], error="OUT_OF_ORDER_SEQUENCE_NUMBER"),
            **common_fields([row]),
        )


@rule("producer-id-forgotten", WARNING, CERTAIN, needs=(Errors,))
def producer_id_forgotten(facts: Facts) -> Iterator[Finding]:
    """The broker no longer knows a producer, or a coordinator its transactional id."""
    forgotten = [row for row in facts.rows(Errors) if row["error"] == "UNKNOWN_PRODUCER_ID"]
    for subject, rows in group_by(forgotten, "client", "client_id", "topic").items():
        yield facts.finding(
            subject,
            f"The broker has forgotten the producer {subject.client_id or ''} of {subject.topic}: all that "
            "it wrote "
            "there is gone (retention, or deleted), or it was silent for too long.".replace("  ", " "),
            filter=having(client_id=subject.client_id, error="UNKNOWN_PRODUCER_ID"),
            **_errors(rows),
        )
    expired = [
        row
        for row in facts.rows(Errors)
        if row["error"] == "INVALID_PRODUCER_ID_MAPPING"
        and row["transactional_id"]
        and not (row["client_id"] or "").startswith(_BROKERS)
    ]
    for subject, rows in group_by(expired, "client", "client_id", "transactional_id").items():
        yield facts.finding(
            subject,
            f"The coordinator does not know the transactional id {subject.transactional_id} with the "
            f"producer id of {_client(subject)}. Most often it has forgotten it.",
            confidence=LIKELY,
            filter=having(client_id=subject.client_id, error="INVALID_PRODUCER_ID_MAPPING"),
            **_errors(rows),
            **_EXPIRED,
        )


_BROKERS = "AddPartitionsManager-client-"
"""The client id with which brokers ask the coordinator on behalf of their clients
(AddPartitionsToTxnManager)."""
_EXPIRED = {
    "cause": "The coordinator drops a transactional id that no transaction has used for "
    "transactional.id.expiration.ms (7 days by default). The producer that has it then gets "
    "INVALID_PRODUCER_ID_MAPPING, and its transaction fails.",
    "fix": "Let the program close such a producer and make a new one (initTransactions). For producers that "
    "are silent for longer, raise transactional.id.expiration.ms on the brokers, or begin and commit a "
    "transaction from time to time.",
}


@rule("reordered-by-retry", WARNING, LIKELY, needs=(Producers,))
def reordered_by_retry(facts: Facts) -> Iterator[Finding]:
    """Retries changed the order of records."""
    for row in facts.rows(Producers):
        if row["overtaken"] and row["producer_id"] is None:
            yield facts.finding(
                _subject(row),
                f"{plural(row['overtaken'], 'batch', 'batches')} of {row['client_id'] or 'a producer'} for "
                f"{_place(row)} {'was' if row['overtaken'] == 1 else 'were'} refused at first and written "
                "after later ones. The records are not in the order in which they were sent.",
                count=row["overtaken"],
                measure=row["overtaken"],
                unit="batches",
                filter=of_numbers(row["exchanges"]),
                **common_fields([row]),
            )


@rule("producer-id-churn", NOTICE, CERTAIN, needs=(Producers,), per_minute=10)
def producer_id_churn(facts: Facts) -> Iterator[Finding]:
    """Producers are created all the time."""
    made = (
        row for row in facts.rows(Producers) if row["producer_id"] is not None and not row["transactional"]
    )
    for subject, rows in group_by(made, "client", "client_id").items():
        first: dict[int, int] = {}
        for row in rows:
            first[row["producer_id"]] = min(row["first_ns"], first.get(row["producer_id"], row["first_ns"]))
        lasted_ns = max(first.values()) - min(first.values())
        if (
            len(first) < facts.limit("per_minute")
            or lasted_ns * facts.limit("per_minute") > len(first) * 60 * SECOND
        ):
            continue
        yield facts.finding(
            subject,
            f"{_client(subject)} made {plural(len(first), 'producer')} in {span(lasted_ns)}: each asks the "
            "broker for a new producer id, which the broker remembers for a day.",
            count=len(first),
            measure=len(first) * 60 * SECOND / max(lasted_ns, SECOND),
            unit="producers/min",
            threshold=facts.limit("per_minute"),
            filter=showing(
                (number for row in rows for number in row["exchanges"]),
                having(client_id=subject.client_id, api="InitProducerId"),
            ),
            **common_fields(rows),
        )


@rule("time-in-future", WARNING, CERTAIN, needs=(Producers, Pace), batches=10)
def time_in_future(facts: Facts) -> Iterator[Finding]:
    """Records are dated after they were sent."""
    told = [row["backwards_max_ns"] for row in facts.rows(Pace)]
    told += [row["set_back_ns"] for row in facts.rows(Producers)]
    backwards_ns = max((ns for ns in told if ns is not None), default=0)
    behind = behind_ms(facts.rows(Producers))
    if behind is not None:
        facts.cannot_judge(f"the clock of the capture is {span(behind * MILLISECOND)} behind all producers")
        return

    def is_taken(row: Row) -> bool:  # if the broker refuses a record for its time, the error says so
        return row["ahead"] > 0 and "INVALID_TIMESTAMP" not in row["error_codes"]

    for subject, rows in group_by(
        (row for row in facts.rows(Producers) if is_taken(row)), "client", "client_id", "topic"
    ).items():
        batches = sum(row["ahead"] for row in rows)
        if batches < facts.limit("batches"):
            continue
        if facts.context.set_back:
            facts.cannot_judge(SLEPT)
            continue
        most_ms = max(row["skew_max_ms"] for row in rows)
        if most_ms * MILLISECOND <= 2 * backwards_ns:
            facts.cannot_judge(
                f"requests are up to {span(backwards_ns)} out of order, as if the clock had been set back"
            )
            continue
        sent_ms = rows[0]["first_ns"] / 1e6
        unit = (
            " That happens if an application gives microseconds or nanoseconds instead of milliseconds."
            if most_ms > 100 * sent_ms
            else ""
        )
        ahead = f"{most_ms / 86_400_000:,.0f} days" if most_ms > 3 * 86_400_000 else span(most_ms * 1e6)
        yield facts.finding(
            subject,
            f"Records of {subject.client_id or 'a producer'} in {subject.topic} are dated up to {ahead} "
            "after they "
            f"were sent ({plural(batches, 'batch', 'batches')}).{unit}",
            count=batches,
            measure=most_ms / 1000,
            unit="s",
            threshold=5,
            filter=having(client_id=subject.client_id, api="Produce"),
            **common_fields(rows),
        )
