"""``explain`` for captures: read them once, judge the facts by the rules, print the findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

from kdissect.cli.commands.explain.selection import FindingChoice
from kdissect.cli.config import load_config
from kdissect.cli.errors import Unreadable, Wrong, complain
from kdissect.cli.exit_codes import DONE, NOTHING_MATCHED
from kdissect.cli.filters import Within
from kdissect.cli.folding import Folding
from kdissect.cli.formats import check_writable, writer_of
from kdissect.cli.output import TextOutput, open_output, refuse_same
from kdissect.cli.payloads import decoder_of, report_faults
from kdissect.cli.reading import Reading
from kdissect.insight.judge import Judge, Judged, of_captures
from kdissect.insight.report_data import whole_judge
from kdissect.lazy import Later
from kdissect.limits import Limits
from kdissect.present.columns import Table
from kdissect.present.findings import FINDINGS, NOT_JUDGED
from kdissect.present.findings_text import closing_lines, finding_lines, judged_text, not_judged_lines

if TYPE_CHECKING:
    from kdissect.cli import states
    from kdissect.payload.decoder import PayloadDecoder
else:
    states = Later("kdissect.cli.states")

MOST_SHOWN = 20
"""The most findings without ``--all``, not counting those on the capture itself."""


class Explanation:
    """One run of ``explain``."""

    def __init__(self, paths: tuple[str, ...], given: dict[str, Any]) -> None:
        self._paths = paths
        self._given = given
        self._form: str = given["form"]
        self._choice = FindingChoice(given)
        check_writable(self._form, given["output"])
        refuse_same(given["output"], given["state"], "--state")
        self._config = load_config()
        self._decoder: PayloadDecoder | None = None
        self._within = _within(given)
        self._folding = Folding(given, paths, self._new_judge(), within=self._within)
        self._state = None if given["state"] is None else states.load(given["state"])

    def _new_judge(self) -> Callable[[Limits], Judge]:
        """The function that makes a judge with the chosen rules."""
        if not self._given["deep"]:
            if any(self._given[name] for name in ("schemas", "payload_rules", "registry", "registry_ca")):
                raise Wrong(
                    "--schemas, --registry and --decode-as need --deep here, because only those rules "
                    "unpack records"
                )
            return Judge if self._given["state"] is None else whole_judge
        if self._given["state"] is not None:
            raise Wrong("--state cannot store the results of --deep: leave out one of them")
        decoder = self._decoder = decoder_of(self._given, self._config)
        return lambda limits: Judge(limits, of_captures(deep=True), decoder=decoder)

    def run(self) -> int:
        """Read, judge and print; return the exit code."""
        reading, judged = self._folding.run(self._finish)
        report_faults(self._decoder)
        if reading.is_damaged:
            return reading.exit_code(False, False, True)
        return self._failed(judged)

    def _finish(self, file: BinaryIO, reading: Reading) -> Judged:
        judge = self._folding.counted
        if self._within is not None:
            context = judge.context()
            self._within.check(context.first_ns, context.last_ns)
        if self._state is None or reading.is_interrupted:
            judged = self._judged(judge, reading.packets)
            self._print(file, judged, reading.first_ns)
            if self._given["state"] is not None and not reading.is_interrupted:
                states.save(self._given["state"], judge)
            return judged
        self._state.add_capture(judge)
        judged = self._judged(self._state, reading.packets)
        self._print(file, judged, judged.context.first_ns)
        states.save(self._given["state"], self._state)
        return judged

    def run_state(self) -> int:
        """Judge only the contents of a state."""
        if self._state is None:
            raise Unreadable(
                f"--state {self._given['state']}: there is no such file, and no capture is given"
            )
        judged = self._judged(self._state)
        with open_output(self._given["output"]) as file:
            self._print(file, judged, judged.context.first_ns)
        return self._failed(judged)

    def _judged(self, judge: Judge, packets: int | None = None) -> Judged:
        return judge.judged(self._config.thresholds, self._config.ignored, packets)

    def _failed(self, judged: Judged) -> int:
        """The exit code of ``--fail-on``. It depends on all chosen findings, even if too many to print
        all."""
        return NOTHING_MATCHED if self._choice.fail(self._choice.select(judged.findings)) else DONE

    # -- output -------------------------------------------------------------------------------------

    def _print(self, file: BinaryIO, judged: Judged, first_ns: int | None) -> None:
        if self._given["not_judged"]:
            self._print_rows(file, NOT_JUDGED, [each._asdict() for each in judged.not_judged], judged)
            return
        for line in self._choice.lines_without_findings(judged.findings):
            complain(line)
        wanted = self._choice.select(judged.findings)
        shown = wanted if self._given["all_of_them"] else _first(wanted)
        if self._form == "text":
            output = TextOutput(file, self._given["output"])
            output.lines(finding_lines(shown, first_ns, self._arguments()))
            if not self._given["quiet"]:
                if shown:
                    output.line("")
                output.lines(closing_lines(judged, shown, len(wanted) - len(shown)))
            return
        self._write(file, FINDINGS, shown)
        self._print_judged(judged)

    def _print_rows(self, file: BinaryIO, table: Table, rows: list[Any], judged: Judged) -> None:
        if self._form == "text":
            TextOutput(file, self._given["output"]).lines(not_judged_lines(judged.not_judged))
            return
        self._write(file, table, rows)

    def _arguments(self) -> list[str]:
        """The arguments of a command that reads the same input."""
        options = (("-d", "decode_as"), ("--keylog", "key_logs"), ("--rsa-key", "rsa_keys"))
        given = [word for option, name in options for value in self._given[name] for word in (option, value)]
        return [*self._paths, *given]

    def _write(self, file: BinaryIO, table: Table, rows: list[Any]) -> None:
        writer = writer_of(self._form, table, file, self._folding.options)
        for row in rows:
            writer.write(row)
        writer.close()

    def _print_judged(self, judged: Judged) -> None:
        if not self._given["quiet"]:
            complain(judged_text(judged))


def _within(given: dict[str, Any]) -> Within | None:
    """The span of time to judge; None for all of it."""
    if given["since"] is None and given["until"] is None:
        return None
    from kdissect.cli.moments import moment_of

    since, until = (
        None if given[name] is None else moment_of(given[name], f"--{name}") for name in ("since", "until")
    )
    return Within(since, until)


def _first(findings: list[Any]) -> list[Any]:
    """The worst findings, with notes on the capture itself, and with the effects of findings that are
    shown."""
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
