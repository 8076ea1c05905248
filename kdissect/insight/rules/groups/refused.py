"""Rules on requests of members that coordinators refuse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.groups import Members
from kdissect.analysis.rebalances import Rebalances
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, CRITICAL, NOTICE, WARNING, EvidenceStep, Finding, FindingSubject
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.groups.words import by_group, group_filter, seconds, some
from kdissect.insight.words import having
from kdissect.protocol.errors import NOT_MADE
from kdissect.wording import plural

GROUP_HEARTBEATS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
JOINS = ("JoinGroup", *GROUP_HEARTBEATS)
COMMITS = ("OffsetCommit", "TxnOffsetCommit")
MEMBERSHIP = (*JOINS, "SyncGroup", "Heartbeat", "LeaveGroup", *COMMITS, "OffsetFetch")
ROUTINE = "routine"


def _refusals(
    facts: Facts, names: tuple[str, ...], apis: tuple[str, ...]
) -> dict[tuple[str, str | None], list[Row]]:
    """Rows of these errors in answers of these APIs, without routine ones, by group and client id."""
    found: dict[tuple[str, str | None], list[Row]] = {}
    for row in facts.rows(Errors):
        if row["error"] in names and row["api"] in apis and row["group"] and row["error_class"] != ROUTINE:
            found.setdefault((row["group"], row["client_id"]), []).append(row)
    return found


def _common_fields(rows: Iterable[Row]) -> dict[str, object]:
    """The fields that all findings on errors share."""
    rows = list(rows)
    numbers = [number for row in rows for number in (row["first_exchange"], row["last_exchange"])]
    first, last = min(row["first_ns"] for row in rows), max(row["last_ns"] for row in rows)
    return {
        "count": sum(row["count"] for row in rows),
        "first_ns": first,
        "last_ns": last,
        "exchanges": sorted(set(numbers)),
        "steps": tuple(
            EvidenceStep(
                row["first_ns"], f"{row['api']} of {row['client_id']}: {row['error']}", row["first_exchange"]
            )
            for row in sorted(rows, key=lambda row: row["first_ns"])[:8]
        ),
    }


@rule("assignor-mismatch", WARNING, CERTAIN, needs=(Errors, Members), together_s=60)
def assignor_mismatch(facts: Facts) -> Iterator[Finding]:
    """Members do not offer the same assignors."""
    members = dict(by_group(facts.rows(Members)))
    found = _refusals(facts, ("INCONSISTENT_GROUP_PROTOCOL",), ("JoinGroup",))
    for (group, client_id), rows in found.items():
        own = {
            name for row in members.get(group, []) if row["client_id"] == client_id for name in row["offers"]
        }
        others = [row for row in members.get(group, []) if row["client_id"] != client_id and row["offers"]]
        theirs = {name for row in others for name in row["offers"]}
        offers = f" It offers {some(sorted(own))}" if own else ""
        rest = f", the others {some(sorted(theirs))}." if own and theirs else "." if own else ""
        count = sum(row["count"] for row in rows)
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id),
            f"{client_id} was refused {plural(count, 'time')}: it offers no assignor that all members of "
            f"the group know.{offers}{rest}",
            measure=float(count),
            unit="refusals",
            filter=group_filter(group),
            **_common_fields(rows),
        )
    for group, rows in members.items():
        if not any(key[0] == group for key in found):
            yield from _different_offers(facts, group, rows)


def _different_offers(facts: Facts, group: str, rows: list[Row]) -> Iterator[Finding]:
    """Findings on members that were in a group together for long and offer different assignors."""
    living = [
        row for row in rows if row["offers"] and row["types"] == ["classic"] and row["first_generation"]
    ]
    for at, one in enumerate(living):
        for other in living[at + 1 :]:
            together_ns = min(one["last_ns"], other["last_ns"]) - max(one["first_ns"], other["first_ns"])
            if one["offers"] == other["offers"] or together_ns < facts.limit("together_s") * SECOND:
                continue
            yield facts.finding(
                FindingSubject(group=group),
                f"Members offer different assignors: {one['client_id']} offers {some(one['offers'])}, "
                f"{other['client_id']} offers {some(other['offers'])}. The group would refuse a member "
                "whose assignors the others do not know.",
                measure=together_ns / SECOND,
                unit="s",
                threshold=facts.limit("together_s"),
                first_ns=max(one["first_ns"], other["first_ns"]),
                last_ns=min(one["last_ns"], other["last_ns"]),
                filter=group_filter(group),
            )
            return


UNRELEASED = "UNRELEASED_INSTANCE_ID"


@rule("static-member-conflict", CRITICAL, CERTAIN, needs=(Errors, Members), unreleased=3, unreleased_s=10)
def static_member_conflict(facts: Facts) -> Iterator[Finding]:
    """Two processes use one group.instance.id."""
    groups: dict[str, list[Row]] = {}
    members = dict(by_group(facts.rows(Members)))
    for row in facts.rows(Errors):
        if not row["group"] or row["api"] not in MEMBERSHIP:
            continue
        lasted_s = (row["last_ns"] - row["first_ns"]) / SECOND
        known = members.get(row["group"], [])
        often = row["count"] >= facts.limit("unreleased") or lasted_s >= facts.limit("unreleased_s")
        unreleased = row["error"] == UNRELEASED and (
            _is_held(known, row) or (often and not _was_left(known, row))
        )
        if row["error"] == "FENCED_INSTANCE_ID" or unreleased:
            groups.setdefault(row["group"], []).append(row)
    for group, rows in groups.items():
        fenced = {row["client_id"] for row in rows}
        static = [row for row in members.get(group, []) if row["instance_id"]]
        instances = {row["instance_id"] for row in static if row["client_id"] in fenced}
        both = [row for row in static if row["instance_id"] in instances]
        who = some(f"{row['client_id']} at {row['client']}" for row in both if row["client"])
        named = some(sorted(instances)) if instances else "the same name"
        count = sum(row["count"] for row in rows)
        loser = (
            "one that came later was refused {} and reads nothing"
            if all(row["error"] == UNRELEASED for row in rows)
            else "one that came first was refused {} and no longer reads anything"
        )
        yield facts.finding(
            FindingSubject(group=group, client_id=next(iter(fenced)) if len(fenced) == 1 else None),
            f"Two processes claim to be the same member of the group, {named}: {who or some(fenced)}. The "
            f"{loser.format(plural(count, 'time'))}.",
            measure=float(count),
            unit="refusals",
            filter=group_filter(group),
            **_common_fields(rows),
        )


GOES_ON_NS = 5 * SECOND
"""The least time for which a member must go on: the newer groups send heartbeats this far apart."""


def _is_held(members: list[Row], refusal: Row) -> bool:
    """Whether another member with the instance id of the refused one goes on as if nothing had happened. If
    that member died, it is silent, and its place is free when its session ends. If it is being stopped while
    the other starts, it leaves soon."""
    refused = {row["instance_id"] for row in members if row["client_id"] == refusal["client_id"]}
    return any(
        row["instance_id"] is not None
        and row["instance_id"] in refused
        and row["first_generation"] is not None
        and row["first_ns"] < refusal["first_ns"]
        and row["last_ns"] > refusal["last_ns"]
        and (row["left_ns"] is None or row["left_ns"] >= refusal["last_ns"] + GOES_ON_NS)
        for row in members
    )


def _was_left(members: list[Row], refusal: Row) -> bool:
    """Whether the member whose place the refused one asks for has been silent since before. Then it died, and
    its place is free when its session ends. A restart that comes too early is no second process."""
    refused = {row["instance_id"] for row in members if row["client_id"] == refusal["client_id"]}
    before = [
        row
        for row in members
        if row["instance_id"] is not None
        and row["instance_id"] in refused
        and row["first_generation"] is not None
        and row["first_ns"] < refusal["first_ns"]
    ]
    return bool(before) and all(row["last_ns"] < refusal["first_ns"] for row in before)


LOST_MEMBERSHIP = ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "FENCED_INSTANCE_ID")


def _were_members(facts: Facts) -> set[tuple[str, str | None]]:
    """Groups, with the client ids that were seen as their members."""
    return {
        (row["group"], row["client_id"])
        for row in facts.rows(Members)
        if row["member_id"] and row["first_generation"] is not None
    }


@rule("commit-after-rebalance", WARNING, CERTAIN, needs=(Errors, Members), stale=3)
def commit_after_rebalance(facts: Facts) -> Iterator[Finding]:
    """Offset commits were refused, so records are processed again."""
    stale = _refusals(facts, ("STALE_MEMBER_EPOCH",), COMMITS)
    found = _refusals(facts, LOST_MEMBERSHIP, COMMITS)
    for key, rows in stale.items():
        if sum(row["count"] for row in rows) >= facts.limit("stale"):
            found.setdefault(key, []).extend(rows)
    known = _were_members(facts)
    for (group, client_id), rows in found.items():
        if (group, client_id) not in known:
            continue
        places = {(row["topic"], row["partition"]) for row in rows}
        errors = {row["error"] for row in rows}
        # A member with an old generation may still be one, and may even get the partitions back.
        why, who = "it was no longer a member of the group", "new owner of these partitions"
        if errors == {"ILLEGAL_GENERATION"}:
            why, who = "the group had rebalanced since", "owner of these partitions after that"
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id),
            f"The broker refused to store how far {client_id} had processed "
            f"{plural(len(places), 'partition')} ({some(sorted(errors))}): {why}. The "
            f"{who} processes the same records again.",
            measure=float(len(places)),
            unit="partitions",
            filter=group_filter(group),
            **_common_fields(rows),
        )


NOT_READY = ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
OF_MEMBERS = ("Heartbeat", "SyncGroup", "LeaveGroup")
"""APIs that only accepted members use."""


@rule("coordinator-moved", NOTICE, CERTAIN, needs=(Errors, Members, Rebalances), unavailable_s=5, never_s=30)
def coordinator_moved(facts: Facts) -> Iterator[Finding]:
    """A group, or a transactional id, lost its coordinator. A broker that refuses the first members of a
    group and then accepts them was only getting ready."""
    served = _served(facts)
    found: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in _whole(facts.rows(Errors)):
        is_members = row["group"] and row["api"] in (*MEMBERSHIP, "FindCoordinator")
        if not is_members and not (row["transactional_id"] and row["api"] == "FindCoordinator"):
            continue
        if row["error"] == "NOT_COORDINATOR":
            before_ns = served.get(row["group"])
            is_told = row["api"] in OF_MEMBERS or (before_ns is not None and before_ns < row["first_ns"])
        else:
            lasted_ns, least_ns = row["last_ns"] - row["first_ns"], facts.limit("unavailable_s") * SECOND
            # Clients ask again within seconds. Refusals that are further apart belong to different times.
            is_one_time = row["count"] * least_ns >= lasted_ns
            is_told = row["error"] in NOT_READY and lasted_ns >= least_ns and is_one_time
        if is_told:
            id = None if row["group"] else row["transactional_id"]
            found.setdefault((row["group"] or None, id), []).append(row)
    for (group, id), rows in found.items():
        moved = any(row["error"] == "NOT_COORDINATOR" for row in rows)
        lasted_ns = max(row["last_ns"] for row in rows) - min(row["first_ns"] for row in rows)
        if not moved:  # several clients may have been refused at different times
            lasted_ns = max(row["last_ns"] - row["first_ns"] for row in rows)
        brokers = some(sorted({row["broker"] for row in rows if row["broker"]}))
        whose = "the group" if group is not None else f"the transactional id {id}"
        is_never = (
            all((row["api"], row["error"]) == ("FindCoordinator", NOT_READY[0]) for row in rows)
            and group not in served
        )
        unmade = _unmade(facts, OFFSETS if group is not None else TRANSACTIONS) if is_never else None
        is_lost = is_never and (unmade is not None or lasted_ns >= facts.limit("never_s") * SECOND)
        yield facts.finding(
            FindingSubject(group=group, transactional_id=id),
            (
                f"The coordinator of the group changed. {_refused(rows, 'Members')}"
                if moved
                else f"No broker was ready to be the coordinator of {whose}. {_refused(rows, 'Clients')}"
            )
            + f" by {brokers}"
            + (f", for {seconds(lasted_ns)}." if lasted_ns else ".")
            + (f" The cluster cannot make {unmade['topic']} ({unmade['error']})." if unmade else ""),
            severity=WARNING if is_lost else NOTICE,
            measure=lasted_ns / SECOND,
            unit="s",
            threshold=0.0 if moved else facts.limit("unavailable_s"),
            cost_ns=lasted_ns,
            filter=group_filter(group) if group is not None else having(transactional_id=id),
            **_common_fields(rows),
            **(_NEVER if is_lost else {}),
        )


def _whole(errors: list[Row]) -> Iterator[Row]:
    """The rows of errors, with those of one client and one subject merged, whether they are still ordinary
    steps or already last too long."""
    names = ("error", "api", "broker", "client", "client_id", "group", "transactional_id")
    for rows in group_rows(errors, *names).values():
        yield rows[0] | {
            "count": sum(row["count"] for row in rows),
            "places": {(row["topic"], row["partition"]) for row in rows},
            "answers": _answers(rows),
            **{name: min(row[name] for row in rows) for name in ("first_exchange", "first_ns")},
            **{name: max(row[name] for row in rows) for name in ("last_exchange", "last_ns")},
        }


def _answers(rows: list[Row]) -> int | None:
    """How many answers had this error. Each answer has it once for each of its partitions. None if the rows
    do not show the number, because not all partitions had the error in the same answers."""
    count = 0
    for alike in group_rows(rows, "error_class").values():
        seen = {(row["count"], row["first_exchange"], row["last_exchange"]) for row in alike}
        if len(seen) > 1:
            return None
        count += alike[0]["count"]
    return count


def _refused(rows: list[Row], who: str) -> str:
    """How often requests were refused. A commit is one request, though its answer has an error for each
    partition."""
    commits = [row for row in rows if row["api"] in COMMITS]
    others = sum(row["count"] for row in rows if row["api"] not in COMMITS)
    told = [f"{who} were refused {plural(others, 'time')}"] if others else []
    if commits:
        places = {place for row in commits for place in row["places"]}
        answers = [row["answers"] for row in commits]
        number = None if None in answers else sum(answers)
        what = "Commits" if number is None else plural(number, "commit")
        of = f"{what} of {plural(len(places), 'partition')}"
        told.append(f"{of if not told else of.lower()} {'was' if number == 1 else 'were'} refused")
    return " and ".join(told)


OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


def _unmade(facts: Facts, topic: str) -> Row | None:
    """The error of the controller that keeps brokers from creating a topic."""
    refused = (
        row
        for row in facts.rows(Errors)
        if (row["api"], row["topic"]) == ("CreateTopics", topic) and row["error"] in NOT_MADE
    )
    return next(refused, None)


_NEVER = {
    "cause": "Coordinators lead the partitions of __consumer_offsets and __transaction_state. The partition "
    "of this id has no leader, or the topic could not be made. A cluster makes it at first use with three "
    "copies by default, and cannot if it has fewer brokers.",
    "fix": "Look at that topic: kafka-topics.sh --describe. If it is not there, set its replication factor "
    "to the number of brokers or less, and read the log of the brokers. If a partition has no leader, bring "
    "its brokers back.",
    "configs": ("offsets.topic.replication.factor", "transaction.state.log.replication.factor"),
}


def _served(facts: Facts) -> dict[str, int]:
    """When a coordinator is first known to have accepted a member, by group."""
    found: dict[str, int] = {}
    for row in facts.rows(Rebalances):
        if row["joined_ns"] is not None:
            found[row["group"]] = min(found.get(row["group"], row["joined_ns"]), row["joined_ns"])
    for row in facts.rows(Members):
        if row["member_id"] and row["first_generation"] is not None and row["first_ns"] is not None:
            # A member of a newer group sends its own id before it is accepted.
            accepted_ns = row["first_ns"] + SECOND
            found[row["group"]] = min(found.get(row["group"], accepted_ns), accepted_ns)
    return found


@rule("member-epoch-fenced", WARNING, CERTAIN, needs=(Errors, Members))
def member_epoch_fenced(facts: Facts) -> Iterator[Finding]:
    """A member of a newer group was removed from it."""
    found = _refusals(facts, ("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"), GROUP_HEARTBEATS)
    known = _were_members(facts)
    for (group, client_id), rows in found.items():
        if (group, client_id) not in known:
            continue
        count = sum(row["count"] for row in rows)
        times = f"{count:,} times " if count > 1 else ""
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id),
            f"{client_id} was told {times}that it is no longer a member, gave up all its partitions and had "
            "to join again.",
            measure=float(count),
            unit="times",
            filter=group_filter(group),
            **_common_fields(rows),
        )


REFUSED = {
    "GROUP_MAX_SIZE_REACHED": "the group has as many members as it may have",
    "INVALID_SESSION_TIMEOUT": "the broker does not allow its session timeout{asked}",
    "INVALID_GROUP_ID": "the group id is empty or not valid",
    "UNSUPPORTED_ASSIGNOR": "the broker does not know the assignor that it asks for",
    "GROUP_ID_NOT_FOUND": "the broker has no such group",
    "INVALID_REGULAR_EXPRESSION": "the regular expression of its subscription is not valid",
    "STREAMS_INVALID_TOPOLOGY": "its topology is not valid",
    "INVALID_REQUEST": "the coordinator does not accept what it tells of itself",
}
"""Why a member may not join, by error."""
NOT_ACCEPTED = {("StreamsGroupHeartbeat", "INVALID_REQUEST")}
"""The error that a Streams application gets if its topology is not that of its group. Brokers of 4.3 cannot
change the topology of a group (KIP-1071)."""
_TOPOLOGY_WHY = (
    "A streams group keeps the topology with which it was made, and brokers of 4.3 cannot change it. An "
    "application with another topology is refused, also if no member is left. Another value that does not "
    "fit the group is refused with the same error. The logs of the broker and of the client name the reason."
)
_TOPOLOGY_DO = (
    "Start the application with the topology of the group, or with a new application.id. Or stop it, and "
    "delete the group (kafka-streams-groups.sh --delete), which also deletes its committed offsets."
)
_THREAD = re.compile(r"(.*-StreamThread-\d+)-consumer")
"""The name of the consumer of a thread of Kafka Streams."""


@rule("group-refused", WARNING, CERTAIN, needs=(Errors, Members), times=3)
def group_refused(facts: Facts) -> Iterator[Finding]:
    """A member may not join. Some clients try again and again, others give up after the first refusal."""
    members = dict(by_group(facts.rows(Members)))
    for (group, client_id), rows in _refusals(facts, tuple(REFUSED), JOINS).items():
        count = sum(row["count"] for row in rows)
        own = [row for row in members.get(group, []) if row["client_id"] == client_id]
        if count < facts.limit("times") and not _gave_up(rows, own):
            continue
        timeouts = sorted({row["session_timeout_ms"] for row in own if row["session_timeout_ms"]})
        asked = f" of {some(seconds(each * MILLISECOND) for each in timeouts)}" if timeouts else ""
        errors = sorted({row["error"] for row in rows})
        why = some(f"{REFUSED[each].format(asked=asked)} ({each})" for each in errors)
        is_topology = {(row["api"], row["error"]) for row in rows} <= NOT_ACCEPTED
        told = {"cause": _TOPOLOGY_WHY, "fix": _TOPOLOGY_DO} if is_topology else {}
        thread = _THREAD.fullmatch(client_id or "")
        times = "and was refused" if count == 1 else f"{plural(count, 'time')} and was refused each time"
        yield facts.finding(
            FindingSubject(group=group, client_id=client_id),
            f"{client_id} asked to join {times}: {why}.",
            **told,
            client_ids=(client_id, f"{thread[1]}-producer") if client_id and thread is not None else (),
            measure=float(count),
            unit="refusals",
            threshold=facts.limit("times"),
            filter=group_filter(group),
            **_common_fields(rows),
        )


def _gave_up(refusals: list[Row], members: list[Row]) -> bool:
    """Whether a client that subscribes to topics was never a member, and sent nothing more to the group after
    the refusal. If the group is full, it may have been a member before, and may send a leave."""
    last_ns = max(row["last_ns"] for row in refusals)
    if all(row["error"] == "GROUP_MAX_SIZE_REACHED" for row in refusals):
        return bool(members) and all(row["last_ns"] <= last_ns or row["left"] for row in members)
    return (
        bool(members)
        and any(row["subscribed"] for row in members)
        and all(row["first_generation"] is None for row in members)
        and max(row["last_ns"] for row in members) <= last_ns
    )


explains("static-member-conflict", "commit-after-rebalance", "rebalance-storm", shares=("group",))
explains("member-epoch-fenced", "commit-after-rebalance", shares=("group", "client_id"))
explains("assignor-mismatch", "group-refused", shares=("group", "client_id"))
explains(
    "group-refused",
    *("connection-churn", "metadata-storm", "unknown-topic-loop", "member-id-churn"),
    shares=("client_id",),
    at_once=True,
)
explains("broker-gone", "coordinator-moved", within_s=60)
explains("broker-stalled", "coordinator-moved", within_s=60)
