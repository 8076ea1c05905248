"""Rules on offsets: groups that lose or repeat records, go back, or commit too often or never."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterPartitions
from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.groups import Members
from kdissect.analysis.lag import Lag
from kdissect.analysis.offsets_asked import OffsetsAsked
from kdissect.analysis.positions import Positions
from kdissect.analysis.repeats import Repeats
from kdissect.analysis.speakers import address
from kdissect.analysis.transactions import Transactions
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, CRITICAL, INFO, LIKELY, NOTICE, WARNING, Finding, FindingSubject
from kdissect.insight.gaps import not_known
from kdissect.insight.grouping import group_rows
from kdissect.insight.nodes import are_several_clusters, nodes_by_address
from kdissect.insight.repeated import once_per_subject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.lag import consumers, fetches_of, has_left
from kdissect.insight.words import named, quoted, span
from kdissect.wording import plural

explains("data-lost-to-retention", "offset-reset", "offset-rewound", shares=("group", "topic", "partition"))
explains("offset-reset", "offset-rewound", shares=("group", "topic"))


def _resets(facts: Facts) -> Iterator[Row]:
    """Consumers that asked for an offset that was not there, and continued at another one."""
    for row in consumers(facts):
        if row["out_of_range"] and row["reset_from"] is not None:
            yield row


@rule("data-lost-to-retention", CRITICAL, CERTAIN, needs=(Positions, Lag))
def data_lost_to_retention(facts: Facts) -> Iterator[Finding]:
    """Records were deleted before the group had read them."""
    refused: set[tuple[str, str, int]] = set()
    for key, rows in group_rows(_resets(facts), "group", "client_id", "topic", "partition").items():
        group, client_id, topic, partition = key
        lost = [row for row in rows if row["reset_from"] < (row["log_start_offset"] or 0)]
        if not lost:
            continue
        row = max(lost, key=lambda each: each["log_start_offset"] - each["reset_from"])
        gone = row["log_start_offset"] - row["reset_from"]
        refused.add((group, topic, partition))
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id, topic=topic, partition=partition),
            f"{plural(gone, 'record was', 'records were')} deleted before being read: the consumer "
            "wanted to go on at offset "
            f"{row['reset_from']:,}, and the log begins at {row['log_start_offset']:,}.",
            count=len(lost),
            measure=gone,
            unit="records",
            threshold=1,
            first_ns=row["reset_ns"],
            last_ns=max(row["reset_ns"], row["last_ns"]),
            exchanges=[row["reset_exchange"]],
            connections=[each["connection"] for each in lost],
            filter=fetches_of(topic, lost),
        )
    for row in facts.rows(Lag):
        # Clients that first ask where the log begins never ask for a deleted record.
        if row["deleted_to"] is None or (row["group"], row["topic"], row["partition"]) in refused:
            continue
        gone = row["deleted_to"] - row["deleted_from"]
        yield facts.finding(
            FindingSubject(
                group=row["group"],
                client_id=row["deleted_for"],
                topic=row["topic"],
                partition=row["partition"],
            ),
            f"{plural(gone, 'record was', 'records were')} deleted before being read: the group had "
            f"committed offset {row['deleted_from']:,}, and the log begins at {row['deleted_to']:,}. The "
            "consumer asked for the beginning of the log and went on there.",
            measure=gone,
            unit="records",
            threshold=1,
            first_ns=row["deleted_ns"],
            last_ns=row["deleted_ns"],
            exchanges=[row["deleted_exchange"]],
        )


@rule("offset-reset", CRITICAL, CERTAIN, needs=(Positions, ClusterChanges))
@once_per_subject
def offset_reset(facts: Facts) -> Iterator[Finding]:
    """A consumer jumped, because the offset that it asked for was not there."""
    deleted = group_rows(
        (row for row in facts.rows(ClusterChanges) if row["what"] == "topic-deleted"), "topic"
    )
    # Two clusters may have a group and a topic of the same names.
    names = "group", "client_id", "topic", "partition", "cluster_id"
    read = group_rows(consumers(facts), *names)
    for key, rows in group_rows(_resets(facts), *names).items():
        group, client_id, topic, partition, cluster = key
        row = rows[-1]
        before, after = row["reset_from"], row["reset_to"]
        gone = deleted.get((topic,), [])
        of_cluster = [each for each in gone if cluster is None or each["cluster_id"] in (None, cluster)]
        is_another = after is not None and after <= before
        is_another = is_another and _is_another(row, read[key], of_cluster)
        later = [
            each
            for each in read[key]
            if each is not row and each["fetches"] and each["first_ns"] >= row["reset_ns"]
        ]
        if after is None and later:
            is_another = any(each["connection"] == row["connection"] for each in later)
            jump = (
                "so it began anew: the topic was deleted and made again, with new offsets"
                if is_another
                else "and it went on over another connection"
            )
        elif after is None:
            jump = "and it read nothing of this partition after that in the capture"
        elif after > before:
            jump = f"so it went on at {after:,} and left out {plural(after - before, 'offset')}"
        elif is_another:
            jump = f"so it went on at {after:,}: the topic was deleted and made again, with new offsets"
        else:
            jump = f"so it went back to {after:,}, by {plural(before - after, 'offset')}"
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id, topic=topic, partition=partition),
            f"The consumer asked for offset {before:,}, which the partition does not have, {jump}.",
            count=sum(each["out_of_range"] for each in rows),
            measure=abs(after - before) if after is not None else None,
            unit="records",
            threshold=1,
            first_ns=row["reset_ns"],
            last_ns=max(row["reset_ns"], row["last_ns"]),
            exchanges=[each["reset_exchange"] for each in rows],
            connections=[each["connection"] for each in rows],
            filter=fetches_of(topic, rows),
            **(_MADE_AGAIN if is_another else {}),
        )


_MADE_AGAIN = {
    "cause": "The topic was deleted and made again under its name: by a tool, or by itself at the next "
    "request for it (auto.create.topics.enable). Its records and offsets are new ones, and what was not "
    "read of the old topic is lost.",
    "fix": "Find out who deleted the topic, and whether that was meant. Stop producers and consumers first, "
    "and delete the group's offsets with the topic. Set auto.create.topics.enable=false on the brokers.",
    "configs": ("auto.create.topics.enable", "auto.offset.reset"),
}


def _is_another(reset: Row, read: list[Row], deleted: list[Row]) -> bool:
    """Whether the topic was deleted and created again while it was read: somebody was seen to delete it, or
    one connection read two topic ids under this name.

    :param read: what the consumer read of partitions of this topic and number.
    """
    begun_ns = min(row["first_ns"] for row in read)
    return any(begun_ns <= each["ns"] <= reset["reset_ns"] for each in deleted) or any(
        row is not reset and row["connection"] == reset["connection"] and row["first_ns"] < reset["first_ns"]
        for row in read
    )


@rule("offset-rewound", NOTICE, CERTAIN, needs=(Lag,))
def offset_rewound(facts: Facts) -> Iterator[Finding]:
    """A committed offset went back. A topic that was deleted and created again starts with new offsets."""
    went_back = [row for row in facts.rows(Lag) if row["rewinds"]]
    for (group, topic), rows in group_rows(went_back, "group", "topic").items():
        worst = max(rows, key=lambda row: row["rewound_from"] - row["rewound_to"])
        by = f", by client {worst['rewound_by']}" if worst["rewound_by"] else ""
        yield facts.finding(
            FindingSubject(group=group, topic=topic),
            f"The committed offset of {plural(len(rows), 'partition')} went back, of partition "
            f"{worst['partition']} from {worst['rewound_from']:,} to {worst['rewound_to']:,}{by}: these "
            "records are "
            "read again.",
            count=sum(row["rewinds"] for row in rows),
            measure=worst["rewound_from"] - worst["rewound_to"],
            unit="records",
            threshold=1,
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            exchanges=[row["rewind_exchange"] for row in rows],
            filter=f"group == {quoted(group)} and api in {{OffsetCommit, TxnOffsetCommit}}",
        )


_DELETING = {
    "OffsetDelete": "delete committed offsets",
    "DeleteGroups": "delete groups",
}
"""Requests that delete committed offsets, and the words for them."""


@rule("offsets-lost", WARNING, CERTAIN, needs=(Lag, Repeats, ClusterBrokers, ClusterChanges), after_s=1)
def offsets_lost(facts: Facts) -> Iterator[Finding]:
    """A group had committed offsets, and later the coordinator has none. If somebody asked to delete them in
    between, it was perhaps on purpose."""
    lost = [
        row
        for row in facts.rows(Lag)
        if row["lost_ns"] is not None and row["lost_after_ns"] >= facts.limit("after_s") * SECOND
    ]
    if are_several_clusters(facts.rows(ClusterBrokers)) and any(row["cluster_id"] is None for row in lost):
        # The commit may be in another cluster: tools that copy offsets ask the second cluster for them.
        facts.cannot_judge("several clusters were captured, and the cluster of a group is unknown")
        lost = [row for row in lost if row["cluster_id"] is not None]
    for (group, topic, cluster), rows in group_rows(lost, "group", "topic", "cluster_id").items():
        worst = max(rows, key=lambda row: row["lost_from"])
        deleting = _deleting(facts, topic, cluster, rows)
        yield facts.finding(
            FindingSubject(group=group, topic=topic),
            f"The group had committed offsets of {plural(len(rows), 'partition')}, {worst['lost_from']:,} of "
            f"partition {worst['partition']}, and {span(worst['lost_after_ns'])} later the coordinator says "
            f"that it has none.{_asked_to_delete(deleting)}",
            severity=NOTICE if deleting else WARNING,
            count=len(rows),
            measure=len(rows),
            unit="partitions",
            threshold=1,
            first_ns=min(row["lost_ns"] for row in rows),
            last_ns=max(row["lost_ns"] for row in rows),
            exchanges=[
                *(row["lost_exchange"] for row in rows),
                *(number for _, _, numbers in deleting for number in numbers if number is not None),
            ],
            filter=f"group == {quoted(group)} and api in {{OffsetCommit, OffsetFetch}}",
        )


def _deleting(
    facts: Facts, topic: str | None, cluster: str | None, lost: list[Row]
) -> list[tuple[str, str, list[int]]]:
    """Clients that may have deleted the offsets on purpose, after the commits and before the answers without
    offsets: the client, its request, and exchanges. The group in the request is not known."""
    from_ns = min(row["lost_ns"] - row["lost_after_ns"] for row in lost)
    to_ns = max(row["lost_ns"] for row in lost)
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    of_cluster = None, cluster
    asked = [
        (row["client_id"] or row["client"], _DELETING[row["api"]], row["exchanges"])
        for row in facts.rows(Repeats)
        if row["api"] in _DELETING
        and row["error"] is None
        and row["first_ns"] <= to_ns
        and row["last_ns"] >= from_ns
        and (
            cluster is None
            or row["broker"] not in nodes
            or not nodes[row["broker"]].clusters.isdisjoint(of_cluster)
        )
    ]
    deleted = [
        (row["by"] or "somebody", "delete the topic", [row["exchange"]])
        for row in facts.rows(ClusterChanges)
        if row["what"] == "topic-deleted" and row["topic"] == topic and from_ns <= row["ns"] <= to_ns
        if cluster is None or row["cluster_id"] in of_cluster
    ]
    return asked + deleted


def _asked_to_delete(deleting: list[tuple[str, str, list[int]]]) -> str:
    """The sentence that says who asked to delete what."""
    if not deleting:
        return ""
    who, what = {who for who, _, _ in deleting}, {what for _, what, _ in deleting}
    return f" In this time {named(sorted(who))} asked to {named(sorted(what))}."


explains("offsets-lost", "records-read-twice", shares=("group", "topic"))
explains("offsets-lost", "no-offset", shares=("group", "topic"))


WHILE_NS = SECOND
"""How long the capture must go on after a member of no group was told that it has no offset. Clients read at
once."""


@rule(
    "no-offset",
    WARNING,
    LIKELY,
    needs=(OffsetsAsked, Members, Positions, Repeats, ClusterBrokers, ClusterPartitions, Connections),
    wait_s=30,
)
def no_offset(facts: Facts) -> Iterator[Finding]:
    """A member learns that nothing is committed. It does not read, and does not ask where the log begins or
    ends."""
    read: dict[tuple[str | None, str], int] = {}
    asked_where = [row for row in facts.rows(Repeats) if row["api"] in ("Fetch", "ListOffsets")]
    for row in (*facts.rows(Positions), *asked_where):
        key = row["client_id"], address(row["client"])
        read[key] = max(read.get(key, 0), row["last_ns"])
    members = group_rows((row for row in facts.rows(Members) if row["joins"]), "group", "client_id")
    opened = group_rows(facts.rows(Connections), "client_id")
    for row in facts.rows(OffsetsAsked):
        group, client_id, asked_ns = row["group"], row["client_id"], row["last_ns"]
        last_ns = read.get((client_id, row["client"]), 0)
        if not row["last_without"] or last_ns >= asked_ns:  # it found where to begin
            continue
        # A member that has read before may have lost its partitions, so only a member that began later is
        # judged.
        own = [
            each
            for each in members.get((group, client_id), ())
            if last_ns < each["first_ns"] <= asked_ns and address(each["client"] or "") == row["client"]
        ]
        if not own:
            continue
        left = [
            max(asked_ns, each["left_ns"])
            for each in own
            if has_left(each) and each["left_ns"] >= asked_ns - SECOND
        ]
        links = [each for each in opened.get((client_id,), ()) if address(each["client"]) == row["client"]]
        nameless = [each for each in opened.get((None,), ()) if address(each["client"]) == row["client"]]
        died = bool(links) and all(each["end"] in ("fin", "rst") for each in links)
        until_ns = facts.context.end_ns(*row["brokers"]) or asked_ns
        if left:
            if max(left) == asked_ns and not died and until_ns < asked_ns + WHILE_NS:
                continue  # it left before it was told, and may still read
            until_ns = min(left)
        elif died:
            until_ns = max(asked_ns, *(each["last_ns"] for each in links))
        elif until_ns - asked_ns < facts.limit("wait_s") * SECOND:
            continue
        if facts.context.not_selected:
            facts.cannot_judge("a filter or span of time leaves exchanges out")
            continue
        if not _leaders_are_seen(facts, row["topics"]):
            facts.cannot_judge("the brokers that lead the partitions were not captured")
            continue
        if any(each["gap_bytes"] for each in (*links, *nameless)):
            facts.cannot_judge(not_known("a Fetch or ListOffsets"))
            continue
        if any(each["commits"] for each in own):  # it has read, over a connection that was not captured
            facts.cannot_judge("a member committed offsets, and the capture does not show what it read")
            continue
        end = "and left the group" if left else "and ended" if died else "though it stayed in the group"
        yield facts.finding(
            FindingSubject(
                group=group, client_id=client_id, topic=row["topics"][0] if row["topics"] else None
            ),
            f"{client_id} was told that the group has no committed offset for "
            f"{plural(row['last_without'], 'partition')} of {named(row['topics']) or 'its topics'}. It read "
            f"nothing and did not ask where to begin, {end}.",
            count=row["without"],
            measure=row["last_without"],
            unit="partitions",
            threshold=1,
            first_ns=asked_ns,
            last_ns=until_ns,
            exchanges=row["exchanges"],
            filter=f"group == {quoted(group)} and api == OffsetFetch",
        )


def _leaders_are_seen(facts: Facts, topics: list[str]) -> bool:
    """Whether the capture shows the requests to the leaders of these topics. The cluster must tell the
    leaders. If there are several nodes, it must tell their addresses, too."""
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    every = {row["node_id"] for row in facts.rows(ClusterBrokers)}
    led = {row["leader"] for row in facts.rows(ClusterPartitions) if row["topic"] in topics}
    if not led or not every:
        return False
    if len(every) == 1:
        return led == every
    seen = {nodes[row["broker"]].number for row in facts.rows(Connections) if row["broker"] in nodes}
    return led <= seen


def _transactional(facts: Facts) -> set[str]:
    """Groups that commit offsets in transactions."""
    return {group for row in facts.rows(Transactions) for group in row["groups"] or ()}


@rule(
    "commits-too-often",
    NOTICE,
    CERTAIN,
    needs=(Members, Positions, Transactions, Errors),
    commits=200,
    per_s=10,
    records=5,
)
def commits_too_often(facts: Facts) -> Iterator[Finding]:
    """Offsets are committed for nearly every record."""
    transactional, refused = _transactional(facts), _refused_commits(facts)
    fetched: dict[tuple[str | None, str | None], int] = {}
    for row in consumers(facts):
        key = row["group"], row["client_id"]
        fetched[key] = fetched.get(key, 0) + row["records"]
    for (group, client_id), rows in group_rows(facts.rows(Members), "group", "client_id").items():
        commits = sum(row["commits"] for row in rows) - refused.get((group, client_id), 0)
        active_ns = sum(row["last_ns"] - row["first_ns"] for row in rows)
        if group in transactional or commits < facts.limit("commits") or active_ns <= 0:
            continue
        rate = commits * SECOND / active_ns
        records = fetched.get((group, client_id), 0)
        for_each = records > 0 and commits * facts.limit("records") >= records and rate >= 2
        if rate < facts.limit("per_s") and not for_each:
            continue
        shares = f", one for every {records / commits:.1f} records" if records else ""
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id),
            f"The consumer committed its offsets {commits:,} times, {rate:.0f} times a second{shares}.",
            count=commits,
            measure=rate,
            unit="commits/s",
            threshold=facts.limit("per_s"),
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            filter=f"group == {quoted(group)} and api == OffsetCommit",
        )


def _refused_commits(facts: Facts) -> dict[tuple[str, str | None], int]:
    """How many commits of each group and client id were refused, at least. Clients repeat them until they are
    accepted: the application did not ask for so many."""
    of_partition: dict[tuple[str, str | None], Counter[tuple[str | None, int | None]]] = {}
    for row in facts.rows(Errors):
        if row["api"] in ("OffsetCommit", "TxnOffsetCommit") and row["group"] is not None:
            found = of_partition.setdefault((row["group"], row["client_id"]), Counter())
            found[row["topic"], row["partition"]] += row["count"]
    return {who: max(found.values()) for who, found in of_partition.items()}


@rule("never-commits", INFO, CERTAIN, needs=(Members, Positions, Lag, Transactions), minutes=5)
def never_commits(facts: Facts) -> Iterator[Finding]:
    """A member reads for long and commits nothing."""
    transactional = _transactional(facts)
    reading = {(row["group"], row["client_id"]) for row in consumers(facts) if row["records"]}
    judged = False
    for (group, client_id), rows in group_rows(facts.rows(Members), "group", "client_id").items():
        there_ns = sum(row["last_ns"] - row["first_ns"] for row in rows)
        if there_ns < facts.limit("minutes") * 60 * SECOND or "share" in rows[0]["types"]:
            continue
        judged = True
        if any(row["commits"] for row in rows) or group in transactional or (group, client_id) not in reading:
            continue
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id),
            f"The member has read records for {there_ns / SECOND / 60:.0f} minutes and never committed an "
            "offset.",
            measure=there_ns / SECOND,
            unit="s",
            threshold=facts.limit("minutes") * 60,
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            filter=f"group == {quoted(group)}",
        )
    if not judged and facts.rows(Members):
        facts.cannot_judge(f"needs {facts.limit('minutes'):.0f} minutes of a member")
