"""Whatever a handshake, a record or a certificate holds, nothing but pieces and faults come of it."""

from __future__ import annotations

from random import Random

import pytest

from kdissect.tls.keylog import TlsSecrets
from tests.amount import times
from tests.tls.mutate import CORPUS, KEPT, assert_sane, failures

PARTS = 8
COUNT = times(3_200, 8_000)
"""A million: ``python -m tests.tls.mutate --count 1000000``."""


@pytest.mark.parametrize("number", range(len(CORPUS)))
def test_what_once_broke_something_or_is_likely_to(number: int) -> None:
    assert_sane(CORPUS[number], TlsSecrets(), Random(0))


def test_mutations_that_once_failed() -> None:
    assert list(failures(KEPT)) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_no_damage_raises_or_hangs_or_brings_out_what_nobody_said(part: int) -> None:
    assert list(failures(f"{part}-{number}" for number in range(COUNT // PARTS))) == []
