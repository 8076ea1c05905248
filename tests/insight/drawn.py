"""Findings for a reader who has only their text: would they do what the page says?

python -m tests.insight.drawn [SEED [COUNT]]      prints twenty, each of another rule, drawn from all captures
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from kdissect.insight.finding import Finding
from kdissect.present.findings_text import finding_lines
from tests.insight.expected import captures
from tests.insight.judged import judged_file
from tests.shared import SHARED

COUNT = 20


def sources() -> list[Path]:
    """The captures that are shipped, and those of incidents where they are at hand."""
    if SHARED is None:
        return captures()
    return [*captures(), *sorted((SHARED / "testdata" / "incidents").glob("*/capture*.pcap*"))]


def drawn(seed: int, count: int = COUNT) -> Iterator[tuple[Path, Finding, int | None]]:
    """So many findings, by lot: no two of one rule, and none that another explains."""
    chance, seen = random.Random(seed), set[str]()
    paths = sources()
    chance.shuffle(paths)
    for path in paths:
        found = judged_file(path)
        causes = [each for each in found.findings if each.because is None and each.id not in seen]
        chance.shuffle(causes)
        for each in causes[:2]:
            if each.id not in seen and len(seen) < count:
                seen.add(each.id)
                yield path, each, found.context.first_ns
        if len(seen) >= count:
            return


def main(seed: str = "1", count: str = str(COUNT)) -> None:
    """Print them, numbered."""
    for number, (path, each, first_ns) in enumerate(drawn(int(seed), int(count)), 1):
        lines = finding_lines([each], first_ns, [path.name])
        sys.stdout.write("\n".join((f"--- {number} ---", *lines, "", "")))


if __name__ == "__main__":
    main(*sys.argv[1:])
