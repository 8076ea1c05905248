"""The modules that are compiled if there is a C compiler. What to know before you edit one of them:

1. A leaf is an ordinary module. It runs as it is, and compiled several times faster; both do the same.
2. The ``.pxd`` beside it has the C types of its classes, functions and variables. Only Cython reads it. An
   attribute, argument or variable that you add or rename in the ``.py`` must change there too:
   ``tests/compiled/test_declarations.py`` names what differs.
3. After an edit the sources run, with a warning, until all is compiled: ``python .build/compile.py``.
   ``find kdissect -name '*.so' -delete`` removes the compiled modules, ``KDISSECT_PURE=1`` ignores them.
4. A variable without a C type is a Python object: right, but slow. ``python .build/hot_lines.py MODULE``
   names the lines that work on objects; ``tests/compiled/test_hot_lines.py`` watches the hottest functions.
5. A number over 32 bits, such as ``1 << 32``, makes its whole expression work on Python objects.
6. C numbers wrap around and a ``None`` has no attributes: check sizes before you calculate with them.
7. Tests cannot patch the inside of a leaf: compiled, its functions call each other in C. A compiled
   function does not take its only argument by name: ``tests/compiled/test_keywords.py`` finds such calls.
8. ``kdissect doctor`` shows which form is active. ``tests/compiled`` compares both.
9. Why a ``.pxd`` instead of annotations: with annotations, C classes and functions need decorators of
   ``cython``. It costs 20 ms to import and 17 MB to install. Without decorators, classes stay Python's:
   half as slow again, measured on ``tcp.copies``. And two leaves of three need a ``.pxd`` anyway, because
   other leaves use their names in C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

LEAVES = (
    "kdissect.model",
    "kdissect.capture.runs",
    "kdissect.capture.segments",
    "kdissect.capture.walks",
    "kdissect.tcp.clocks",
    "kdissect.tcp.packed",
    "kdissect.tcp.copies",
    "kdissect.tcp.reassembly",
    "kdissect.tcp.duplex",
    "kdissect.protocol.cursor",
    "kdissect.protocol.decode",
    "kdissect.protocol.header",
    "kdissect.protocol.body",
    "kdissect.protocol.framing",
    "kdissect.protocol.survey",
    "kdissect.protocol.layout",
    "kdissect.protocol.select",
    "kdissect.protocol.topics",
    "kdissect.protocol.json_form",
    "kdissect.protocol.json_text",
    "kdissect.protocol.json_plan",
    "kdissect.protocol.json_walk",
    "kdissect.record.frames",
    "kdissect.record.rows",
    "kdissect.record.records",
    "kdissect.record.scan",
    "kdissect.record.messages",
    "kdissect.record.batch",
    "kdissect.record.sets",
    "kdissect.record.sound",
    "kdissect.payload.avro_values",
    "kdissect.payload.avro_text",
    "kdissect.message",
    "kdissect.exchange",
    "kdissect.plain",
    "kdissect.names",
    "kdissect.session.evidence",
    "kdissect.session.chain",
    "kdissect.session.recognise",
    "kdissect.session.witness",
    "kdissect.session.expected",
    "kdissect.session.pending",
    "kdissect.session.sasl",
    "kdissect.session.briefs",
    "kdissect.session.pairing",
    "kdissect.session.quick",
    "kdissect.session.dialogue",
    "kdissect.session.conversation",
    "kdissect.session.lanes",
    "kdissect.session.throttling",
    "kdissect.tls.ciphers",
    "kdissect.tls.decrypting",
    "kdissect.tls.flow",
    "kdissect.tls.handshake",
    "kdissect.tls.keying",
    "kdissect.tls.negotiation",
    "kdissect.tls.records",
    "kdissect.tls.stage",
    "kdissect.tls.summary",
    "kdissect.numbering",
    "kdissect.dissect",
    "kdissect.parts.journal",
    "kdissect.parts.numbers",
    "kdissect.parts.packed",
    "kdissect.parts.stitch",
    "kdissect.parts.ticks",
    "kdissect.analysis.batches",
    "kdissect.analysis.chapters",
    "kdissect.analysis.clients",
    "kdissect.analysis.connections",
    "kdissect.analysis.counters",
    "kdissect.analysis.exposure",
    "kdissect.analysis.graph",
    "kdissect.analysis.headers",
    "kdissect.analysis.histogram",
    "kdissect.analysis.intervals",
    "kdissect.analysis.labels",
    "kdissect.analysis.latency",
    "kdissect.analysis.ledgers",
    "kdissect.analysis.pace",
    "kdissect.analysis.position",
    "kdissect.analysis.production",
    "kdissect.analysis.profile",
    "kdissect.analysis.quotas",
    "kdissect.analysis.repeats",
    "kdissect.analysis.room",
    "kdissect.analysis.rows",
    "kdissect.analysis.shared_parts",
    "kdissect.analysis.slices",
    "kdissect.analysis.srt",
    "kdissect.analysis.tcp",
    "kdissect.analysis.timeline",
    "kdissect.analysis.topics",
    "kdissect.analysis.transit",
    "kdissect.analysis.versions",
    "kdissect.analysis.waits",
    "kdissect.present.brief_text",
    "kdissect.present.exchange_text",
    "kdissect.present.form",
    "kdissect.present.gathered",
    "kdissect.present.gathered_records",
    "kdissect.present.message_text",
    "kdissect.present.plain_records",
    "kdissect.present.record_batches",
    "kdissect.present.record_lines",
    "kdissect.present.record_set_text",
    "kdissect.present.record_text",
    "kdissect.present.records",
    "kdissect.present.sanitise",
    "kdissect.present.text",
)
"""The modules."""

LOOPS = frozenset(
    {
        "kdissect.tcp.duplex",
        "kdissect.tcp.packed",
        "kdissect.tcp.reassembly",
        "kdissect.protocol.cursor",
        "kdissect.protocol.decode",
        "kdissect.protocol.survey",
        "kdissect.protocol.json_text",
        "kdissect.protocol.json_walk",
        "kdissect.record.frames",
        "kdissect.record.messages",
        "kdissect.record.records",
        "kdissect.record.scan",
        "kdissect.record.sound",
        "kdissect.session.conversation",
        "kdissect.session.quick",
        "kdissect.parts.packed",
        "kdissect.parts.ticks",
        "kdissect.present.brief_text",
        "kdissect.present.exchange_text",
        "kdissect.present.gathered_records",
        "kdissect.present.plain_records",
        "kdissect.present.record_text",
        "kdissect.present.text",
    }
)
"""The leaves whose C code loops over bytes and text, or calculates for every packet. Only these gain from a
compiler's second level of optimisation. The others mostly call Python, and that level doubles the compiler's
time."""

BUSY = frozenset(
    {
        "kdissect.model",
        "kdissect.names",
        "kdissect.capture.runs",
        "kdissect.capture.segments",
        "kdissect.tcp.copies",
        "kdissect.protocol.framing",
        "kdissect.record.batch",
        "kdissect.record.sets",
        "kdissect.session.briefs",
        "kdissect.session.chain",
        "kdissect.session.evidence",
        "kdissect.session.expected",
        "kdissect.session.lanes",
        "kdissect.session.recognise",
        "kdissect.parts.journal",
        "kdissect.parts.numbers",
        "kdissect.parts.stitch",
        "kdissect.present.form",
        "kdissect.present.record_lines",
        "kdissect.numbering",
        "kdissect.dissect",
    }
)
"""The leaves that run for every packet, or for every batch of records. In a profile of ``read`` and
``stats``, each of the others takes less than half a percent of the time. The compiler's fastest level is good
enough for them: it takes a third less time."""

SELDOM = frozenset(
    {
        "kdissect.protocol.header",
        "kdissect.protocol.select",
        "kdissect.analysis.batches",
        "kdissect.analysis.intervals",
        "kdissect.analysis.latency",
        "kdissect.analysis.position",
        "kdissect.analysis.quotas",
        "kdissect.analysis.room",
        "kdissect.analysis.srt",
        "kdissect.analysis.timeline",
    }
)
"""The leaves whose own C takes at most a thousandth of the time of ``read``, ``stats`` and ``explain``. The
compiler does not optimise them. It takes a third less time again."""

CALLED = frozenset(
    {
        "kdissect.exchange",
        "kdissect.message",
        "kdissect.names",
        "kdissect.protocol.decode",
        "kdissect.protocol.json_form",
        "kdissect.session.pairing",
        "kdissect.analysis.graph",
        "kdissect.analysis.labels",
        "kdissect.analysis.pace",
        "kdissect.analysis.profile",
        "kdissect.analysis.repeats",
        "kdissect.analysis.slices",
        "kdissect.analysis.topics",
        "kdissect.analysis.transit",
        "kdissect.analysis.versions",
    }
)
"""The leaves in which functions that Python calls take more than a thousandth of the time of ``read``,
``stats`` or ``explain``. In the others the compiler optimises only functions of C, which the ``.pxd``
declares, and special methods."""

SHARED = "kdissect.compiled"
"""The library with Cython's functions that all compiled modules share. It has no source here."""

