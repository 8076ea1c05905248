"""One run of ``explain`` over captures: reads them once, runs the rules, prints findings."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Any, BinaryIO

from kdissect.cli.commands.explain.state import load, save
from kdissect.cli.commands.explain.wanted import Wanted, is_so_grave, severity_of
from kdissect.cli.config import load_config
from kdissect.cli.counting import Counts, count
from kdissect.cli.errors import Unreadable, complain
from kdissect.cli.exit_codes import DONE, NOTHING_MATCHED
from kdissect.cli.filters import Chooser, Within
from kdissect.cli.formats import see_that_it_can_be_written, writer_of
from kdissect.cli.inputs import read_twice
from kdissect.cli.jobs import jobs_of
from kdissect.cli.listing import ports_of
from kdissect.cli.moments import moment_of
from kdissect.cli.output import TextOutput, inputs_of, open_output
from kdissect.cli.reading import Reading
from kdissect.cli.tls_keys import keys_of
from kdissect.insight.judge import Judge, Judged
from kdissect.present.columns import Table
from kdissect.present.findings import FINDINGS, NOT_JUDGED
from kdissect.present.findings_text import closing_lines, finding_lines, judged_text, not_judged_lines
from kdissect.present.options import Options

MOST_SHOWN = 20
"""Findings, without ``--all``; what is said of the capture itself is not counted."""


class Judging:
    """One run."""

    def __init__(self, paths: tuple[str, ...], given: dict[str, Any]) -> None:
        self._paths = paths
        self._given = given
        self._config = load_config()
        self._options = Options(limits=self._config.limits, shown_fields=self._config.shown_fields)
        self._ports = self._config.ports | ports_of(given["decode_as"])
        self._form: str = given["form"]
        self._wanted = Wanted(given)
        self._fails_on = None if given["fail_on"] is None else severity_of(given["fail_on"], "--fail-on")
        see_that_it_can_be_written(self._form, given["output"])
        self._reading_now: Reading | None = None
        self._chooser = self._chooser_of(given)
        if self._chooser is not None:
            self._chooser.refuse_to_judge(paths)
        self._jobs = jobs_of(given, paths, is_dear=True)
        self._state = None if given["state"] is None else load(given["state"])

    def _chooser_of(self, given: dict[str, Any]) -> Chooser | None:
        """What chooses the exchanges that are judged."""
        since, until = (
            None if given[name] is None else moment_of(given[name], f"--{name}")
            for name in ("since", "until")
        )
        texts = [*((given["filter"],) if given["filter"] is not None else ()), *(("slow",) * given["slow"])]
        if since is None and until is None:
            within = None
        else:
            within = Within(since, until, self._first_ns)
        if not texts and within is None:
            return None
        return Chooser(texts, "exchanges", self._options, self._config.slow_ms, within)

    def _first_ns(self) -> int | None:
        return None if self._reading_now is None else self._reading_now.first_ns

    def run(self) -> int:
        """Read, judge, print; gives the exit code."""
        given = self._given
        talks = sys.stderr.isatty() and not given["quiet"]
        must_learn = self._chooser is not None and self._chooser.must_learn
        with (
            read_twice(self._paths, must_learn) as paths,
            closing(self._reading(paths, talks)) as reading,
        ):
            self._reading_now = reading
            reading.open()
            with open_output(given["output"], inputs_of(given)) as file:
                if self._chooser is not None and must_learn:
                    self._chooser.learn(reading, names=False)
                judge = self._judge()
                try:
                    count(
                        reading,
                        Counts(reading, self._judge, judge, self._config.limits, self._chooser),
                        self._jobs,
                    )
                except KeyboardInterrupt:
                    if reading.is_interrupted:  # else it was pressed twice
                        self._print(file, self._judged(judge), reading.first_ns)
                    raise
                if self._state is not None:
                    self._state.merge(judge)
                    judge = self._state
                judged = self._judged(judge)
                first_ns = reading.first_ns if self._state is None else judged.context.first_ns
                self._print(file, judged, first_ns)
                if given["state"] is not None:
                    save(given["state"], judge)
        return self._exit_code(reading, judged)

    def run_state(self) -> int:
        """Judge what a state holds, and nothing else."""
        if self._state is None:
            raise Unreadable(
                f"--state {self._given['state']}: there is no such file, and no capture is given"
            )
        judged = self._judged(self._state)
        with open_output(self._given["output"]) as file:
            self._print(file, judged, judged.context.first_ns)
        return self._failed(judged)

    def _reading(self, paths: tuple[str, ...], talks: bool) -> Reading:
        return Reading(
            paths,
            self._options,
            self._ports,
            self._config.topics,
            progress=talks,
            keys=keys_of(self._given, self._config.limits),
        )

    def _judge(self) -> Judge:
        return Judge(self._config.limits)

    def _judged(self, judge: Judge) -> Judged:
        return judge.judged(self._config.thresholds, self._config.ignored)

    def _exit_code(self, reading: Reading, judged: Judged) -> int:
        """A capture without Kafka is told as a finding."""
        if reading.is_damaged:
            return reading.exit_code(False, False, True)
        return self._failed(judged)

    def _failed(self, judged: Judged) -> int:
        """The exit code of ``--fail-on``."""
        grave = self._fails_on
        failed = grave is not None and any(is_so_grave(each, grave) for each in judged.findings)
        return NOTHING_MATCHED if failed else DONE

    # -- output -------------------------------------------------------------------------------------

    def _print(self, file: BinaryIO, judged: Judged, first_ns: int | None) -> None:
        if self._given["not_judged"]:
            self._print_rows(file, NOT_JUDGED, [each._asdict() for each in judged.not_judged], judged)
            return
        wanted = self._wanted.of(judged.findings)
        shown = wanted if self._given["all_of_them"] else _first(wanted)
        if self._form == "text":
            output = TextOutput(file, self._given["output"])
            output.lines(finding_lines(shown, first_ns, self._arguments()))
            if not self._given["quiet"]:
                if shown:
                    output.line("")
                output.lines(closing_lines(judged, len(shown), len(wanted) - len(shown)))
            return
        self._write(file, FINDINGS, shown)
        self._tell_judged(judged)

    def _print_rows(self, file: BinaryIO, table: Table, rows: list[Any], judged: Judged) -> None:
        if self._form == "text":
            TextOutput(file, self._given["output"]).lines(not_judged_lines(judged.not_judged))
            return
        self._write(file, table, rows)

    def _arguments(self) -> list[str]:
        """What a command needs to read the same."""
        options = (("-d", "decode_as"), ("--keylog", "key_logs"), ("--rsa-key", "rsa_keys"))
        given = [word for option, name in options for value in self._given[name] for word in (option, value)]
        return [*self._paths, *given]

    def _write(self, file: BinaryIO, table: Table, rows: list[Any]) -> None:
        writer = writer_of(self._form, table, file, self._options)
        for row in rows:
            writer.write(row)
        writer.close()

    def _tell_judged(self, judged: Judged) -> None:
        if not self._given["quiet"]:
            complain(judged_text(judged))


def _first(findings: list[Any]) -> list[Any]:
    """The worst; notes on the capture itself beside them, and what a finding that is shown explains."""
    out, keys, left = [], set(), MOST_SHOWN
    for each in findings:
        if each.because in keys or each.category == "capture":
            pass
        elif left:
            left -= 1
        else:
            continue
        keys.add(each.key)
        out.append(each)
    return out
