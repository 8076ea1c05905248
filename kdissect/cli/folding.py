"""Captures → statistics that were fed with them: what commands share that print what follows from these."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, BinaryIO

import click

from kdissect.analysis.fold import Statistic
from kdissect.analysis.together import Together
from kdissect.cli.config import load_config
from kdissect.cli.counting import Counts, count
from kdissect.cli.errors import complain
from kdissect.cli.filters import chooser_of
from kdissect.cli.inputs import read_twice
from kdissect.cli.jobs import jobs_of
from kdissect.cli.listing import ports_of
from kdissect.cli.output import inputs_of, open_output
from kdissect.cli.reading import Reading
from kdissect.cli.tls_keys import keys_of
from kdissect.limits import Limits
from kdissect.present.form import plural
from kdissect.present.options import Options

Print = Callable[[BinaryIO, Reading], int]
"""Prints to a file what was counted; gives how many rows that were."""


def paths_of(given: dict[str, Any]) -> tuple[str, ...]:
    """The captures that are given.

    :raises click.UsageError: there is none.
    """
    paths = (*given["more_files"], *given["files"])
    if not paths:
        raise click.UsageError(
            "no capture is given: name a file, or - for standard input", click.get_current_context()
        )
    return paths


class Folding:
    """One pass over captures.

    :param make: makes the statistics, with the limits of the configuration.
    """

    def __init__(
        self,
        given: dict[str, Any],
        make: Callable[[Limits], Sequence[Statistic]],
    ) -> None:
        self._given = given
        self._paths = paths_of(given)
        self._config = load_config()
        self.options = Options(limits=self._config.limits, shown_fields=self._config.shown_fields)
        self._ports = self._config.ports | ports_of(given["decode_as"])
        self._make = make
        self.statistics = list(make(self._config.limits))
        self._chooser = chooser_of(
            given["filter"], given["slow"], "exchanges", self.options, self._config.slow_ms
        )
        if self._chooser is not None:
            self._chooser.refuse_to_judge(self._paths)
        dear = self._chooser is not None and not self._chooser.is_cheap
        self._jobs = jobs_of(given, self._paths, is_dear=dear)

    def run(self, print_rows: Print) -> int:
        """Read, count, and print. Gives the exit code."""
        given = self._given
        talks = sys.stderr.isatty() and not given["quiet"]
        must_learn = self._chooser is not None and self._chooser.must_learn
        with (
            read_twice(self._paths, must_learn) as paths,
            closing(self._reading(paths, talks)) as reading,
        ):
            reading.open()
            with open_output(given["output"], inputs_of(given)) as file:
                if self._chooser is not None and must_learn:
                    self._chooser.learn(reading, names=False)
                try:
                    self._count(reading)
                except KeyboardInterrupt:
                    if reading.is_interrupted:  # else it was pressed twice
                        print_rows(file, reading)
                    raise
                rows = print_rows(file, reading)
        return reading.exit_code(talks, given["strict"], rows > 0 or not given["exit_status"])

    def complain_of_left_out(self, text: str, fold: Statistic) -> None:
        """Say on stderr what a statistic did not count."""
        if fold.left_out:
            complain(
                f"{text}: more than {self._config.limits.rows:,} rows, the limit; "
                f"{plural(fold.left_out, 'count')} for others left out"
            )

    def _reading(self, paths: tuple[str, ...], talks: bool) -> Reading:
        return Reading(
            paths,
            self.options,
            self._ports,
            self._config.topics,
            progress=talks,
            count_faults=talks or self._given["strict"],
            keys=keys_of(self._given, self._config.limits),
        )

    def _count(self, reading: Reading) -> None:
        """Feed the statistics."""
        limits = self._config.limits

        def new() -> Together:
            return Together(self._make(limits))

        count(reading, Counts(reading, new, Together(self.statistics), limits, self._chooser), self._jobs)
