"""A finding: one cause of trouble, its subject, the measured value, and the exchanges that show it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

CRITICAL, WARNING, NOTICE, INFO = SEVERITIES = ("critical", "warning", "notice", "info")
"""Worst first."""
CERTAIN, LIKELY, POSSIBLE = CONFIDENCES = ("certain", "likely", "possible")
"""How sure a finding is: the protocol says so; by far the best explanation; one explanation of several."""
MOST_EVIDENCE = 8
"""The most exchanges, packets and connections that a finding names."""


def key_of(id: str, subject: FindingSubject) -> str:
    """The key of a finding of a rule on a subject."""
    named = subject._asdict()
    parts = [f"{name}={value}" for name, value in named.items() if value is not None and name != "software"]
    return " ".join((id, *parts))


class FindingSubject(NamedTuple):
    """The subject of a finding. Fields that do not apply hold None."""

    client: str | None = None
    """The client's address; with the port only if the finding is about one connection."""
    client_id: str | None = None
    software: str | None = None
    principal: str | None = None
    broker: str | None = None
    """The node id if known, otherwise ``address:port``."""
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    member_id: str | None = None
    transactional_id: str | None = None
    cluster_id: str | None = None
    """The id of the cluster, if several clusters have such a group, topic or transactional id."""

    def text(self, address: str | None = None) -> str:
        """The subject in a line: ``group orders``, ``client billing@10.0.0.7``, ``broker 2 (10.0.0.2:9092)``.

        :param address: the address of the broker, if ``broker`` is its node id.
        """
        parts = []
        if self.group is not None:
            parts.append(f"group {self.group}")
        if self.transactional_id is not None:
            parts.append(f"transactional id {self.transactional_id}")
        if self.topic is not None:
            parts.append(f"topic {self.topic}")
            if self.partition is not None:
                parts.append(f"partition {self.partition}")
        if self.client_id is not None or self.client is not None:
            parts.append("client " + "@".join(each for each in (self.client_id, self.client) if each))
        elif self.member_id is not None:
            parts.append(f"member {self.member_id}")
        if self.principal is not None:
            parts.append(f"principal {self.principal}")
        if self.broker is not None:
            parts.append(
                f"broker {self.broker}" + (f" ({address})" if address not in (None, self.broker) else "")
            )
        if self.cluster_id is not None:
            parts.append(f"cluster {self.cluster_id}")
        return ", ".join(parts) or "the capture"


class EvidenceStep(NamedTuple):
    """Something that happened, as a line of evidence."""

    ns: int
    """When it happened, in ns since the epoch."""
    text: str
    exchange: int | None = None
    """The number of the exchange that shows it."""


_TIMES = ("s", "ms")
"""Units of durations."""
_RATES = ("/s", "/min", " in 60 s")
"""The endings of units of rates."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a subject."""

    id: str
    severity: str
    confidence: str
    category: str
    subject: FindingSubject
    message: str
    """What was seen, with numbers, in words that need no knowledge of the protocol."""
    subject_text: str = ""
    """The subject in one line; if empty, it is made from ``subject``."""
    count: int = 1
    """How often it was seen."""
    measure: float | None = None
    unit: str = ""
    threshold: float | None = None
    cost_ns: int | None = None
    """Time lost because of it."""
    first_ns: int | None = None
    last_ns: int | None = None
    resolved_ns: int | None = None
    """When it was over; None while it goes on."""
    exchanges: tuple[int, ...] = ()
    packets: tuple[int, ...] = ()
    connections: tuple[int, ...] = ()
    steps: tuple[EvidenceStep, ...] = ()
    """The events, in words and in order of time."""
    cause: str = ""
    fix: str = ""
    configs: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    client_ids: tuple[str, ...] = ()
    """The client ids of all clients that the finding is about, if the subject does not name each."""
    because: str | None = None
    """The key of the finding that explains this one."""
    filter: str = ""
    """The display filter that shows the evidence."""

    @property
    def key(self) -> str:
        """Identity of the finding while a capture goes on: the rule and the subject."""
        return key_of(self.id, self.subject)

    @property
    def where(self) -> str:
        """The subject in a line."""
        return self.subject_text or self.subject.text()

    @property
    def lasts(self) -> bool:
        """Whether it measures how long something took."""
        return self.unit in _TIMES

    @property
    def is_timed(self) -> bool:
        """Whether it rests on how long something took, or on how often something happened in a span of
        time."""
        return self.unit in _TIMES or self.cost_ns is not None or self.unit.endswith(_RATES)

    @property
    def shown_by(self) -> str | None:
        """The display filter that shows its exchanges; None if it names no exchange."""
        if self.filter:
            return self.filter
        for name, numbers in (("number", self.exchanges), ("connection", self.connections)):
            if numbers:
                return f"{name} in {{{', '.join(map(str, numbers))}}}"
        return None

    def changed(self, **values: Any) -> Finding:
        """A copy with other values."""
        return replace(self, **values)
