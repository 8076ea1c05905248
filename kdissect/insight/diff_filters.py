"""Something measured in a capture → the display filter that shows the exchanges behind it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from kdissect.analysis.profile_rows import API, BROKER, CLIENT, GROUP_AREA, TOPIC_AREA
from kdissect.insight.words import quoted

_FIELDS = {CLIENT: "client_id", GROUP_AREA: "group", TOPIC_AREA: "topic"}
_TIME_OF = re.compile(r"broker time of (.*) p\d+")
_VERSION = re.compile(r"(.*) v(\d+)")
_ERROR = re.compile(r"(?:fatal )?error (.*)")
_WRITTEN = ("records written", "bytes written", "batch size", "records per batch", "codecs")
_READ = ("records read", "bytes read")


def filter_of(area: str, subject: str, what: str, addresses: Collection[str] = ()) -> str:
    """The filter.

    :param what: the measure, as :class:`~kdissect.analysis.profile.Profile` names it.
    :param addresses: the addresses of a broker.
    """
    return " and ".join((_of_subject(area, subject, addresses), *_of_measure(area, what)))


def _of_subject(area: str, subject: str, addresses: Collection[str]) -> str:
    if area == API:
        return "not api" if subject == "unknown" else f"api == {quoted(subject)}"
    if area == BROKER:
        return f"broker in {{{', '.join(map(quoted, sorted(addresses)))}}}"
    if area == CLIENT and subject == "(no client id)":
        return "not client_id"
    name = _FIELDS[area]
    if area == TOPIC_AREA or "*" not in subject:
        return f"{name} == {quoted(subject)}"
    pattern = ".+".join(map(re.escape, subject.split("*")))
    return f"{name} matches {quoted(f'^{pattern}$')}"


def _of_measure(area: str, what: str) -> Iterator[str]:
    time_of, version, error = (form.fullmatch(what) for form in (_TIME_OF, _VERSION, _ERROR))
    if time_of:
        yield f"api == {quoted(time_of[1])}"
    elif error:
        yield f"errors == {quoted(error[1])}"
    elif what == "errors":
        yield "error_class in {fatal, retriable}"
    elif area == CLIENT and version:
        yield f"api == {quoted(version[1])} and api_version == {version[2]}"
    elif area == TOPIC_AREA and what in _WRITTEN:
        yield "api == Produce"
    elif area == TOPIC_AREA and what in _READ:
        yield "api in {Fetch, ShareFetch}"
    elif area == TOPIC_AREA and what.startswith("codec "):
        yield f"api == Produce and record.codec == {what.removeprefix('codec ')}"
