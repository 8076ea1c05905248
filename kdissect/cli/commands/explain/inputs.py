"""The input of ``explain``: captures or log directories, and the request for a story."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from kdissect.capture.files import has_captures
from kdissect.cli.errors import Wrong
from kdissect.logdir import names

STORIES = {
    "group": "--group",
    "topic": "--topic",
    "client": "--client",
    "transactional_id": "--transactional-id",
    "offset": "--offset",
}
"""Options that ask for the story of one subject, by the name of their value."""

_OF_FINDINGS = {
    **{"severity": "--severity", "category": "--category", "ids": "--id", "subject": "--subject"},
    **{"filter": "-Y", "slow": "--slow", "since": "--since", "until": "--until", "state": "--state"},
    **{"deep": "--deep", "payload_rules": "--decode-as", "schemas": "--schemas", "registry": "--registry"},
    **{"not_judged": "--not-judged", "fail_on": "--fail-on"},
}
"""Options that choose findings or change how they are judged, by the name of their value."""


def refuse_choice(given: dict[str, Any], asked: str) -> None:
    """Refuse options that would do nothing: a script that gives ``--fail-on`` relies on it.

    :param asked: the option that makes the others do nothing.
    :raises Wrong: such an option is given.
    """
    for name, option in _OF_FINDINGS.items():
        if given[name]:
            raise Wrong(f"{option}: it chooses findings, and {asked} asks for something else; leave out one")


def is_of_logs(paths: Iterable[str]) -> bool:
    """Whether these are log directories, or files in them. A folder that cannot be listed may be one or not.

    :raises Wrong: some are and some are not.
    """
    found = {path: _is_of_logs(path) for path in paths}
    if {True, False} <= set(found.values()):
        one = next(path for path, is_log in found.items() if is_log)
        raise Wrong(f"{one} is a log directory, and other inputs are captures: give only one kind")
    return False not in found.values()


def _is_of_logs(path: str) -> bool | None:
    if os.path.isdir(path):
        try:
            os.scandir(path).close()
        except OSError:
            return None
        return not has_captures(path)
    return os.path.isfile(path) and names.file(os.path.basename(path), named_by_user=True) is not None


def asked_stories(given: dict[str, Any]) -> list[str]:
    """The requested kinds of stories.

    :raises Wrong: there is more than one.
    """
    asked = [name for name in STORIES if given[name] is not None]
    if len(asked) > 1:
        raise Wrong(
            f"{' and '.join(STORIES[name] for name in asked)} are separate stories: give only one of them"
        )
    return asked