PURE = "KDISSECT_PURE"
"""The environment variable that disables compiled modules: ``KDISSECT_PURE=1``."""


OUTDATED = (
    "kdissect: compiled modules of this checkout are older than their sources, so the sources run; "
    "compile them again with: python .build/compile.py"
)
"""The warning for developers who edited a module and did not compile it again."""


class SourceFinder:
    """Finds the modules of this package by their sources only."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module by its source (PEP 451)."""
        if path is None or not name.startswith("kdissect."):
            return None
        for folder in path:
            found = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name, target)
            if found is not None:
                return found
        return None


def is_pure() -> bool:
    """Whether the user wants the sources to run."""
    return os.environ.get(PURE, "0") not in ("", "0")


def is_outdated(top: Path) -> bool:
    """Whether compiled modules of the checkout ``top`` are older than their sources, incomplete, or no leaves
    any more.

    Modules installed from a wheel are never outdated: nobody edits them.
    """
    if not (top / "pyproject.toml").exists():
        return False
    try:
        return _is_outdated(str(top))
    except FileNotFoundError:  # somebody changes the checkout now
        return True


def _is_outdated(top: str) -> bool:
    files = _files(os.path.join(top, "kdissect"))
    *leaves, shared = (os.path.join(top, *name.split(".")) for name in (*LEAVES, SHARED))
    if _has_leftovers(files, [*leaves, shared]):
        return True
    libraries = [
        [leaf + suffix for suffix in EXTENSION_SUFFIXES if leaf + suffix in files] for leaf in leaves
    ]
    if not any(libraries):
        return False
    return not all(libraries) or any(
        _edited(files, leaf) > os.stat(library[0]).st_mtime
        for leaf, library in zip(leaves, libraries, strict=True)
    )


