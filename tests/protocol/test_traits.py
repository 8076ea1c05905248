"""What the definitions say of APIs and fields beside their layout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import kdissect
from kdissect.protocol import apis
from kdissect.protocol.definition import NONE, ApiTraits, Block, Document, FieldDefinition, parse, write
from kdissect.protocol.importing import import_definitions, kafka_class
from kdissect.protocol.library import Library, library, package_folder
from kdissect.protocol.merging import merge
from kdissect.protocol.traits import api_traits, field_traits, secret_field_names, traits_of_api
from tests.protocol.structs import within, without_traits
from tests.protocol.test_importing import jar
from tests.trees import strings

TEXT_OR_BYTES = ("string", "bytes")


def documents() -> Iterator[tuple[str, Document]]:
    for key in apis.api_keys():
        yield apis.api_name(key), library().api(key)
    for name in apis.data_names():
        yield name, library().data_class(name)


def fields_of(block: Block) -> Iterator[FieldDefinition]:
    return within(block.fields)


def test_each_text_and_each_bytes_has_a_trait_or_is_harmless() -> None:
    """A new field is looked at by somebody before it is shown as it is."""
    open_ = [
        f"{name}: {block.kind}: {field.name}"
        for name, document in documents()
        for block in document.blocks
        for field in fields_of(block)
        if field.element in TEXT_OR_BYTES
        and not (field.entity or field.secret or field.holds or field.harmless)
    ]
    assert open_ == []


def test_what_is_harmless_has_no_other_trait_and_is_text_or_bytes() -> None:
    for name, document in documents():
        for block in document.blocks:
            for field in fields_of(block):
                if field.harmless:
                    assert field.element in TEXT_OR_BYTES, (name, field.name)
                    assert {field.entity, field.secret, field.holds} == {None}, (name, field.name)
                if field.secret:
                    assert field.element in TEXT_OR_BYTES, (name, field.name)


def test_fields_of_one_name_have_one_trait_in_a_class() -> None:
    """Values are redacted by the class and the name of the field."""
    for name, document in documents():
        for kind in {block.kind for block in document.blocks}:
            traits: dict[str, set[object]] = {}
            for block in document.blocks:
                for field in fields_of(block) if block.kind == kind else ():
                    if field.element in TEXT_OR_BYTES:
                        traits.setdefault(field.name, set()).add((field.secret, field.holds))
            assert all(len(each) == 1 for each in traits.values()), (name, kind, traits)


def test_only_apis_have_traits_of_an_api_and_all_of_them_keep_to_their_versions() -> None:
    for name in apis.data_names():
        assert library().data_class(name).api == ApiTraits()
    for key in apis.api_keys():
        first = api_traits(key).answers_first
        assert first == NONE or first.low in apis.versions(key)
        if api_traits(key).removed_in:
            assert apis.removed_in(key, apis.versions(key)[0]) == api_traits(key).removed_in


@pytest.mark.parametrize(
    ("name", "traits"),
    [
        ("Fetch", ("a follower asks", "records", False)),
        ("SyncGroup", (None, "members", False)),
        ("Vote", (None, None, True)),
        ("ListOffsets", ("always", None, False)),
        ("Produce", (None, None, False)),
        ("Unknown(4711)", (None, None, False)),
        (None, (None, None, False)),
    ],
)
def test_an_api_has_the_traits_of_its_definition(
    name: str | None, traits: tuple[str | None, str | None, bool]
) -> None:
    found = traits_of_api(name)
    assert (found.reads, found.waits, found.between_brokers) == traits


def test_the_traits_of_an_api_need_only_its_own_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Library(package_folder())
    monkeypatch.setattr("kdissect.protocol.traits.library", lambda: known)
    read: list[int] = []

    def one(key: int) -> Document:
        read.append(key)
        return Document(())

    monkeypatch.setattr(known, "api", one)
    assert traits_of_api("Fetch") == ApiTraits()
    assert traits_of_api("no such API") == ApiTraits()
    assert read == [1]


def test_the_apis_of_a_login_say_so() -> None:
    names = {apis.api_name(key) for key in apis.api_keys() if api_traits(key).logs_in}
    assert names == {"SaslHandshake", "SaslAuthenticate"}


def test_a_message_has_those_of_its_own_side() -> None:
    assert field_traits("SaslAuthenticateRequest").secrets == {"authBytes": "always"}
    assert field_traits("SaslAuthenticateResponse").secrets == {
        "authBytes": "always",
        "errorMessage": "if repeated",
    }
    assert field_traits("EnvelopeRequest").holds.keys() == {
        "requestData",
        "requestPrincipal",
        "clientHostAddress",
    }
    assert field_traits("GroupMetadataValue").holds.keys() == {"subscription", "assignment"}
    assert field_traits("MetadataRequest") == field_traits("NoSuchThing") == ({}, {})


def test_the_names_of_all_secrets_are_those_of_the_definitions() -> None:
    told = {
        field.name
        for _, document in documents()
        for block in document.blocks
        for field in fields_of(block)
        if field.secret
    }
    assert secret_field_names() == told
    assert told >= {"authBytes", "hmac", "saltedPassword", "value"}


# -- imported definitions ---------------------------------------------------------------------------

NEWER = {
    "apiKey": 36,
    "type": "request",
    "name": "LoginRequest",
    "validVersions": "0-3",
    "flexibleVersions": "2+",
    "fields": [
        {"name": "AuthBytes", "type": "bytes", "versions": "0+"},
        {"name": "Mood", "type": "string", "versions": "3+"},
    ],
}


def test_a_newer_release_keeps_the_traits() -> None:
    own = Library(package_folder())
    new = kafka_class("clients", json.loads(json.dumps(NEWER)), "9.9.0")
    assert new is not None
    _, document = merge(("SaslAuthenticate", own.api(36)), new)
    request = document.blocks[0]
    assert [(each.name, each.secret, each.harmless) for each in request.fields] == [
        ("authBytes", "always", False),
        ("mood", None, False),
    ]
    assert document.api == own.api(36).api
    assert parse(write(document)) == document


def test_a_definition_of_the_users_without_traits_takes_none_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "definitions"
    import_definitions(jar(tmp_path / "kafka-clients.jar", "9.9.0", NEWER), folder)
    (file,) = (folder / "apis").iterdir()
    text = file.read_text()
    file.write_text(write(without_traits(parse(text))))
    assert file.read_text() != text
    monkeypatch.setenv("KDISSECT_DATA_HOME", str(tmp_path))
    library.cache_clear()
    try:
        assert apis.api_name(36) == "Login"
        assert field_traits("LoginRequest").secrets == {"authBytes": "always"}
        assert field_traits("SaslAuthenticateResponse").secrets.keys() == {"authBytes", "errorMessage"}
        assert "authBytes" in secret_field_names()
        assert api_traits(1).waits == "records"
    finally:
        monkeypatch.undo()
        library.cache_clear()


# -- the one place ----------------------------------------------------------------------------------

SUBJECTS = {
    "analysis": "folds ask about single APIs",
    "insight": "so do the rules",
    "client/conformance.py": "the questions it asks a broker",
    "filter/paths.py": "examples in messages",
    "spark/stored_groups.py": "counts requests of groups by their API",
    "tui/lists/ladder.py": "whose messages its arrows tell about",
    "tui/lists/records.py": "whose requests and responses the screens of records read",
}
MOST_NAMES = 2


def test_no_module_has_a_table_of_apis_but_those_whose_subject_it_is() -> None:
    """Which APIs are secret, change data, wait or hold bytes stands in the definitions."""
    top = Path(kdissect.__file__).parent
    names = {name + kind for name, _ in library().apis.values() for kind in ("", "Request", "Response")}
    tables = {}
    for path in top.rglob("*.py"):
        where = path.relative_to(top).as_posix()
        if where in SUBJECTS or where.partition("/")[0] in SUBJECTS:
            continue
        found = strings(path) & names
        if len(found) > MOST_NAMES:
            tables[where] = sorted(found)
    assert tables == {}
