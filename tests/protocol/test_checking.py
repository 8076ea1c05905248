from __future__ import annotations

import pytest

from kdissect.limits import DEEPEST
from kdissect.protocol.checking import check
from kdissect.protocol.definition import parse
from kdissect.protocol.library import Library, package_folder

API = "request 0 of 9.9\n    word  string  0+\n\nresponse 0 of 9.9\n"


def test_every_definition_of_our_own_can_be_used() -> None:
    library = Library(package_folder())
    for key in library.keys:
        check(library.api(key), is_api=True)
    for name in library.data:
        check(library.data_class(name), is_api=False)
    assert len(library.keys) > 90, "there was something to check"
    assert len(library.data) > 90


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it has no request"),
        ("request 0 of 9.9\n", "it has no response"),
        ("era request 0 of 9.9\n\nresponse 0 of 9.9\n", "it has no request"),
        (API.replace("string", "Word"), "word has no type Word"),
        (API.replace("string", "[]Word"), "word has no type Word"),
        (API.replace("string  0+", "int16  0+  default many"), "word has the default 'many'"),
        (API.replace("string  0+", "float64  0+  default much"), "word has the default 'much'"),
    ],
)
def test_an_api_that_cannot_be_used_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        check(parse(text), is_api=True)


def test_any_other_class_needs_a_layout() -> None:
    check(parse("data 0 of 9.9\n"), is_api=False)
    with pytest.raises(ValueError, match="it has no layout"):
        check(parse("era data 0 of 9.9\n"), is_api=False)


@pytest.mark.parametrize(
    "default", ["int16  0+  default -1", "float64  0+  default 0.5", "string  0+  default null"]
)
def test_defaults_that_can_be(default: str) -> None:
    document = parse(API.replace("string  0+", default))
    check(document, is_api=True)
    (field,) = document.blocks[0].fields
    assert field.default == default.rpartition(" ")[2]


def test_what_nests_without_end_is_refused() -> None:
    text = "data 0 of 9.9\n"
    for depth in range(1, DEEPEST + 3):
        text += f"{'    ' * depth}field{depth}  Type{depth}  0+\n"
    with pytest.raises(ValueError, match=f"it is nested deeper than {DEEPEST}"):
        check(parse(text), is_api=False)


def test_a_struct_type_may_be_used_again_once_it_is_spelled_out() -> None:
    document = parse("data 0 of 9.9\n    one  Word  0+\n        text  string  0+\n    two  []Word  0+\n")
    check(document, is_api=False)
    one, two = document.blocks[0].fields
    assert (one.element, two.element, two.fields) == ("Word", "Word", ())
