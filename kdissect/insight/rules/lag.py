"""Lag: groups that cannot keep up, and consumers that stand still."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.groups import Members
from kdissect.analysis.lag import Lag
from kdissect.analysis.medians import median
from kdissect.analysis.pace import Pace
from kdissect.analysis.positions import Positions
from kdissect.analysis.progress import Stall
from kdissect.analysis.speakers import address
from kdissect.insight.causes import explains, may_explain
from kdissect.insight.finding import CRITICAL, LIKELY, WARNING, Finding, FindingSubject, key_of
from kdissect.insight.gaps import is_often_one_sided, may_lack_after, not_known
from kdissect.insight.grouping import group_rows
from kdissect.insight.repeated import once_per_subject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import named, of_connections, quoted, span
from kdissect.wording import plural

FEW_COMMITS = 2
"""Commits that a rule needs to know whether a group makes progress."""

explains("stuck-offset", "consumer-falling-behind", "partition-lags", shares=("group", "topic"))
explains("consumer-stalled", "consumer-falling-behind", "partition-lags", shares=("group", "topic"))
explains(
    "consumer-stopped",
    *("consumer-falling-behind", "partition-lags"),
    shares=("group", "topic", "client_id"),
)
explains("hot-partition", "partition-lags", shares=("topic",))
explains("stuck-offset", "records-read-twice", shares=("group", "topic"))
explains("stuck-offset", "member-id-churn", shares=("group", "client_id"), at_once=True)
may_explain("throttled", "consumer-falling-behind", within_s=60)
may_explain("partition-lags", "consumer-falling-behind", within_s=60)


def consumers(facts: Facts) -> list[Row]:
    """Rows of clients that fetch to read, without followers."""
    return [row for row in facts.rows(Positions) if row["replica_id"] < 0 and row["topic"] is not None]


@rule(
    "consumer-falling-behind",
    CRITICAL,
    LIKELY,
    needs=(Lag, Positions, Pace, Members, Connections),
    points=16,
    records=1_000,
    few_records=300,
    behind_s=10,
    growth=2,
    rising=0.75,
    commits=5,
    quiet_s=30,
    gone_s=5,
)
def consumer_falling_behind(facts: Facts) -> Iterator[Finding]:
    """The group cannot keep up with what is written."""
    judged = False
    for (group, topic), rows in group_rows(facts.rows(Lag), "group", "topic").items():
        known = [row for row in rows if row["lag"] is not None and row["points"] >= facts.limit("points")]
        judged = judged or bool(known)
        lag, first = sum(row["lag"] for row in known), sum(row["lag_first"] for row in known)
        slope = sum(row["lag_per_s"] or 0.0 for row in known)
        written = sum(row["written_per_s"] or 0.0 for row in known)
        committed = sum(row["committed_per_s"] or 0.0 for row in known)
        if lag < facts.limit("growth") * first or slope <= 0.1 * written or written <= 0:
            continue
        if not _keeps_falling(facts, known):  # a group that stood still for a while has other findings
            continue
        if _is_gone(facts, group, rows, facts.limit("gone_s")):
            continue  # no member is there that could read
        behind_s = lag / written
        few = lag >= facts.limit("few_records") and behind_s >= facts.limit("behind_s")
        if lag < facts.limit("records") and not few:
            continue
        first_ns, last_ns = min(row["first_ns"] for row in known), max(row["last_ns"] for row in known)
        yield facts.finding(
            FindingSubject(group=group, topic=topic),
            f"{_per_s(written)} are written, and {_per_s(committed)} are read and committed. The group was "
            f"{first:,} records behind at first and {lag:,} at the end, which is what is written in "
            f"{behind_s:.0f} s.",
            count=len(known),
            measure=lag,
            unit="records",
            threshold=facts.limit("records"),
            first_ns=first_ns,
            last_ns=last_ns,
            because=_throttle(facts, group, topic, first_ns, last_ns) or _partition(facts, rows),
            client_ids=sorted({each for row in rows for each in row["committers"]}),
            exchanges=sorted({number for row in known for number in row["exchanges"]}),
            filter=f"group == {quoted(group)} and api == OffsetCommit",
        )
    if not judged and facts.rows(Lag):
        facts.cannot_judge("needs 15 s of commits and writes")


def _throttle(facts: Facts, group: str, topic: str, first_ns: int, last_ns: int) -> str | None:
    """The key of the finding that a quota slows a reader of the group, if it did so for a quarter of this
    time. It counts one process at one broker, because several are slowed at the same time."""
    readers = {row["client_id"] for row in consumers(facts) if (row["group"], row["topic"]) == (group, topic)}
    held = {
        row["client_id"]: _held_ns(row, first_ns, last_ns)
        for row in sorted(facts.rows(Pace), key=lambda row: _held_ns(row, first_ns, last_ns))
        if row["api"] == "Fetch" and row["client_id"] in readers and row["client_id"]
    }
    if not held or 4 * max(held.values()) < last_ns - first_ns:
        return None
    client_id = max(sorted(held), key=held.__getitem__)
    return key_of("throttled", FindingSubject(client_id=client_id))


def _partition(facts: Facts, rows: list[Row]) -> str | None:
    """The key of the finding that one partition lags, if that partition makes no progress or gets most
    records, and the others are not behind."""
    limits = {name: facts.limit_of("partition-lags", name) for name in ("records", "times", "partitions")}
    lagging = _far_behind(rows, limits)
    known = sum(row["lag"] for row in rows if row["lag"] is not None)
    written = sum(row["written_per_s"] or 0.0 for row in rows)
    for row, _ in lagging:
        is_stuck = not row["committed_per_s"]
        is_hot = (row["written_per_s"] or 0.0) * 2 > written
        if (is_stuck or is_hot) and known - row["lag"] < min(
            facts.limit("few_records"), row["lag"] / limits["times"]
        ):
            subject = FindingSubject(group=row["group"], topic=row["topic"], partition=row["partition"])
            return key_of("partition-lags", subject)
    return None


def _far_behind(rows: list[Row], limits: dict[str, float]) -> list[tuple[Row, float]]:
    """Partitions of a group and topic that are far behind the others, with the median lag of the others."""
    known = [row for row in rows if row["lag"] is not None]
    if len(known) < max(2, limits["partitions"]):
        return []
    found = [(row, median(each["lag"] for each in known if each is not row)) for row in known]
    return [
        (row, usual)
        for row, usual in found
        if row["lag"] >= limits["records"] and row["lag"] >= limits["times"] * usual
    ]


def _held_ns(row: Row, first_ns: int, last_ns: int) -> float:
    """How much of this time a quota took, if its delays are spread evenly between the first and the last."""
    if not row["throttled_count"]:
        return 0
    begin, end = row["throttled_first_ns"], row["throttled_last_ns"]
    if end <= begin:
        return row["throttled_sum_ns"] if first_ns <= begin <= last_ns else 0
    share = max(0, min(end, last_ns) - max(begin, first_ns)) / (end - begin)
    return float(share * row["throttled_sum_ns"])


def _keeps_falling(facts: Facts, rows: list[Row]) -> bool:
    """Whether the group goes on committing, and falls further behind nearly all the time. A group without
    later commits has stopped, or its later commits were not captured."""
    growing = [row for row in rows if (row["lag_per_s"] or 0) > 0]
    commits = max((row["commits"] for row in growing), default=0)
    rising = max((row["rising"] or 0.0 for row in growing), default=0.0)
    first_ns, last_ns = min(row["first_ns"] for row in rows), max(row["last_ns"] for row in rows)
    quiet_ns = (_end_ns(facts, rows) or last_ns) - last_ns
    if quiet_ns > max(facts.limit("quiet_s") * SECOND, (last_ns - first_ns) / 2):
        return False
    if commits < FEW_COMMITS or (commits < facts.limit("commits") and not _is_far_from_the_end(facts, rows)):
        return False
    return rising >= facts.limit("rising")


def _end_ns(facts: Facts, rows: list[Row]) -> int | None:
    """Until when the capture shows what a group does.

    :param rows: its rows of a table that names the cluster.
    """
    clusters = {row["cluster_id"] for row in rows}
    return facts.context.end_ns(next(iter(clusters)) if len(clusters) == 1 else None)


def _is_gone(facts: Facts, group: str | None, rows: list[Row], gone_s: float) -> bool:
    """Whether all members of a group left or ended at least ``gone_s`` before the end of the capture. Records
    written later are not their lag. A member from before the capture counts too: it may go on reading."""
    end_ns = _end_ns(facts, rows)
    if end_ns is None:
        return False
    until_ns = end_ns - gone_s * SECOND
    members = [row for row in facts.rows(Members) if row["group"] == group]
    there = [row for row in members if not has_left(row) or row["left_ns"] > until_ns]
    if members and not there:
        return True
    ids = {each for row in rows for each in row["committers"]} | {row["client_id"] for row in there}
    links = [row for row in facts.rows(Connections) if row["client_id"] in ids]
    return bool(links) and all(row["end"] in ("fin", "rst") and row["last_ns"] <= until_ns for row in links)


def has_left(member: Row) -> bool:
    """Whether a member left its group for good. If it came back under its id, it has sent requests since."""
    return member["left_ns"] is not None and bool(member["left_ns"] >= member["last_ns"])


def _is_far_from_the_end(facts: Facts, rows: list[Row]) -> bool:
    """Whether half of the uncommitted records of a group were not even fetched. A client that commits only
    after it has processed a whole Fetch commits seldom."""
    brought: dict[tuple[Any, ...], int] = {}
    for row in consumers(facts):
        key = (row["group"], row["topic"], row["partition"])
        brought[key] = max(brought.get(key, 0), row["fetched_to"] or 0)
    known = [row for row in rows if (row["group"], row["topic"], row["partition"]) in brought]
    left = sum(
        max(0, row["log_end"] - brought[row["group"], row["topic"], row["partition"]]) for row in known
    )
    return bool(2 * left >= sum(row["lag"] for row in rows))


def _per_s(rate: float) -> str:
    return f"{rate:,.0f} records/s" if rate >= 10 else f"{rate:.1f} records/s"


@rule("stuck-offset", CRITICAL, LIKELY, needs=(Positions, Lag), answers=10, again=100)
def stuck_offset(facts: Facts) -> Iterator[Finding]:
    """The same records are fetched again and again, and the committed offset does not pass them."""
    committed = {(row["group"], row["topic"], row["partition"]): row["committed"] for row in facts.rows(Lag)}
    found: dict[tuple[Any, ...], list[tuple[Row, Stall]]] = {}
    for row in consumers(facts):
        at = committed.get((row["group"], row["topic"], row["partition"]))
        stall = _stall(row, at, facts.limit("again"))
        if stall is not None and (at is None or at <= stall.offset):
            key = (row["group"], row["client_id"], row["topic"], row["partition"], stall.offset)
            found.setdefault(key, []).append((row, stall))
    for (group, client_id, topic, partition, offset), some in found.items():
        rows, stalls = [row for row, _ in some], [stall for _, stall in some]
        answers = sum(stall.answers for stall in stalls)
        if answers < facts.limit("answers"):
            continue
        at = committed.get((group, topic, partition))
        first_ns, last_ns = min(each.first_ns for each in stalls), max(each.last_ns for each in stalls)
        behind = max((row["high_watermark"] or offset) - offset for row in rows)
        committed_text = f" The committed offset is {at:,}." if at is not None else ""
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id, topic=topic, partition=partition),
            f"The records from offset {offset:,} on were fetched {answers:,} times in "
            f"{span(last_ns - first_ns)} and the consumer does not get past them; "
            f"{plural(behind, 'record waits', 'records wait')} from there on.{committed_text}",
            count=answers,
            measure=answers,
            unit="fetches",
            threshold=facts.limit("answers"),
            cost_ns=last_ns - first_ns,
            first_ns=first_ns,
            last_ns=last_ns,
            connections=[row["connection"] for row in rows],
            filter=fetches_of(topic, rows),
            fix=facts.fix({"HOST:PORT": rows[0]["broker"], **_names(group, topic, partition, offset)}),
        )


def _names(group: str | None, topic: str, partition: int, offset: int) -> dict[str, object]:
    """The names for the commands that show a record and commit the offset after it."""
    place = f"topic == {quoted(topic)} and partition == {partition} and record.offset == {offset}"
    return {"FILTER": place, "GROUP": group, "TOPIC:PARTITION": f"{topic}:{partition}", "NEXT": offset + 1}


def _stall(row: Row, committed: int | None, again: float) -> Stall | None:
    """Where a consumer may be stuck, by one of its connections. If nothing was committed, a consumer that
    goes back, or starts again at the committed offset, may do so on purpose. But no client reads from the
    middle of a partition ``again`` times on purpose, least of all in a group."""
    if row["stalled"]:
        comes_back = row["rewinds"] >= row["stalled"] - 1
        if comes_back and committed is None and not _is_caught(row, again):
            return None
        return Stall(row["stalled_at"], row["stalled"], row["stalled_first_ns"], row["stalled_last_ns"])
    if row["answers"] and committed is not None and row["begun_at"] == committed:
        return Stall(committed, 1, row["first_ns"], row["last_ns"])
    return None


def _is_caught(row: Row, again: float) -> bool:
    """Whether a consumer of a group goes back so often that it cannot make progress."""
    start = row["log_start_offset"]
    is_middle = start is not None and row["stalled_at"] > start
    return row["group"] is not None and is_middle and row["stalled"] >= again


def fetches_of(topic: str | None, rows: list[Row]) -> str:
    """The filter for the Fetches of these rows; without a topic, of all topics."""
    connections = of_connections(dict.fromkeys(row["connection"] for row in rows))
    of_topic = "" if topic is None else f" and topic == {quoted(topic)}"
    return f"api == Fetch{of_topic} and {connections}"


@rule("consumer-stalled", CRITICAL, LIKELY, needs=(Positions, Lag), answers=10)
def consumer_stalled(facts: Facts) -> Iterator[Finding]:
    """A consumer fetches, the partition has records, and the answers have none."""
    for key, rows in group_rows(consumers(facts), "group", "client_id", "topic", "partition").items():
        group, client_id, topic, partition = key
        worst = max(rows, key=lambda row: row["starved"])
        if worst["starved"] < facts.limit("answers") or worst["position"] != worst["starved_at"]:
            continue
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id, topic=topic, partition=partition),
            f"{worst['starved']:,} answers brought no whole record at offset {worst['starved_at']:,}, "
            "though the log "
            f"goes on to {worst['high_watermark']:,}.",
            count=worst["starved"],
            measure=worst["starved"],
            unit="answers",
            threshold=facts.limit("answers"),
            first_ns=worst["first_ns"],
            last_ns=worst["last_ns"],
            connections=[worst["connection"]],
            filter=fetches_of(topic, [worst]),
        )


@rule("consumer-stopped", WARNING, LIKELY, needs=(Positions, Lag, Connections), quiet_s=60, records=1)
@once_per_subject
def consumer_stopped(facts: Facts) -> Iterator[Finding]:
    """A group no longer fetches although records are written."""
    if facts.context.last_ns is None or facts.context.span_s < facts.limit("quiet_s"):
        facts.cannot_judge(f"needs {facts.limit('quiet_s'):.0f} s")
        return
    for some in _stopped_together(_stopped(facts)):
        last = some[0].last
        places = [(each.last["topic"], each.last["partition"]) for each in some]
        topics = {topic for topic, _ in places}
        subject = FindingSubject(
            group=last["group"],
            client_id=last["client_id"] if len(some) > 1 else None,
            client=some[0].host if len(some) > 1 else None,
            topic=last["topic"] if len(topics) == 1 else None,
            partition=last["partition"] if len(some) == 1 else None,
        )
        names = named(f"{topic}-{number}" for topic, number in places)
        what = "the partition" if len(some) == 1 else f"{plural(len(some), 'partition')} ({names})"
        end_ns = max(each.end_ns for each in some)
        quiet_ns = end_ns - max(each.since_ns for each in some)
        rows = [row for each in some for row in each.rows]
        yield facts.finding(
            subject,
            f"Nobody has fetched {what} for {span(quiet_ns)}, and "
            f"{plural(sum(each.waiting for each in some), 'record')} came since then.",
            measure=quiet_ns / SECOND,
            unit="s",
            threshold=facts.limit("quiet_s"),
            cost_ns=quiet_ns,
            first_ns=min(each.since_ns for each in some),
            last_ns=end_ns,
            client_ids=() if last["client_id"] is None else (last["client_id"],),
            connections=[row["connection"] for row in rows],
            filter=fetches_of(last["topic"] if len(topics) == 1 else None, rows),
            **(_OF_CONNECT if (last["client_id"] or "").startswith(_SINK_TASK) else {}),
        )


_SINK_TASK = "connector-consumer-"
"""How the client ids of the tasks of Kafka Connect begin that read topics (KIP-411)."""
_OF_CONNECT: dict[str, Any] = {
    "cause": "It was a task of a sink connector of Kafka Connect. Such a task stops for good if it fails, "
    "for example at a record that it cannot convert. Or somebody paused or stopped the connector.",
    "fix": "Ask a worker for the state of the task: GET /connectors/NAME/status. If it failed, the answer "
    "has the error; mend it, then POST /connectors/NAME/restart?includeTasks=true&onlyFailed=true. To pass "
    "over bad records, set errors.tolerance=all and errors.deadletterqueue.topic.name.",
}


class _Stopped(NamedTuple):
    """A partition that a group no longer fetches."""

    last: Row
    """The position of whoever fetched it last."""
    rows: list[Row]
    waiting: int
    """How many records nobody has fetched."""
    end_ns: int
    """Until when the capture shows that nobody does."""

    @property
    def since_ns(self) -> int:
        return int(self.last["fetched_last_ns"])

    @property
    def host(self) -> str | None:
        client = self.last["client"]
        return None if client is None else address(client)


def _stopped(facts: Facts) -> Iterator[_Stopped]:
    """The partitions that groups no longer fetch, though records come."""
    ends = {(row["group"], row["topic"], row["partition"]): row for row in facts.rows(Lag)}
    readers: dict[str | None, set[str]] = {}
    for row in consumers(facts):
        readers.setdefault(row["group"], set()).add(row["client"])
    one_sided: dict[str, bool] = {}
    links: dict[str, set[int]] = {}
    for key, rows in group_rows(consumers(facts), "group", "topic", "partition").items():
        group = key[0]
        last = max(rows, key=lambda row: row["fetched_last_ns"] or 0)
        lag = ends.get(key)
        if group is None or lag is None or lag["log_end"] is None or last["fetched_last_ns"] is None:
            continue
        end_ns = _end_ns(facts, rows)
        if end_ns is None:
            continue
        seen_ns = facts.context.seen_ns(last["fetched_last_ns"], end_ns)
        times = sum(row["fetches"] for row in rows)
        usual_ns = (last["fetched_last_ns"] - min(row["first_ns"] for row in rows)) / max(1, times)
        if seen_ns < max(facts.limit("quiet_s") * SECOND, 20 * usual_ns):
            continue
        # A commit shows what was read, even if the Fetch was not captured.
        waiting = lag["log_end"] - max(lag["committed"] or 0, *(row["position"] or 0 for row in rows))
        if waiting < facts.limit("records"):
            continue
        if group not in one_sided:
            one_sided[group] = is_often_one_sided(facts, filter(None, readers[group]))
        if one_sided[group]:
            facts.cannot_judge("of many exchanges only one side was captured, fetches perhaps among them")
            continue
        if group not in links:
            links[group] = _links(facts, group)
        if may_lack_after(facts, links[group], last["fetched_last_ns"]):
            facts.cannot_judge(not_known("the last fetches"))
            continue
        yield _Stopped(last, rows, waiting, end_ns)


def _links(facts: Facts, group: str) -> set[int]:
    """The connections of the clients that read for a group. Any of them may fetch a partition later."""
    read = [row for row in consumers(facts) if row["group"] == group]
    clients = {(address(row["client"]), row["client_id"]) for row in read if row["client"] is not None}
    return {row["connection"] for row in read} | {
        row["connection"]
        for row in facts.rows(Connections)
        if (address(row["client"]), row["client_id"]) in clients
    }


TOGETHER_NS = 5 * SECOND
"""How far apart the last Fetches of a client that stops may be. It sends them to several brokers."""


def _stopped_together(stopped: Iterable[_Stopped]) -> Iterator[list[_Stopped]]:
    """The partitions that one client of a group stopped to fetch at one time."""
    of_reader: dict[tuple[Any, ...], list[_Stopped]] = {}
    for each in stopped:
        reader = each.last["group"], each.host, each.last["client_id"]
        of_reader.setdefault(reader, []).append(each)
    for several in of_reader.values():
        some: list[_Stopped] = []
        for each in sorted(several, key=lambda each: each.since_ns):
            if some and each.since_ns - some[0].since_ns > TOGETHER_NS:
                yield _by_place(some)
                some = []
            some.append(each)
        yield _by_place(some)


def _by_place(stopped: list[_Stopped]) -> list[_Stopped]:
    return sorted(stopped, key=lambda each: (each.last["topic"], each.last["partition"]))


@rule(
    "partition-lags",
    WARNING,
    LIKELY,
    needs=(Lag, Members, Connections),
    records=1_000,
    times=10,
    partitions=3,
)
def partition_lags(facts: Facts) -> Iterator[Finding]:
    """One partition is far behind its siblings."""
    for (group, topic), rows in group_rows(facts.rows(Lag), "group", "topic").items():
        limits = {name: facts.limit(name) for name in ("records", "times", "partitions")}
        lagging = _far_behind(rows, limits)
        if lagging and _is_gone(facts, group, rows, facts.limit_of("consumer-falling-behind", "gone_s")):
            continue
        for row, usual in lagging:
            yield facts.finding(
                FindingSubject(group=group, topic=topic, partition=row["partition"]),
                f"Partition {row['partition']} is {row['lag']:,} records behind, its siblings "
                f"{usual:,.0f} at the median.",
                measure=row["lag"],
                unit="records",
                threshold=facts.limit("records"),
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                exchanges=row["exchanges"],
                filter=f"group == {quoted(group)} and api == OffsetCommit",
            )
