"""Fuzz one target with libFuzzer, guided by the coverage of kdissect: ``python -m tests.fuzz.one TARGET
[libFuzzer's options] CORPUS…``. The driver is :mod:`tests.fuzz.__main__`."""

from __future__ import annotations

import os
import sys

os.environ["KDISSECT_PURE"] = "1"  # compiled modules tell no coverage

import atheris

import kdissect  # noqa: F401 - what it puts before the finders of modules stands behind the one below

with atheris.instrument_imports(include=["kdissect"]):
    from tests.fuzz.targets import TARGETS, timed


def main() -> None:
    target = sys.argv.pop(1)
    look = TARGETS[target].look
    sys.argv[0] = f"{sys.executable} -m tests.fuzz.one {target}"  # libFuzzer merges by starting it again
    atheris.Setup(sys.argv, lambda data: timed(look, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
