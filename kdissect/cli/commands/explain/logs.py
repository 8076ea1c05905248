"""``explain`` for log directories: findings on the files of one broker."""

from __future__ import annotations

import os
from typing import Any

from kdissect.capture.files import counts, each_folder_in, in_folders
from kdissect.cli.commands.explain.selection import FindingChoice
from kdissect.cli.config import load_config
from kdissect.cli.errors import Complaints, Unreadable, Wrong, complain
from kdissect.cli.exit_codes import DONE, NOTHING_MATCHED, UNREADABLE
from kdissect.cli.formats import check_writable, writer_of
from kdissect.cli.output import TextOutput, inputs_of, open_output
from kdissect.insight.judge import judge_logs
from kdissect.insight.logs import Logs
from kdissect.logdir.checks import is_damage
from kdissect.logdir.events import FileFault
from kdissect.logdir.files import NO_LOGS, read_logs
from kdissect.model import CaptureError
from kdissect.present.findings import FINDINGS
from kdissect.present.findings_text import finding_lines, judged_text
from kdissect.present.form import plural
from kdissect.present.options import Options

_OF_CAPTURES = (
    *("exchange", "group", "topic", "client", "transactional_id", "offset"),
    *("filter", "since", "until", "state"),
)
"""Options about exchanges."""
_FLAGS_OF_CAPTURES = {
    **{"slow": "--slow", "deep": "--deep", "not_judged": "--not-judged"},
    **{"payload_rules": "--decode-as", "schemas": "--schemas", "registry": "--registry"},
}
"""Flags and lists for captures only."""


def _no_captures(folder: str) -> str:
    """The reason for refusing a folder without logs and captures."""
    try:
        in_folders((folder,))
    except CaptureError as error:
        return str(error)  # it has no files, and other commands have the same message
    with os.scandir(folder) as entries:
        has_folders = any(entry.is_dir() for entry in entries if counts(entry.name))
    instead = f"; kdissect searches the folders in it for logs only; give {each_folder_in(folder)}"
    return f"{folder}: {NO_LOGS}, and no capture{instead if has_folders else ''}"


def explain_logs(paths: tuple[str, ...], given: dict[str, Any]) -> int:
    """Print the findings on log directories.

    :raises Unreadable: no file of a log directory can be read.
    """
    for name in _OF_CAPTURES:
        if given[name] is not None:
            option = "-Y" if name == "filter" else f"--{name.replace('_', '-')}"
            raise Wrong(f"{option}: log directories have no exchanges; give a capture")
    for name, option in _FLAGS_OF_CAPTURES.items():
        if given[name]:
            raise Wrong(f"{option}: this is for captures; kdissect help explain says what logs can tell")
    config = load_config()
    wanted = FindingChoice(given)
    check_writable(given["form"], given["output"])
    logs, complaints = Logs(config.limits), Complaints()
    is_damaged = False
    try:
        for event in read_logs(paths, config.limits):
            logs.take(event)
            if isinstance(event, FileFault) and is_damage(event.fault):
                is_damaged = True
                complaints.report_fault(event.file.path, event.fault)
    except CaptureError as error:
        if not logs.files:
            words = str(error)
            if len(paths) == 1 and words == f"{paths[0]}: {NO_LOGS}":
                words = _no_captures(paths[0])
            raise Unreadable(words) from None
        is_damaged = True
        complain(str(error))
    complaints.close()
    judged = judge_logs(logs, config.thresholds, config.ignored)
    for line in wanted.lines_without_findings(judged.findings):
        complain(line)
    found = wanted.select(judged.findings)
    with open_output(given["output"], inputs_of(given)) as file:
        if given["form"] == "text":
            output = TextOutput(file, given["output"])
            output.lines(finding_lines(found, None, paths))
            if not given["quiet"]:
                rows = logs.result()
                seen = f"{plural(logs.files, 'file')}, {plural(len(rows), 'partition')}, " + plural(
                    sum(row["records"] for row in rows), "record"
                )
                if found:
                    output.line("")
                output.line(
                    f"read: {seen}" if found else f"nothing found: {judged.rules} rules looked at {seen}"
                )
                output.line(judged_text(judged))
        else:
            writer = writer_of(given["form"], FINDINGS, file, Options(limits=config.limits))
            for each in found:
                writer.write(each)
            writer.close()
            if not given["quiet"]:
                complain(judged_text(judged))
    if is_damaged:
        return UNREADABLE
    return NOTHING_MATCHED if wanted.fail(found) else DONE
