"""Fuzz one target with libFuzzer, guided by the coverage of some packages: ``python -m tests.fuzz.one TARGET
PACKAGE,… [libFuzzer's options] CORPUS…``. The driver is :mod:`tests.fuzz.__main__`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ["KDISSECT_PURE"] = "1"  # compiled modules tell no coverage

import atheris

import kdissect  # what it puts before the finders of modules stands behind the one below


def _others(guides: list[str]) -> Iterator[str]:
    """The modules of kdissect that are in none of these packages. Of names with dots, Atheris takes the part
    before the first one, which is everything."""
    top = Path(kdissect.__file__).parent
    for path in top.rglob("*.py"):
        name = ".".join(path.relative_to(top.parent).with_suffix("").parts).removesuffix(".__init__")
        if not any(f"{name}.".startswith(f"{guide}.") for guide in guides):
            yield name


target, guides = sys.argv.pop(1), sys.argv.pop(1)
wanted = guides.split(",")
with atheris.instrument_imports(include=wanted, exclude=list(_others(wanted))):
    from tests.fuzz.targets import TARGETS, timed


def main() -> None:
    look = TARGETS[target].look
    # libFuzzer merges by starting it again.
    sys.argv[0] = f"{sys.executable} -m tests.fuzz.one {target} {guides}"
    atheris.Setup(sys.argv, lambda data: timed(look, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
