"""Rules on requests of administrators and brokers that the cluster refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import Row
from kdissect.insight.errors import causes
from kdissect.insight.finding import CERTAIN, NOTICE, Finding, FindingSubject
from kdissect.insight.grouping import group_rows
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import having, named
from kdissect.protocol.errors import FATAL, errors
from kdissect.wording import plural

ASKED = {
    "CreateTopics": "make topics",
    "DeleteTopics": "delete topics",
    "CreatePartitions": "add partitions",
    "DeleteRecords": "delete records",
    "AlterConfigs": "change settings",
    "IncrementalAlterConfigs": "change settings",
    "AlterClientQuotas": "change quotas",
    "CreateAcls": "add ACLs",
    "DeleteAcls": "delete ACLs",
    "AlterUserScramCredentials": "change passwords of users",
    "AlterPartitionReassignments": "move partitions",
    "ElectLeaders": "elect leaders",
    "DeleteGroups": "delete groups",
    "OffsetDelete": "delete offsets of groups",
    "UpdateFeatures": "change features of the cluster",
    "AlterReplicaLogDirs": "move replicas to other disks",
    "AddRaftVoter": "add a controller",
    "RemoveRaftVoter": "remove a controller",
    "UnregisterBroker": "remove a broker",
}
"""The words for what a request asks, by its API."""
NOTHING_TO_DO = frozenset(
    (
        *("TOPIC_ALREADY_EXISTS", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "GROUP_ID_NOT_FOUND"),
        *("ELECTION_NOT_NEEDED", "NO_REASSIGNMENT_IN_PROGRESS", "RESOURCE_NOT_FOUND"),
        *("OPERATION_NOT_ATTEMPTED", "DUPLICATE_RESOURCE"),
    )
)
"""Errors without trouble: the change is made already, or another part of the request is to blame."""


@rule("admin-refused", NOTICE, CERTAIN, needs=(Errors,))
def admin_refused(facts: Facts) -> Iterator[Finding]:
    """The cluster refuses a change that somebody asks for. Other rules report missing permissions and unknown
    versions."""
    refused = [row for row in facts.rows(Errors) if row["api"] in ASKED and _is_refused(row)]
    for (client_id, client), rows in group_rows(refused, "client_id", "client").items():
        count = sum(row["count"] for row in rows)
        topics = {row["topic"] for row in rows}
        kinds = group_rows(rows, "api", "error")
        told = [_kind(api, error, some) for (api, error), some in list(kinds.items())[:MOST_KINDS]]
        more = f"; {len(kinds) - len(told)} more" if len(kinds) > len(told) else ""
        known = [
            causes()[error] for error in dict.fromkeys(row["error"] for row in rows) if error in causes()
        ]
        who = client_id or client
        if who.isdigit():
            who = f"Client {who} (brokers name themselves by the number of their node)"
        yield facts.finding(
            FindingSubject(
                client_id=client_id, client=client, topic=topics.pop() if len(topics) == 1 else None
            ),
            f"{who} was refused {plural(count, 'change')}: {'; '.join(told)}{more}.",
            count=count,
            measure=count,
            unit="answers",
            threshold=1,
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            exchanges=[number for row in rows for number in (row["first_exchange"], row["last_exchange"])],
            filter=_asks(client_id, {api for api, _ in kinds}),
            **({"cause": _sentences(f"{'; '.join(each.causes)}" for each in known)} if known else {}),
            **({"fix": _sentences(each.do for each in known if each.do)} if known else {}),
        )


def _asks(client_id: str | None, apis: set[str]) -> str:
    """The filter for these requests of a client."""
    these = f"api in {{{', '.join(sorted(apis))}}}"
    return f"{having(client_id=client_id)} and {these}" if client_id else these


MOST_KINDS = 3
"""The most kinds of refusals that a finding names."""


def _kind(api: str, error: str, rows: list[Row]) -> str:
    """What a refused request asked for, and why it was refused."""
    topics = sorted({row["topic"] for row in rows if row["topic"]})
    what = f" ({named(topics)})" if topics else ""
    return f"to {ASKED[api]}{what}, as {_meaning(error)} ({error})"


def _is_refused(row: Row) -> bool:
    error = row["error"]
    return (
        row["error_class"] == FATAL
        and error not in NOTHING_TO_DO
        and error != "UNSUPPORTED_VERSION"
        and not error.endswith("AUTHORIZATION_FAILED")
    )


def _meaning(error: str) -> str:
    """The meaning of an error, as a part of a sentence."""
    text = next((each.meaning for each in errors().values() if each.name == error), "") or error
    text = text.rstrip(".")
    return text if text[1].isupper() else text[0].lower() + text[1:]


def _sentences(texts: Iterable[str]) -> str:
    return " ".join(f"{text[0].upper()}{text[1:].rstrip('.')}." for text in texts)
