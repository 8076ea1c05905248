"""``-T follow``: the bytes of connections, after reassembly.

The capture is read twice, because only its end tells which connections are chosen and which bytes may be
shown. The bytes of a connection wait in a file until it has ended.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from typing import Any, BinaryIO

from kdissect.cli.config import Config
from kdissect.cli.errors import Wrong
from kdissect.cli.filters import chooser_of
from kdissect.cli.output import TextOutput, inputs_of, open_output
from kdissect.cli.reading import Reading, reading_of
from kdissect.cli.row_options import options_of
from kdissect.dissect import Event
from kdissect.model import Chunk, Fault, Gap
from kdissect.present.follow import RULE, Ends, MayBeShown, heading, piece_line
from kdissect.session.conversation import Connection, Conversation, Listener
from kdissect.tcp.duplex import Side

_OTHERS = {
    "as_tree": "-V",
    "dump": "-x",
    "fields": "-e",
    "clock": "-t",
    "packets_to": "-w",
    "records": "--records",
    "embedded": "--embedded",
    "explain_errors": "--explain-errors",
    "follow": "--follow",
}
"""Options for rows, which this format does not have."""


class ConnectionStreams(Listener):
    """Keeps the bytes of some connections until they are printed.

    :param wanted: the numbers of these connections.
    """

    def __init__(self, wanted: set[int], file: BinaryIO) -> None:
        self._wanted = wanted
        self._file = file
        self._size = 0
        self._ends: dict[int, Ends] = {}
        self._pieces: dict[int, array[int]] = {}
        """For each connection, its pieces: node, offset, length, and the place in the file; -1 for a gap."""

    def piece(self, conversation: Conversation, side: Side, piece: Chunk | Gap | Fault) -> None:
        """Keep a piece of reassembly, if its connection is chosen."""
        number = conversation.number
        if number not in self._wanted or isinstance(piece, Fault):
            return
        if number not in self._ends:
            self._ends[number] = Ends(*conversation.ends_as_seen)
            self._pieces[number] = array("q")
        pieces = self._pieces[number]
        node = 0 if conversation.endpoints[side] == self._ends[number].first else 1
        if isinstance(piece, Chunk):
            pieces.extend((node, piece.offset, len(piece.data), self._size))
            self._file.write(piece.data)
            self._size += len(piece.data)
        elif isinstance(piece, Gap):
            pieces.extend((node, piece.offset, piece.length, -1))

    def print(self, connection: int, shown: MayBeShown, output: TextOutput) -> None:
        """Print the block of a connection that has ended, and forget it."""
        ends = self._ends.pop(connection)
        pieces = self._pieces.pop(connection)
        ranges = shown.of(connection, ends.first), shown.of(connection, ends.other)
        output.line(heading(connection, ends))
        for at in range(0, len(pieces), 4):
            node, offset, length, place = pieces[at : at + 4]
            piece: Chunk | Gap = Gap(offset, length, "", 0, 0)
            if place >= 0:
                self._file.seek(place)
                piece = Chunk(offset, self._file.read(length), 0, 0)
            output.line(piece_line(node, piece, ranges[node]))
        output.line(RULE)
        self._file.seek(self._size)

    def has(self, connection: int) -> bool:
        """Whether a connection has a byte or a gap."""
        return connection in self._ends


class Follow:
    """One run of ``read -T follow``.

    :raises Wrong: an option is wrong, or does not fit it.
    """

    def __init__(self, paths: tuple[str, ...], given: Mapping[str, Any], config: Config) -> None:
        for name, option in _OTHERS.items():
            if given[name]:
                raise Wrong(f"{option} works with rows, but -T follow prints the bytes of whole connections")
        self._paths = paths
        self._given = given
        self._config = config
        self._options = options_of(given, config)
        slow_ms = config.slow_ms
        self._chooser = chooser_of(given["filter"], given["slow"], "connections", self._options, slow_ms)
        if self._chooser is not None:
            self._chooser.refuse_to_judge(paths)

    def run(self) -> int:
        """Print the blocks; return the exit code."""
        given = self._given
        talks = sys.stderr.isatty() and not given["quiet"]
        with reading_of(
            given,
            self._paths,
            self._config,
            self._options,
            twice=True,
            progress=talks and (given["output"] is not None or not sys.stdout.isatty()),
            count_faults=talks or given["strict"],
            adds_tcp=False,
        ) as reading:
            reading.open()
            if reading.points is not None:
                raise Wrong(
                    "-T follow shows the bytes of one capture point, but these files are from "
                    f"{len(reading.points.names)}: give the files of one"
                )
            with open_output(given["output"], inputs_of(given)) as file:
                printed = self._print(reading, TextOutput(file, given["output"]))
        return reading.exit_code(talks, given["strict"], printed > 0 or not given["exit_status"])

    def _print(self, reading: Reading, output: TextOutput) -> int:
        from tempfile import TemporaryFile  # only ``-T follow`` needs it

        wanted, shown = self._learn(reading)
        most = self._given["count"]
        printed = 0
        with TemporaryFile(prefix="kdissect-") as file:
            streams = ConnectionStreams(wanted, file)
            reading.listen(streams)
            for event in reading:
                if isinstance(event, Connection) and streams.has(event.connection):
                    if most is not None and printed == most:
                        break
                    streams.print(event.connection, shown, output)
                    printed += 1
        return printed

    def _learn(self, reading: Reading) -> tuple[set[int], MayBeShown]:
        """The chosen connections, and which of their bytes may be shown."""
        chooser, wanted, shown = self._chooser, set[int](), MayBeShown(self._options)
        if chooser is not None and chooser.must_learn:
            chooser.learn(reading, self._given["two_pass"])

        def learn(event: Event) -> None:
            if not isinstance(event, Fault):
                shown.learn(event)
            if (chooser is None or chooser.event(event)) and isinstance(event, Connection):
                wanted.add(event.connection)

        reading.read_before(self._given["two_pass"], learn)
        return wanted, shown
