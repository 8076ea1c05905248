"""A file for ``report`` or ``diff`` → a report. The file is a capture, a state, or an earlier report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kdissect.cli.config import load_config
from kdissect.cli.errors import Unreadable, Wrong
from kdissect.cli.exit_codes import DONE
from kdissect.cli.folding import Folding
from kdissect.cli.inputs import listed
from kdissect.cli.output import shown
from kdissect.cli.states import is_state, load
from kdissect.insight.judge import CaptureReport, Judge
from kdissect.insight.report_data import whole_judge
from kdissect.present.html.embedded import NoReportError, is_report, report_of

_LONGEST = 64 << 20
"""The most bytes of a report that are read; kdissect writes no more than 2 MB."""
_ONLY_CAPTURES = {
    "filter": "-Y",
    "slow": "--slow",
    "decode_as": "-d",
    "key_logs": "--keylog",
    "rsa_keys": "--rsa-key",
}


class ComparedFile(NamedTuple):
    """A file that is compared: its report, and how reading it ended."""

    report: CaptureReport
    code: int
    """The exit code of reading it."""


def side_of(path: str, given: dict[str, Any]) -> ComparedFile:
    """Read a file.

    :raises Unreadable: it is something else, or damaged.
    """
    kept = kept_report(path, given)
    if kept is not None:
        return ComparedFile(kept, DONE)
    return capture_side((path,), given)


def kept_report(path: str, given: Mapping[str, Any]) -> CaptureReport | None:
    """The report of a state or of an earlier report; None if the file is neither.

    :raises Unreadable: it is damaged, or of another version.
    :raises Wrong: an option needs packets.
    """
    if path == "-":
        return None
    try:
        with open(path, "rb") as file:
            start = file.read(1_024)
            if is_report(start):
                refuse_options(path, given)
                return report_of((start + file.read(_LONGEST)).decode("utf-8", "replace"))
    except NoReportError as error:
        raise Unreadable(f"{shown(path)}: {error}") from None
    except OSError:
        return None  # reading it as a capture reports the error
    if not is_state(start):
        return None
    refuse_options(path, given)
    config = load_config()
    judge = load(path)
    assert judge is not None
    return judge.report(config.thresholds, config.ignored)


def refuse_options(path: str, given: Mapping[str, Any]) -> None:
    """:raises Wrong: an option needs packets."""
    for name, option in _ONLY_CAPTURES.items():
        if given.get(name):
            raise Wrong(f"{option}: {shown(path)} is not a capture and has no packets")


def capture_side(paths: Sequence[str], given: dict[str, Any]) -> ComparedFile:
    """Read captures, which count as one."""
    folding: Folding[Judge] = Folding(given, listed(paths), whole_judge)
    reading = folding.count()
    report = folding.counted.report(folding.config.thresholds, folding.config.ignored)
    name = ", ".join(map(shown, paths))
    return ComparedFile(report, reading.exit_code(False, False, True, name))
