"""Spans of time as values of options."""

from __future__ import annotations

import click
import pytest

from kdissect.cli.spans import SpanOption


@pytest.mark.parametrize(
    ("span", "text", "expected"),
    [
        (SpanOption("s", 0), "4s", 4),
        (SpanOption("s", 0), "500ms", 0.5),
        (SpanOption("s", 0), "1.5", 1.5),
        (SpanOption("ms", 0, 60_000, whole=True), "4s", 4_000),
        (SpanOption("ms", 0, 60_000, whole=True), "500", 500),
    ],
)
def test_a_number_has_the_units_of_the_option_or_its_own(
    span: SpanOption, text: str, expected: float
) -> None:
    assert span.convert(text, None, None) == expected


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "x", "2m", "0.5us"])
def test_what_is_out_of_bounds_is_told(text: str) -> None:
    with pytest.raises(click.BadParameter):
        SpanOption("ms", 1, 60_000, whole=True).convert(text, None, None)


def test_the_client_takes_them(capsys: pytest.CaptureFixture[str]) -> None:
    from kdissect.cli import main

    main(["client", "metadata", "127.0.0.1:1", "--timeout", "4y"])
    assert "4y is not a duration" in capsys.readouterr().err
    main(["client", "metadata", "127.0.0.1:1", "--timeout", "400ms"])
    assert "no span" not in capsys.readouterr().err
