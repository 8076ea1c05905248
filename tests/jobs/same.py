"""What several processes say of a capture, and what one says."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import kdissect.cli.folding
import kdissect.cli.jobs
import kdissect.jobs.batches
import kdissect.jobs.cutting
from kdissect.analysis import chapters
from kdissect.analysis.catalogue import STATISTICS
from kdissect.cli import main

_EVERY_TABLE = tuple(word for name in (*STATISTICS, "srt,topic", "io,10ms") for word in ("-z", name))

FORMS: tuple[tuple[str, ...], ...] = (
    ("read", "-T", "text"),
    ("read", "-T", "tree", "--records"),
    ("read", "-T", "ndjson", "--records"),
    ("read", "-T", "csv", "--embedded"),
    ("read", "-T", "tsv", "-e", "number,topics,request_packet"),
    ("read", "-T", "records"),
    ("read", "-T", "records.csv", "--two-pass"),
    ("read", "-T", "faults", "--strict"),
    ("read", "-T", "connections"),
    ("read", "-T", "connections", "-Y", "latency > 5ms or error"),
    ("read", "-T", "tree", "-Y", "latency > 5ms or error"),
    ("read", "-T", "connections", "-Y", "latency > 5ms"),
    ("read", "-T", "tree", "-Y", "api == Metadata and connection != 3"),
    ("read", "-t", "u", "--color", "always", "--slow"),
    ("read", "-T", "text", "-x", "--exit-status", "-Y", "api == Fetch or topic contains e"),
    ("stats", *_EVERY_TABLE, "-T", "ndjson", "--strict"),
    ("stats", *_EVERY_TABLE, "-Y", "latency > 5ms or error"),
    ("read", "-T", "parquet", "-o", "-"),
    ("read", "-T", "records.arrow", "-o", "-"),
    ("explain", "--all", "-T", "ndjson"),
)
"""Commands whose output must not depend on how many share the work."""


class Said(NamedTuple):
    """What a command said."""

    code: int
    out: bytes
    err: str


class _Bytes(io.TextIOWrapper):
    """Standard output that keeps its bytes."""

    def __init__(self) -> None:
        self.kept = io.BytesIO()
        super().__init__(self.kept, "utf-8")


def said(*arguments: object) -> Said:
    """Run a command in this process."""
    out, err = _Bytes(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(each) for each in arguments])
        sys.stdout.flush()
    return Said(code, out.kept.getvalue(), err.getvalue())


@contextmanager
def small_batches(events: int) -> Iterator[None]:
    """Batches of so many events, so that a small capture has many."""
    with (
        mock.patch.object(kdissect.jobs.batches, "BATCH_EVENTS", events),
        mock.patch.object(kdissect.cli.folding, "COUNTED_EVENTS", events),
    ):
        yield


@contextmanager
def small_parts(size: int) -> Iterator[None]:
    """Parts of about so many bytes, so that a small capture has many."""
    cutting = kdissect.jobs.cutting
    with (
        mock.patch.object(kdissect.cli.jobs, "CUT_BYTES", 1),
        mock.patch.object(cutting, "FIRST_BYTES", size),
        mock.patch.object(cutting, "PART_BYTES", 4 * size),
        mock.patch.object(cutting, "LAST_BYTES", size),
        mock.patch.object(cutting, "MOST_POOR", sys.maxsize),
    ):
        yield


@contextmanager
def short_chapters() -> Iterator[None]:
    """Chapters of some tens of exchanges: full tables keep to their limits at the ends of chapters."""
    with (
        mock.patch.object(chapters, "EXCHANGES", 30),
        mock.patch.object(chapters, "PACKETS", 120),
        mock.patch.object(chapters, "CONNECTIONS", 9),
    ):
        yield


def differences(
    paths: Sequence[Path | str], forms: Sequence[tuple[str, ...]], counts: Sequence[int], events: int
) -> list[str]:
    """Commands that say something else with so many jobs than with one."""
    wrong = []
    with small_batches(events):
        for form in forms:
            command = (*form, *paths)
            alone = said(*command, "--jobs", 1)
            for count in counts:
                if (found := said(*command, "--jobs", count)) != alone:
                    wrong.append(f"{' '.join(map(str, command))} --jobs {count}: {_first(alone, found)}")
    return wrong


def _first(alone: Said, found: Said) -> str:
    """What differs first."""
    if alone.code != found.code:
        return f"exit code {found.code} instead of {alone.code}: {found.err}"
    if alone.err != found.err:
        return f"stderr {found.err!r} instead of {alone.err!r}"
    for mine, theirs in zip(alone.out.split(b"\n"), found.out.split(b"\n"), strict=False):
        if mine != theirs:
            return f"{theirs!r} instead of {mine!r}"
    return f"{len(found.out):,} bytes instead of {len(alone.out):,}"