def _files(folder: str) -> set[str]:
    """All files in a folder and its folders. One list is faster than to ask the system for each file that
    may be there."""
    files: set[str] = set()
    folders = [folder]
    for each in folders:
        try:
            listed = os.scandir(each)
        except PermissionError:  # a folder of somebody else's tool has no modules
            continue
        with listed as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    files.add(entry.path)
                elif entry.name != "__pycache__":
                    folders.append(entry.path)
    return files


def _has_leftovers(files: set[str], modules: list[str]) -> bool:
    """Whether there are other compiled modules. Python would prefer them to their sources."""
    known = {module + suffix for module in modules for suffix in EXTENSION_SUFFIXES}
    suffixes = tuple(EXTENSION_SUFFIXES)
    return any(file.endswith(suffixes) and file not in known for file in files)


def _edited(files: set[str], leaf: str) -> float:
    """When the newest source of a module was written."""
    sources = [leaf + suffix for suffix in (".py", ".pxd", ".pyx")]
    return max((os.stat(source).st_mtime for source in sources if source in files), default=0.0)


def choose() -> None:
    """Make the sources run if the user wants that, or if compiled modules are outdated. Call it before any
    compiled module is imported. Processes that are started from this one then choose the same."""
    if not is_pure() and is_outdated(Path(__file__).parents[1]):
        os.environ[PURE] = "1"
        if sys.stderr is not None:
            sys.stderr.write(OUTDATED + "\n")
    if is_pure():
        sys.meta_path.insert(0, SourceFinder)
