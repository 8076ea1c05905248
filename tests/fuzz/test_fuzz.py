"""What fuzzing found once, and what it needs to cover the code, is read without a failure; ``python -m
tests.fuzz`` looks for more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.__main__ import HERE, LARGEST_KEPT, RUNS, kept, packed
from tests.fuzz.targets import TARGETS, TooSlowError, timed

FOUND = sorted(HERE.glob("found/*/*"))


@pytest.mark.parametrize("name", TARGETS)
def test_the_kept_inputs_are_read(name: str) -> None:
    inputs = kept(name)
    assert len(inputs) > 50
    for data in inputs:
        assert len(data) <= LARGEST_KEPT
        timed(TARGETS[name].look, data)


@pytest.mark.parametrize("name", TARGETS)
def test_what_real_brokers_and_clients_said_is_read(name: str) -> None:
    seeds = list(TARGETS[name].seeds())
    assert len(seeds) > 5
    for data in seeds:
        timed(TARGETS[name].look, data)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_failed_once_does_not_again(path: Path) -> None:
    timed(TARGETS[path.parent.name].look, path.read_bytes())


def test_a_corpus_is_kept_as_it_was() -> None:
    inputs = [b"", b"one", b"two" * 100]
    assert packed(inputs) == packed([*reversed(inputs), b"one"])


def test_an_input_that_takes_too_long_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.targets.SLOWEST_S", 0.05)

    def look(data: bytes) -> None:
        sum(range(int.from_bytes(data, "big")))

    with pytest.raises(TooSlowError):
        timed(look, (20_000_000).to_bytes(4, "big"))


def test_every_target_is_in_the_table_of_runs() -> None:
    lines = RUNS.read_text(encoding="utf-8").splitlines()
    assert {line.split("\t")[0] for line in lines[1:]} == set(TARGETS)
