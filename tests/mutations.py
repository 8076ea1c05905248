"""Do the tests notice broken code? Each mutation of ``mutations.tsv`` is made in a copy, where its tests run.

    python -m tests.mutations [TEXT…]      only those whose line has one of the texts

A line of the table has the file, a text that occurs in it once, the replacement, and the tests that must
fail. It ends with exit code 1 if a mutation survives, or no longer applies.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".tsv")


class Mutation(NamedTuple):
    """A change that breaks the code."""

    path: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def applies(self) -> bool:
        """Whether the text occurs in the file exactly once."""
        return (TOP / self.path).read_text("utf-8").count(self.old) == 1


def mutations() -> Iterator[Mutation]:
    """The mutations of the table."""
    for line in TABLE.read_text("utf-8").splitlines():
        path, old, new, tests = line.split("\t")
        yield Mutation(path, old, new, tuple(tests.split()))


def is_caught(mutation: Mutation, copy: Path) -> bool:
    """Whether the tests fail with the mutation. Afterwards the copy is unchanged."""
    path = copy / mutation.path
    whole = path.read_text("utf-8")
    path.write_text(whole.replace(mutation.old, mutation.new), "utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider", *mutation.tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "KDISSECT_PURE": "1"}
    # Without this, Python would reuse the bytecode of another change with the same length and the same
    # second.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    finally:
        path.write_text(whole, "utf-8")
    return done.returncode == 1  # tests failed; other codes mean that they did not run


def main(*texts: str) -> int:
    """Try the mutations."""
    chosen = [
        each for each in mutations() if not texts or any(text in "\t".join(map(str, each)) for text in texts)
    ]
    survived = 0
    with tempfile.TemporaryDirectory(prefix="kdissect-mutations-") as folder:
        copy = Path(folder) / "kdissect"
        ignored = shutil.ignore_patterns(".git", ".venv", "*.so", "__pycache__", ".*_cache")
        shutil.copytree(TOP, copy, ignore=ignored)
        for each in chosen:
            found = (
                "caught" if each.applies and is_caught(each, copy) else "SURVIVED" if each.applies else "GONE"
            )
            survived += found != "caught"
            print(f"{found:8}  {each.path}: {each.new}", flush=True)  # noqa: T201
    print(f"{len(chosen) - survived} of {len(chosen)} caught")  # noqa: T201
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
