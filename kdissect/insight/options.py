"""The names of settings in fixes, as the client library of a finding calls them.

A library says who it is in ApiVersions (KIP-511). Some do not. They are known by the client id that they use
if the application sets none, or by an assignor that only they have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from kdissect.analysis.fold import Row
from kdissect.insight.finding import Finding
from kdissect.insight.libraries import (
    LIBRARIES,
    ClientLibrary,
    library_by_assignors,
    library_by_client_id,
)

_SETTING = re.compile(r"(?<![\w.])[a-z]+(?:\.[a-z]+)+(?![\w.]*\w)|\backs(?==)")


@dataclass
class OwnNames:
    """The libraries of clients, and so what their settings are called."""

    _of_client: dict[str, set[str | None]] = field(default_factory=dict)
    _of_group: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, clients: Iterable[Row], members: Iterable[Row]) -> OwnNames:
        """Made from rows of :class:`~kdissect.analysis.clients.Clients` and
        :class:`~kdissect.analysis.groups.Members`."""
        found = cls()
        for row in clients:
            software = row["software"] or library_by_client_id(row["client_id"])
            found._of_client.setdefault(row["client_id"], set()).add(software)
        for row in members:
            if row["member_id"] and row["client_id"]:
                found._of_group.setdefault(row["group"], set()).add(row["client_id"])
                library = library_by_assignors(row["offers"])
                if library is not None and found._of_client.get(row["client_id"], {None}) == {None}:
                    found._of_client[row["client_id"]] = {library}
        return found

    def said(self, finding: Finding) -> Finding:
        """The finding, whose fix ends with the client library's own names of settings in it. The fix stays if
        the clients do not all have one library with names of its own."""
        subject = finding.subject
        ids = {subject.client_id} if subject.client_id else set(finding.client_ids)
        if not ids and subject.group is not None:
            ids = set(self._of_group.get(subject.group, ()))
        software = {each for id in ids for each in self._of_client.get(id, {None})}
        library = LIBRARIES.get(next(iter(software)) or "") if len(software) == 1 else None
        words = _words(library, finding.fix) if library is not None else ""
        return finding.changed(fix=f"{finding.fix} {words}") if words else finding


def _words(library: ClientLibrary, fix: str) -> str:
    """The sentences about the settings that a fix names."""
    named = dict.fromkeys(each for each in _SETTING.findall(fix) if each in library.settings)
    own = [(each, library.settings[each]) for each in named if library.settings[each] not in fix]
    known = [f"{each} is {name}" for each, name in own if name]
    lacking = [each for each in named if not library.settings[each]]
    words = [f"In {library.name}, {_listed(known)}."] if known else []
    if lacking:
        words.append(f"{library.name} has no {_listed(lacking, 'or')}.")
    return " ".join(words)


def _listed(words: list[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
