"""Golden texts: what a command printed when somebody last looked at it closely.

``pytest --update-golden`` writes them anew; the difference is for the reviewer to read.
"""

from __future__ import annotations

from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def check_golden(name: str, text: str, update: bool) -> None:
    """Compare with a golden text, or write it."""
    path = GOLDEN / name
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.exists(), f"{path} is not there; pytest --update-golden writes it"
    assert text == path.read_text(encoding="utf-8")
