from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.protocol.definition import ALWAYS, NONE, ApiTraits, VersionRange, parse, versions_of, write

PACKAGE = Path(__file__).parents[2] / "kdissect" / "protocol" / "definitions"
TEXT = """also OldFetch, OlderFetch
api reads unless so; administers; waits for records; between brokers; answers first 8+; logs in; removed in 4

request 4-18 of 4.4.0, 0-3 of 3.9 unstable; flexible 12+
    name           string      0+     nullable 2+, default "a, \\"b\\"", tag 0 12+, ignorable, is topicName
    inner          []Inner     3-7
        id         uuid        3-7    key
        deepest    Deepest     5      nullable, default null, tag 1
            count  int32       5      default -1, flexible none
    again          Inner       8+
    token          string      0+     nullable, secret
    value          bytes       0+     secret by config, holds text
    rack           string      0+     harmless
"""


def test_a_text_says_what_its_words_say() -> None:
    document = parse(TEXT)
    assert document.also == ("OldFetch", "OlderFetch")
    (block,) = document.blocks
    assert (block.kind, block.flexible, block.era) == ("request", VersionRange(12, 32767), False)
    assert [(str(span.versions), span.release, span.unstable) for span in block.spans] == [
        ("4-18", "4.4.0", False),
        ("0-3", "3.9", True),
    ]
    name, inner, again, *_ = block.fields
    assert name.default == 'a, "b"'
    assert (str(name.nullable), name.tag, str(name.tagged)) == ("2+", 0, "12+")
    assert (name.ignorable, name.entity) == (True, "topicName")
    assert (inner.type, inner.element, str(inner.versions)) == ("[]Inner", "Inner", "3-7")
    assert inner.fields[0].key
    deepest = inner.fields[1]
    assert (deepest.nullable, deepest.tag, deepest.tagged) == (deepest.versions, 1, deepest.versions)
    assert (deepest.fields[0].default, deepest.fields[0].flexible) == ("-1", NONE)
    assert again.fields == ()


def test_traits_stand_beside_the_field_and_above_the_blocks() -> None:
    document = parse(TEXT)
    assert document.api == ApiTraits("so", True, "records", True, versions_of("8+"), True, "4")
    assert parse("api reads\n\nrequest 0 of 3.9\n").api == ApiTraits(reads=ALWAYS)
    token, value, rack = document.blocks[0].fields[3:]
    assert [(each.secret, each.holds, each.harmless) for each in (token, value, rack)] == [
        (ALWAYS, None, False),
        ("by config", "text", False),
        (None, None, True),
    ]


def test_what_is_written_reads_the_same() -> None:
    assert parse(write(parse(TEXT))) == parse(TEXT)


@pytest.mark.parametrize("text", ["0+", "0", "3-7", "none"])
def test_versions_print_as_they_are_written(text: str) -> None:
    assert str(versions_of(text)) == text


def test_every_file_of_the_package_is_written_as_we_write() -> None:
    files = list(PACKAGE.rglob("*.txt"))
    assert len(files) >= 194
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert write(parse(text)) == text, file


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("request 0 of 3.9\n    name string often\n", "line 2"),
        ("request 0 of 3.9\n    name string\n", "line 2"),
        ("request 0 of 3.9\n    name string 0 blue\n", "'blue' is not a known"),
        ("request 0 of 3.9; flavour 2\n", "'flavour 2' is not a known"),
        ("request 0\n", "does not name a release"),
        ("api reads; sings\n", "'sings' is not a known"),
        ("api waits for rain\n", "'waits for rain' is not a known"),
        ("    name string 0\n", "before the first block"),
        ("request 0 of 3.9\n        a string 0\n    b string 0\n", "indented less"),
    ],
)
def test_a_text_that_is_not_in_the_language_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse(text)
