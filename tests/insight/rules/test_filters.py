"""The display filters of findings are filters."""

from __future__ import annotations

import pytest

from kdissect.filter.compiled import compile_filter
from tests.insight.judged import CAPTURES, judged_file


@pytest.mark.parametrize("name", ["leader-killed", "controlled-shutdown", "member-killed"])
def test_a_finding_has_a_filter_that_can_be_used(name: str) -> None:
    for each in judged_file(CAPTURES / "incidents" / f"{name}.pcapng.gz").findings:
        if each.filter:
            compile_filter(each.filter)
