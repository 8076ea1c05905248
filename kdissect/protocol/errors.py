"""Kafka's error codes: their names, their meanings, and their classes.

All of this is in one table: ``errors.txt`` beside this module, which explains its form. It is read when the
first error is needed. Whether an error is routine depends on earlier messages of its connection.
:mod:`kdissect.session.expected` decides that, by the bounds of the table.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from kdissect.protocol.packaged import packaged

FATAL, RETRIABLE, ROUTINE = "fatal", "retriable", "routine"
CLASSES = (FATAL, RETRIABLE, ROUTINE)
"""The classes of errors, the gravest first."""
NOT_MADE = ("INVALID_REPLICATION_FACTOR", "POLICY_VIOLATION")
"""The errors with which a controller refuses to create a topic, however often it is asked."""
SIGNS = {FATAL: "✗", RETRIABLE: "↻", ROUTINE: "·"}
"""The sign of each class, if there is only room for one character."""

_UNITS = {"ms": 1_000_000, "s": 1_000_000_000}


class Bound(NamedTuple):
    """The bound within which an error is routine; ``errors.txt`` explains each part."""

    apis: frozenset[str]
    """The APIs; empty for all."""
    within_ns: int | None = None
    times: int | None = None
    until: str | None = None
    """The name of an API."""
    first: bool = False
    served: bool = False
    without: str | None = None
    """The name of a field of the request."""
    own_topics: bool = False

    @property
    def is_shown_alone(self) -> bool:
        """Whether the exchange itself shows that it is routine, without earlier ones."""
        return self.without is not None or self.own_topics

    def words(self) -> str:
        """The bound in words."""
        out = [f"in {', '.join(sorted(self.apis))}"] if self.apis else []
        if self.first:
            out.append("for the first such request of a connection")
        if self.without is not None:
            out.append(f"for a request without {self.without}")
        if self.own_topics:
            out.append("for Kafka's own topics")
        if self.served:
            out.append("if the API was answered without an error before")
        if self.within_ns is not None:
            seconds = self.within_ns / _UNITS["s"]
            out.append(f"for {seconds:g} s after the first such error")
        if self.times is not None:
            out.append("at most once in a row" if self.times == 1 else f"at most {self.times} times in a row")
        return ", ".join(out)


class KafkaError(NamedTuple):
    """A line of the table."""

    code: int
    name: str
    is_retriable: bool
    """Whether Kafka's exception for it is a RetriableException."""
    error_class: str
    """:data:`FATAL` or :data:`RETRIABLE`: the class if it is not routine. Empty for code 0."""
    bound: Bound | None
    """None for an error that is never routine."""
    meaning: str


@cache
def errors() -> Mapping[int, KafkaError]:
    """The table by code, in the order of the codes."""
    text = packaged("errors.txt").read_text("utf-8")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {each.code: each for each in map(_error, lines)}


@cache
def error_names() -> Mapping[int, str]:
    """The names by code, including NONE."""
    return {code: each.name for code, each in errors().items()}


@lru_cache(maxsize=1_024)
def error_name(code: int) -> str:
    """The name of a code, such as ``NOT_LEADER_OR_FOLLOWER``; ``UNKNOWN(n)`` for a code that Kafka 4.4.0 does
    not have."""
    return error_names().get(code) or f"UNKNOWN({code})"


def error_class(code: int) -> str:
    """The class of an error that is not routine. An unknown code is fatal, as for Kafka's clients
    (``Errors.forCode``)."""
    known = errors().get(code)
    return FATAL if known is None else known.error_class


def class_in(code: int, routine: Container[int]) -> str:
    """The class of an error in a response.

    :param routine: the codes that are routine there.
    """
    return ROUTINE if code in routine else error_class(code)


def gravest(classes: Iterable[str]) -> str | None:
    """The gravest of these classes, by the order of :data:`CLASSES`; None without any of them."""
    found = set(classes)
    return next((each for each in CLASSES if each in found), None)


def graded(name: str, first: str, grave: str) -> str:
    """An error for people, with the word for its class: ``NOT_LEADER_OR_FOLLOWER (routine)``.

    :param first: its class.
    :param grave: the gravest class of all errors of its response.
    """
    return f"{name} ({first})" if first == grave else f"{name} ({first}, and {grave} ones)"


def _error(line: str) -> KafkaError:
    code, name, retriable, grave, bound, meaning = (part.strip() for part in line.split(" | "))
    return KafkaError(
        int(code),
        name,
        retriable == "yes",
        "" if grave == "none" else grave,
        None if bound == "-" else _bound(bound),
        meaning,
    )


def _bound(text: str) -> Bound:
    apis, *conditions = (part.strip() for part in text.split(","))
    bound = Bound(frozenset() if apis == "any" else frozenset(apis.split()))
    for condition in conditions:
        word, _, value = condition.partition(" ")
        if found := re.fullmatch(r"(\d+)(ms|s)", condition):
            bound = bound._replace(within_ns=int(found[1]) * _UNITS[found[2]])
        elif condition == "once" or value == "times":
            bound = bound._replace(times=1 if condition == "once" else int(word))
        elif word == "until":
            bound = bound._replace(until=value)
        elif word == "without":
            bound = bound._replace(without=value)
        elif condition == "first":
            bound = bound._replace(first=True)
        elif condition == "served":
            bound = bound._replace(served=True)
        elif condition == "own topics":
            bound = bound._replace(own_topics=True)
        else:
            raise ValueError(f"errors.txt: {text}: {condition} is not a condition")
    return bound
