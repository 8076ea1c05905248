"""``kdissect read``: captures → exchanges, records, connections, faults."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from kdissect.capture.reader import Packets
from kdissect.cli.annotating import FINDINGS, KINDS, Annotated
from kdissect.cli.config import Config, load_config
from kdissect.cli.errors import Unreadable, Wrong, complain
from kdissect.cli.formats import FOLLOW
from kdissect.cli.inputs import FILES, MORE_FILES, captures_of
from kdissect.cli.interrupts import stopped_by_signals
from kdissect.cli.jobs import ALONE, jobs_of, jobs_option
from kdissect.cli.listing import OutputListing, listing_options
from kdissect.cli.output import inputs_of, open_output
from kdissect.cli.reading import Reading, reading_of
from kdissect.cli.tls_keys import with_secrets_option
from kdissect.dissect import Event
from kdissect.present.columns import EXCHANGES

if TYPE_CHECKING:
    from kdissect.capture.following import FollowedFiles
    from kdissect.cli.shown_packets import ShownPacketsWriter


@click.command()
@FILES
@MORE_FILES
@listing_options
@click.option(
    "-w",
    "packets_to",
    metavar="FILE",
    help="Write the packets of the shown rows as pcapng, with the handshakes and ends of their "
    "connections. They contain passwords and tokens.",
)
@with_secrets_option
@click.option(
    "--comment",
    "comments",
    multiple=True,
    type=click.Choice(KINDS),
    help="With -w: write findings, or what is known of each exchange, as comments of packets. Then all "
    "packets are written, unless rows are chosen. May be given twice.",
)
@click.option(
    "--two-pass",
    is_flag=True,
    help="Read twice, so that topic names and TLS secrets are known from the start.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Wait for more at the end: files that still grow, folders with rotated files.",
)
@jobs_option
def command(**given: Any) -> int:
    """Print the exchanges of captures: pcap or pcapng, also compressed with gzip, zstd or lz4.

    Several FILEs are one capture. A folder means the files in it, and - means standard input.

    A FILTER has Wireshark's syntax: 'api == Fetch and latency > 50ms', 'error', 'topic in {orders, clicks}',
    'record.key contains "u-1"'. All fields of filters: kdissect fields filter.
    """
    paths = (*given["more_files"], *given["files"]) if given["follow"] else captures_of(given)
    if not paths:
        raise click.UsageError(
            "no capture is given: name a file, or - for standard input", click.get_current_context()
        )
    if given["form"] == FOLLOW:
        from kdissect.cli.streams import Follow  # only ``-T follow`` needs it

        return Follow(paths, given, load_config()).run()
    return _ReadCommand(paths, given, load_config()).run()


class _ReadCommand:
    """One run of the command."""

    def __init__(self, paths: tuple[str, ...], given: dict[str, Any], config: Config) -> None:
        self._paths = paths
        self._given = given
        self._config = config
        self._listing = OutputListing(given, config)
        chooser = self._listing.chooser
        self._must_learn = chooser is not None and chooser.must_learn
        if chooser is not None:
            chooser.refuse_to_judge(paths)
        if given["packets_to"] is not None:
            self._listing.refuse_packets()
        elif given["with_secrets"]:
            raise Wrong("--with-secrets needs -w: rows do not contain TLS secrets")
        elif given["comments"]:
            raise Wrong("--comment needs -w: comments belong to packets")
        self._judges = FINDINGS in given["comments"] or (chooser is not None and chooser.must_judge)
        """Whether a judge needs TCP data, which rows do not show but some rules read."""
        self._following: FollowedFiles | None = None
        self._jobs = jobs_of(given, paths)
        if given["follow"]:
            if self._jobs.processes > 1 and self._jobs.at_once:
                raise Wrong("--follow decodes in one process: leave out --jobs")
            self._jobs = ALONE
            self._check_followable()

    def _check_followable(self) -> None:
        if "-" in self._paths:
            raise Wrong("--follow works with files and folders: standard input is always read as it comes")
        if self._given["two_pass"] or self._must_learn:
            raise Wrong(
                "--follow reads only once, but --two-pass, finding, and --slow without slow_ms read "
                "twice: leave one out"
            )
        for path in self._paths:
            if not os.path.exists(path):
                raise Unreadable(f"{path}: cannot be read: No such file or directory")

    def run(self) -> int:
        given = self._given
        listing, output, follows = self._listing, given["output"], given["follow"]
        with reading_of(
            given,
            self._paths,
            self._config,
            listing.options,
            twice=given["two_pass"] or self._must_learn,
            progress=listing.shows_progress and (output is not None or not sys.stdout.isatty()),
            count_faults=listing.shows_progress or given["strict"],
            unpacks=given["strict"] or listing.form.format != "text",
            adds_tcp=self._judges,
            briefs=listing.briefs,
            growing=follows,
            opener=self._follow if follows else None,
        ) as reading:
            reading.one_by_one = given["count"] is not None
            reading.open()
            if given["packets_to"] is None:
                with open_output(given["output"], inputs_of(given)) as file:
                    self._print(reading, file, None)
            else:
                with self._annotations() as annotations:
                    self._print_and_write(reading, self._shown(reading.paths, annotations), annotations)
        return self._listing.exit_code(reading)

    def _annotations(self) -> AbstractContextManager[Annotated | None]:
        """The collector of comments on packets."""
        kinds = self._given["comments"]
        if not kinds:
            return nullcontext()
        from kdissect.cli.annotations import annotations_of

        return annotations_of(kinds, self._listing.options, self._config.limits)

    def _print_and_write(
        self, reading: Reading, shown: ShownPacketsWriter, annotations: Annotated | None
    ) -> None:
        """Print the rows, then write their packets. It does so even if Ctrl-C, the end of a live capture in a
        pipe, or the end of the reader stops the rows. A second Ctrl-C stops at once."""
        given = self._given
        with (
            shown.kept(reading),
            open_output(given["output"], inputs_of(given)) as file,
            open_output(given["packets_to"], inputs_of(given)) as capture,
        ):
            try:
                self._print(reading, file, shown, annotations)
            except BrokenPipeError:
                complain(
                    f"{given['packets_to']}: the file is incomplete, because the program that reads the "
                    "rows has ended"
                )
                raise
            finally:
                if annotations is not None:
                    annotations.judge(self._config.thresholds, self._config.ignored)
                shown.write(capture, reading.packets, reading.secrets, reading.interfaces)

    def _shown(self, paths: tuple[str, ...], annotations: Annotated | None) -> ShownPacketsWriter:
        from kdissect.cli.shown_packets import ShownPacketsWriter

        given, listing = self._given, self._listing
        chooses = listing.chooser is not None or given["count"] is not None
        return ShownPacketsWriter(
            paths,
            self._config.limits,
            given["follow"],
            with_secrets=given["with_secrets"],
            annotations=annotations,
            everything=annotations is not None and not chooses and listing.form.table == EXCHANGES.name,
        )

    def _follow(self) -> Packets:
        from kdissect.capture.following import FollowedFiles

        following = self._following = FollowedFiles(self._paths, self._config.limits)
        return following

    def _print(
        self,
        reading: Reading,
        file: BinaryIO,
        shown: ShownPacketsWriter | None,
        annotations: Annotated | None = None,
    ) -> None:
        flush = "-" in self._paths or self._given["follow"]
        found = None if shown is None else shown.found
        ends = stopped_by_signals(self._following.stop) if self._following else nullcontext()
        with ends, closing(self._events(reading)) as events:
            heard = events if annotations is None else annotations.pass_through(events)
            self._listing.print(reading, heard, file, flush, found, self._jobs)

    def _events(self, reading: Reading) -> Generator[Sequence[Event]]:
        """The events of the capture, after as many earlier passes as needed."""
        chooser, two_pass = self._listing.chooser, self._given["two_pass"]
        if chooser is not None and self._must_learn:
            chooser.learn(reading, two_pass)
        elif two_pass:
            reading.read_before(names=True)
        yield from reading.events()
