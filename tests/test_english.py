"""Texts for users are clear at the first reading. See :mod:`tests.english`."""

from __future__ import annotations

import pytest

from tests.english import LONGEST, Found, Text, counts, found, sentences, words


def test_nothing_is_found() -> None:
    left = {place: count for place, count in counts().items() if count}
    assert not left, "python -m tests.english PLACE lists them"


def of(text: str) -> list[str]:
    return [each.why for each in found(Text("here", "there", text))]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("It is decrypted, as far as that is a fact.", "as far as"),
        ("Secrets are kept; of more the oldest are forgotten.", "of more …"),
        ("Latency, waits that were asked for left out.", "that were asked for left out"),
        ("macOS and Windows are written for, and never run there by us.", "written for, never run"),
        ("It takes the first, or None where there is none.", "is none"),
        ("Nor is it read again.", "inverted"),
        ("Of what has an epoch the newest counts.", "begins with Of"),
        ("Whoever is killed leaves no folder.", "Whoever"),
        ("It waits, for nobody answers.", "for (because)"),
    ],
)
def test_what_reads_like_a_riddle_is_found(text: str, why: str) -> None:
    assert why in of(text)


@pytest.mark.parametrize(
    "text",
    [
        "macOS and Windows: untested, best effort.",
        "Who waits for the broker?",
        "Ask for `what it is told`, e.g. in `of more`.",
        "- " + "word " * LONGEST + "\n- " + "word " * LONGEST,
    ],
)
def test_plain_english_is_left_alone(text: str) -> None:
    assert not of(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("the request is no JSON", "is no X"),
        ("--runs goes with --append", "goes with"),
        ("the broker does not tell it", "tells"),
        ("the offset stands in the header", "stands"),
        ("handshakes that do not come about", "comes about"),
        ("taken for Kafka", "taken for"),
        ("99 % took no longer", "took no longer"),
        ("the broker started anew", "anew"),
        ("a line of time", "line of time"),
        ("its rack; null where unknown", "where (if)"),
    ],
)
def test_what_users_read_has_no_words_in_an_unusual_sense(text: str, why: str) -> None:
    assert [each.why for each in found(Text("here", "there", text, is_for_users=True))] == [why]
    assert not of(text)


@pytest.mark.parametrize(
    "text", ["there is no such file", "it is no longer a member", "what it tells the client"]
)
def test_ordinary_words_for_users_are_left_alone(text: str) -> None:
    assert not list(found(Text("here", "there", text, is_for_users=True)))


def test_a_long_sentence_is_found_and_code_counts_as_one_word() -> None:
    assert of("word " * (LONGEST + 1)) == [f"{LONGEST + 1} words"]
    assert not of("word " * (LONGEST - 1) + "`" + "code " * 9 + "`")
    assert isinstance(next(found(Text("here", "there", "word " * 99))), Found)


def test_sentences_end_at_points_paragraphs_items_and_rows() -> None:
    assert list(sentences("One two. Three\n\nfour:\n- five\n- six, e.g. seven")) == [
        "One two.",
        "Three",
        "four:",
        "five",
        "six, e.g seven",
    ]
    assert list(sentences("One.\n\n\b\ntwo    three\n       four\nfive    six")) == [
        "One.",
        "two three four",
        "five six",
    ]
    assert words("a – b, `c`") == 3
