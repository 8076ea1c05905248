"""``kdissect live``: packets of an interface → exchanges, records, connections and faults, while it
captures."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, ExitStack, closing
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import click

from kdissect.cli.capturing import (
    capturing_options,
    live_in_own_home,
    opened,
    rotation_of,
    silence_of,
    spool_size_of,
    started,
    stop_of,
)
from kdissect.cli.commands.live.conditions import Conditions, condition_options
from kdissect.cli.commands.live.watching import Watch, drops
from kdissect.cli.config import Config, load_config
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.exit_codes import UNREADABLE
from kdissect.cli.interrupts import stopped_by_signals
from kdissect.cli.listing import OutputListing, listing_options
from kdissect.cli.output import inputs_of, open_output
from kdissect.cli.reading import Reading, reading_of
from kdissect.cli.shown_packets import ShownPackets, ShownPacketsWriter
from kdissect.cli.tls_keys import with_secrets_option
from kdissect.live.session import CaptureSession
from kdissect.live.spooled import Spooled
from kdissect.present.form import plural
from kdissect.system.confining import Allowed, confine


@click.command(context_settings={"allow_extra_args": True})
@capturing_options
@listing_options
@click.option(
    "-w",
    "packets_to",
    metavar="FILE",
    help="Write packets as pcapng: all of them, or with -Y those of the shown rows. They contain "
    "passwords and tokens.",
)
@with_secrets_option
@click.option(
    "-b",
    "rotation",
    multiple=True,
    metavar="RULE",
    help="Begin a new file of -w after duration:S, filesize:KB or packets:N, or at each "
    "interval:S. files:N keeps the last N.",
)
@click.option(
    "-a",
    "stop",
    multiple=True,
    metavar="RULE",
    help="End after duration:S, filesize:KB, packets:N or files:N.",
)
@condition_options
@click.option("--spool", "folder", metavar="FOLDER", help="Folder for packets until they are decoded.")
def command(**given: Any) -> int:
    """Capture on an interface and print exchanges as they come, like kdissect read. Ctrl-C ends it.

    Packets go to a spool on disk first and are decoded from there. None is lost until the spool is full.
    Losses are reported on stderr.
    """
    context = click.get_current_context()
    if context.args:
        raise click.UsageError(f"{context.args[0]}: give an interface with -i: -i {context.args[0]}", context)
    if not given["interfaces"]:
        raise click.UsageError("no interface is given: -i eth0, -i any …", context)
    live_in_own_home()
    return _LiveCommand(given, load_config()).run()


class _LiveCommand:
    """One run of the command."""

    def __init__(self, given: dict[str, Any], config: Config) -> None:
        self._given = given
        self._config = config
        self._listing = OutputListing(given, config)
        chooser = self._listing.chooser
        if chooser is not None and chooser.must_judge:
            raise Wrong(
                "-Y: findings are known only at the end of the input; in a live capture use --trigger"
            )
        if chooser is not None and chooser.must_learn:
            raise Wrong(
                "--slow needs slow_ms in the configuration: a live capture does not know in advance what "
                "is slow"
            )
        self._conditions = Conditions(given, self._listing.options)
        has_trigger = self._conditions.has_trigger
        self._writes_shown = given["packets_to"] is not None and chooser is not None and not has_trigger
        self._rotation = rotation_of(given["rotation"], self._keeps_all)
        self._stop = stop_of(given["stop"])
        self._size = spool_size_of(given["spool_size"])
        if self._keeps_all and given["spool_size"] is not None:
            raise Wrong(
                "--spool-size limits packets that are deleted after decoding, but -w keeps all packets: "
                "leave out one of them"
            )
        if given["packets_to"] == "-":
            raise Wrong(
                "-w - is not possible here, because kdissect reads the packets back from the file: give a "
                "file name"
            )
        if self._writes_shown:
            self._listing.refuse_packets()
        elif given["with_secrets"]:
            raise Wrong(
                "--with-secrets needs -w and -Y: without a filter, packets are written before secrets are "
                "known. To add them: kdissect read FILE --keylog KEYS -w NEW --with-secrets"
            )

    @property
    def _keeps_all(self) -> bool:
        """Whether all captured packets stay, in the file that the user named."""
        given = self._given["packets_to"] is not None
        return given and not self._writes_shown and not self._conditions.has_trigger

    def run(self) -> int:
        given = self._given
        found = opened(given)
        path = given["packets_to"] if self._keeps_all else None
        with ExitStack() as stack:
            session = started(
                found,
                lambda: CaptureSession(
                    found.openers, path, self._rotation, self._stop, given["folder"], self._size
                ),
            )
            stack.enter_context(closing(session))
            # From here on the capture runs: Ctrl-C ends it, and what was captured is still printed.
            stack.enter_context(stopped_by_signals(session.stop))
            reading = stack.enter_context(self._reading(session))
            reading.open()
            self._conditions.begin(stack, reading, session.status)
            silence = silence_of(given, found)
            stack.callback(silence.close)
            shows_line = self._listing.shows_progress and not _is_terminal(given["output"])
            inputs = tuple(inputs_of(given))
            scratch = shown = packets = None
            if self._writes_shown:
                scratch = stack.enter_context(TemporaryDirectory(prefix="kdissect-"))
                limits, with_secrets = self._config.limits, given["with_secrets"]
                shown = ShownPacketsWriter((), limits, True, with_secrets=with_secrets, scratch=scratch)
                stack.enter_context(shown.kept(reading))
            file = stack.enter_context(open_output(given["output"], inputs))
            if shown is not None:
                packets = stack.enter_context(open_output(given["packets_to"], inputs))
            self._confine(session, scratch)
            with Watch(session, reading, shows_line, silence):
                try:
                    self._print(reading, file, None if shown is None else shown.found)
                finally:
                    if shown is not None and packets is not None:
                        shown.write(packets, reading.packets, reading.secrets, reading.interfaces)
            session.stop()
            return self._end(session, reading)

    def _end(self, session: CaptureSession, reading: Reading) -> int:
        session.join()
        status = session.status()
        if self._listing.shows_progress or status.dropped or status.lost:
            complain(f"{plural(status.written, 'packet')} captured, {drops(status)}")
        code = self._listing.exit_code(reading)
        death = session.death()
        if death is not None:
            complain(death)
            return UNREADABLE
        # If reading stopped early, no fault reported the packets that were lost later.
        return UNREADABLE if status.lost else code

    def _reading(self, session: CaptureSession) -> AbstractContextManager[Reading]:
        limits = self._config.limits
        return reading_of(
            self._given,
            (),
            self._config,
            self._listing.options,
            count_faults=self._listing.shows_progress or self._given["strict"],
            unpacks=self._given["strict"] or self._listing.form.format != "text",
            growing=True,
            opener=lambda: Spooled(session.folder, limits, consume=not self._keeps_all),
        )

    def _confine(self, session: CaptureSession, scratch: str | None) -> None:
        """Confine this process: all files that it needs are open now, except for those that it may still
        open. The threads of ``--prometheus`` keep the rights that Landlock controls; they do not decode."""
        path, folder = self._given["packets_to"], session.folder
        written: tuple[str, ...] = ()
        filled = [folder]
        if scratch is not None:
            filled.append(scratch)
        emptied = tuple(map(os.path.dirname, filled))
        if self._conditions.has_trigger:
            filled.append(os.path.dirname(path) or ".")
        elif self._keeps_all:  # the end of the file is repaired if the capture process was killed
            written = (os.path.dirname(path) or "." if self._rotation.rotates else path,)
        lacking = confine(Allowed(written, tuple(filled), emptied)).lacking()
        if lacking and self._listing.shows_progress and sys.platform == "linux":
            complain(
                f"the decoding process is not fully confined, it can still {lacking}: kdissect doctor "
                "shows more"
            )

    def _print(self, reading: Reading, file: BinaryIO, found: ShownPackets | None) -> None:
        with closing(self._conditions.events(reading)) as events:
            self._listing.print(reading, ((event,) for event in events), file, True, found)


def _is_terminal(output: str | None) -> bool:
    return output is None and sys.stdout.isatty()
