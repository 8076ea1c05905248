"""What is found in the shipped captures: ``expected.tsv``.

python -m tests.insight.expected      writes it anew, for review: every line that changes must be true
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.insight.judged import CAPTURES, judged_file

EXPECTED = Path(__file__).parent / "expected.tsv"
COLUMNS = ("capture", "finding", "subject", "count", "severity", "because")


def captures() -> list[Path]:
    """The captures that are shipped."""
    return sorted(each for each in CAPTURES.rglob("*.pcap*") if each.is_file())


def lines_of(path: Path) -> Iterator[str]:
    """What is found in a capture, a line a finding."""
    name = str(path.relative_to(CAPTURES))
    found = judged_file(path).findings
    assert not [key for key, count in Counter(each.key for each in found).items() if count > 1]
    for each in found:
        assert each.first_ns is None or each.last_ns is None or each.first_ns <= each.last_ns
        because = (each.because or "").partition(" ")[0]
        values = (name, each.id, each.where, str(each.count), each.severity, because)
        yield "\t".join(value.encode("unicode_escape").decode("ascii") for value in values)


def text() -> str:
    """The whole file."""
    lines = ["\t".join(COLUMNS), *(line for path in captures() for line in lines_of(path))]
    return "\n".join((*lines, ""))


if __name__ == "__main__":
    EXPECTED.write_text(text(), encoding="utf-8")
