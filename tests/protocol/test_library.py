from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.protocol import apis, schema
from kdissect.protocol.library import Library, library, package_folder, user_folder
from tests.protocol.layouts import forget_layouts

FETCH = "request 0 of 9.9\n    word  string  0+\n\nresponse 0 of 9.9\n"


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_the_first_folder_wins_file_by_file(tmp_path: Path) -> None:
    put(tmp_path, "apis/001-NewFetch.txt", FETCH)
    put(tmp_path, "data/mine/NoOpRecord.txt", "data 0 of 9.9\n")
    library = Library(tmp_path, package_folder())
    assert library.apis[1][0] == "NewFetch"
    assert library.api(1).blocks[0].fields[0].name == "word"
    assert library.data["NoOpRecord"][0] == "mine"
    assert library.apis[0][0] == "Produce"
    assert len(library.apis) == 95


def test_files_are_read_only_when_asked_for(tmp_path: Path) -> None:
    put(tmp_path, "apis/001-Fetch.txt", "not a definition\n")
    library = Library(tmp_path, package_folder())
    assert (library.apis[1][0], library.problems) == ("Fetch", [])
    library.api(0)
    assert library.problems == []
    library.api(1)
    assert len(library.problems) == 1


NO_RESPONSE = "request 0 of 9.9\n"
DAMAGED = {
    "garbage": (b"not a definition\n", "line 1"),
    "not UTF-8": (b"\xff\xfe", "byte 0 is not UTF-8"),
    "empty": (b"", "it has no request"),
    "cut off": (NO_RESPONSE.encode(), "it has no response"),
    "a type that is not there": (FETCH.replace("string", "[]Word").encode(), "word has no type Word"),
    "a wrong default": (
        FETCH.replace("string  0+", "int8 0+ default x").encode(),
        "word has the default 'x'",
    ),
}


@pytest.mark.parametrize(("data", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_for_a_damaged_file_the_next_folders_is_used(data: bytes, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "apis" / "001-OldFetch.txt"
    put(tmp_path, "apis/001-OldFetch.txt", "")
    file.write_bytes(data)
    library = Library(tmp_path, package_folder())
    own = Library(package_folder())
    assert library.api(1) == own.api(1)
    assert library.apis == own.apis
    library.api(1)
    (problem,) = library.problems
    assert (problem.key, problem.file, problem.replaced) == (1, file, True)
    assert reason in problem.reason


def test_a_class_that_only_a_damaged_file_describes_is_not_known(tmp_path: Path) -> None:
    put(tmp_path, "apis/999-Moon.txt", "garbage\n")
    put(tmp_path, "data/mine/MoonRecord.txt", "")
    library = Library(tmp_path, package_folder())
    assert (999 in library.apis, 999 in library.keys, "MoonRecord" in library.data) == (False, False, False)
    assert [(problem.key, problem.replaced) for problem in library.problems] == [
        (999, False),
        ("MoonRecord", False),
    ]
    with pytest.raises(LookupError, match="999"):
        library.api(999)


def test_all_files_of_the_user_can_be_checked(tmp_path: Path) -> None:
    put(tmp_path, "apis/001-Fetch.txt", FETCH)
    put(tmp_path, "apis/003-Metadata.txt", "garbage\n")
    put(tmp_path, "data/mine/NoOpRecord.txt", "")
    library = Library(tmp_path, package_folder())
    assert {problem.key for problem in library.check()} == {3, "NoOpRecord"}


def test_the_files_of_the_last_folder_are_taken_for_sound(tmp_path: Path) -> None:
    put(tmp_path, "apis/001-Fetch.txt", "not a definition\n")
    with pytest.raises(ValueError, match=r"001-Fetch\.txt: line 1"):
        Library(tmp_path).api(1)


def test_what_is_no_definition_file_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, "apis/.001-Fetch.txt.swp", "")
    put(tmp_path, "apis/notes.txt", "")
    assert Library(tmp_path).apis == {}
    assert Library(tmp_path / "absent").data == {}


def test_unknown_classes_are_lookup_errors() -> None:
    library = Library(package_folder())
    with pytest.raises(LookupError, match="4711"):
        library.api(4711)
    with pytest.raises(LookupError, match="NoSuchRecord"):
        library.data_class("NoSuchRecord")


def test_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KDISSECT_DATA_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert user_folder() == tmp_path / "own" / "definitions"
    monkeypatch.delenv("KDISSECT_DATA_HOME")
    assert user_folder() == tmp_path / "xdg" / "kdissect" / "definitions"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_folder() == tmp_path / ".local" / "share" / "kdissect" / "definitions"


def test_a_damaged_file_takes_its_name_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "definitions/apis/001-OldFetch.txt", "garbage\n")
    put(tmp_path, "definitions/data/mine/RequestHeader.txt", "garbage\n")
    monkeypatch.setenv("KDISSECT_DATA_HOME", str(tmp_path))
    caches = (library, schema.message_struct, schema.era_structs, apis.data_names, schema.data_struct)
    for each in caches:
        each.cache_clear()
    forget_layouts()
    try:
        assert apis.api_name(1) == "Fetch"
        assert apis.api_key("fetch") == 1
        assert schema.message_struct(1, 12, "request").name == "FetchRequest"
        assert {each.name for each in schema.era_structs(9, 0, "response")} <= {"OffsetFetchResponse"}
        assert apis.data_group("RequestHeader") == "clients"
        assert [problem.key for problem in library().problems] == [1, "RequestHeader"]
        with pytest.raises(LookupError):
            apis.api_key("OldFetch")
    finally:
        monkeypatch.undo()
        for each in caches:
            each.cache_clear()
        forget_layouts()


def test_a_damaged_file_under_the_right_name_costs_nothing_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "apis/001-Fetch.txt", "garbage\n")
    broken = Library(tmp_path, package_folder())
    monkeypatch.setattr(schema, "library", lambda: broken)
    asked = (
        schema.message_struct.__wrapped__(1, 12, "request"),
        schema.era_structs.__wrapped__(1, 12, "request"),
    )
    assert (asked[0].name, asked[1]) == ("FetchRequest", ())
    assert [problem.key for problem in broken.problems] == [1]
