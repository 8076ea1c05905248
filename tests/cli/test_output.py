"""Lines in the encoding of a terminal."""

from __future__ import annotations

from io import BytesIO

import pytest

from kdissect.cli.output import TextOutput


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("utf-8", "a → ü\n".encode()), ("latin-1", b"a \\u2192 \xfc\n"), ("ascii", b"a \\u2192 \\xfc\n")],
)
def test_what_an_encoding_lacks_becomes_an_escape(
    encoding: str, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = BytesIO()
    output = TextOutput(file)
    monkeypatch.setattr(output, "_encoding", encoding)
    output.line("a → ü")
    output.write("a → ü\n".encode())
    assert file.getvalue() == 2 * expected
