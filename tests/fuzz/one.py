"""Fuzz one target with libFuzzer, guided by the coverage of some packages: ``python -m tests.fuzz.one TARGET
PACKAGE,… [libFuzzer's options] CORPUS…``. The driver is :mod:`tests.fuzz.__main__`."""

from __future__ import annotations

import os
import sys

os.environ["KDISSECT_PURE"] = "1"  # compiled modules tell no coverage

import atheris

import kdissect  # noqa: F401 - what it puts before the finders of modules stands behind the one below

target, guides = sys.argv.pop(1), sys.argv.pop(1)
with atheris.instrument_imports(include=guides.split(",")):
    from tests.fuzz.targets import TARGETS, timed


def main() -> None:
    look = TARGETS[target].look
    # libFuzzer merges by starting it again.
    sys.argv[0] = f"{sys.executable} -m tests.fuzz.one {target} {guides}"
    atheris.Setup(sys.argv, lambda data: timed(look, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
