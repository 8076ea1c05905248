"""The words before the time lines."""

from __future__ import annotations

import pytest

from kdissect.tui.widgets.time_line import GUTTER, _most_of


@pytest.mark.parametrize("name", ["requests", "errors"])
@pytest.mark.parametrize("rate", [0.4, 2.8, 99.0, 1_508.0, 98_765.0, 1_234_567.0, 987_654_321.0])
def test_a_rate_keeps_its_unit(name: str, rate: float) -> None:
    text = _most_of(name, rate)
    assert len(text) < GUTTER
    assert text.endswith("/s") or text.endswith(f"/s {name}")
