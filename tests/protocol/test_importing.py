from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kdissect.protocol import importing
from kdissect.protocol.definition import VersionRange, parse, write
from kdissect.protocol.importing import import_definitions, kafka_class, read_json
from kdissect.protocol.library import Library, vendors_in
from kdissect.protocol.schema import build
from tests.protocol.structs import without_traits
from tests.shared import requires_shared, shared

PACKAGE = Path(__file__).parents[2] / "kdissect" / "protocol" / "definitions"

HEARTBEAT: dict[str, Any] = {
    "apiKey": 12,
    "type": "request",
    "name": "HeartbeatRequest",
    "validVersions": "0-5",
    "flexibleVersions": "4+",
    "fields": [
        {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
        {"name": "GenerationId", "type": "int32", "versions": "0+"},
        {"name": "MemberId", "type": "string", "versions": "0+"},
        {
            "name": "GroupInstanceId",
            "type": "string",
            "versions": "3+",
            "nullableVersions": "3+",
            "default": "null",
        },
        {"name": "Mood", "type": "int8", "versions": "5+"},
    ],
}


def jar(path: Path, release: str, *definitions: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("kafka/kafka-version.properties", f"commitId=abc\nversion={release}\n")
        archive.writestr("common/message/README.md", "not a definition")
        for definition in definitions:
            text = "// a comment\n" + json.dumps(definition)
            file = definition["name"].removeprefix("../")
            archive.writestr(f"common/message/{file}.json", text)
    return path


def structs(library: Library) -> dict[tuple[object, ...], object]:
    """Every struct of a library as something that can be compared."""
    found: dict[tuple[object, ...], object] = {}
    for key, (name, _) in library.apis.items():
        for block in library.api(key).blocks:
            for span in block.spans:
                for version in range(span.versions.low, span.versions.high + 1):
                    if not block.era:
                        found[key, block.kind, version] = build(block, name, version).plan
    for name in library.data:
        for block in library.data_class(name).blocks:
            for span in block.spans:
                for version in range(span.versions.low, span.versions.high + 1):
                    if not block.era:
                        found[name, version] = build(block, name, version).plan
    return found


@requires_shared
def test_importing_the_same_releases_again_changes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "definitions"
    shutil.copytree(PACKAGE, target)
    for release in ("3.9", "4.4.0", "3.9"):
        done = import_definitions(shared(f"kafka-definitions/{release}"), target, library=Library(target))
        assert (done.release, done.written) == (release, ())
    for file in PACKAGE.rglob("*.txt"):
        assert (target / file.relative_to(PACKAGE)).read_bytes() == file.read_bytes()


@requires_shared
@pytest.mark.parametrize("order", [("3.9", "4.4.0"), ("4.4.0", "3.9")])
def test_the_files_come_from_the_definitions_but_for_eras_of_other_releases(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    for release in order:
        import_definitions(shared(f"kafka-definitions/{release}"), tmp_path, library=Library(tmp_path))
    made = sorted(file.relative_to(tmp_path) for file in tmp_path.rglob("*.txt"))
    assert len(made) == 194
    for name in made:
        document = parse((PACKAGE / name).read_text(encoding="utf-8"))
        ours = [block for block in document.blocks if not block.era or block.spans[0].release in order]
        expected = parse((tmp_path / name).read_text(encoding="utf-8"))
        assert write(without_traits(document._replace(blocks=tuple(ours), also=()))) == write(
            expected._replace(also=())
        ), name
        assert set(expected.also) <= set(document.also)


def test_a_jar_of_a_newer_release_adds_its_versions_and_changes_no_other(tmp_path: Path) -> None:
    before = structs(Library(PACKAGE))
    target = tmp_path / "user"
    done = import_definitions(jar(tmp_path / "kafka-clients-9.9.0.jar", "9.9.0", HEARTBEAT), target)
    assert (done.release, done.classes, done.written) == ("9.9.0", 1, ("apis/012-Heartbeat.txt",))
    after = structs(Library(target, PACKAGE))
    assert {key: after[key] for key in before} == before
    assert after.keys() - before.keys() == {(12, "request", 5)}


def test_a_jar_of_an_older_release_takes_nothing_over(tmp_path: Path) -> None:
    older = HEARTBEAT | {"validVersions": "0-4", "fields": HEARTBEAT["fields"][:2]}
    done = import_definitions(jar(tmp_path / "old.jar", "2.0.1", older), tmp_path / "user")
    before, after = structs(Library(PACKAGE)), structs(Library(tmp_path / "user", PACKAGE))
    assert after == before
    document = Library(tmp_path / "user").api(12)
    eras = [(block.era, str(block.spans[0].versions)) for block in document.blocks if block.kind == "request"]
    assert eras == [(False, "0-4"), (True, "0-4")]
    assert done.written == ("apis/012-Heartbeat.txt",)


MOON = {"apiKey": 999, "type": "request", "name": "MoonRequest", "validVersions": "0", "fields": []}


@pytest.mark.parametrize("release", ["0.9", "4.4.0", "9.9.0"])
def test_importing_a_jar_twice_changes_nothing_the_second_time(release: str, tmp_path: Path) -> None:
    older = HEARTBEAT | {"validVersions": "0-4", "fields": HEARTBEAT["fields"][:2]}
    header = {"type": "header", "name": "RequestHeader", "validVersions": "0", "fields": []}
    source = jar(tmp_path / "kafka-clients.jar", release, older, header, MOON)
    target = tmp_path / "user"
    first = import_definitions(source, target)
    assert first.written
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in target.rglob("*.txt")}
    second = import_definitions(source, target)
    assert second.written == ()
    assert before == {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in target.rglob("*.txt")}


def test_an_api_of_which_only_one_side_is_known_is_left_out_and_named(tmp_path: Path) -> None:
    target = tmp_path / "user"
    done = import_definitions(jar(tmp_path / "half.jar", "9.9.0", MOON, HEARTBEAT), target)
    assert (done.halves, done.written) == (("Moon",), ("apis/012-Heartbeat.txt",))
    assert Library(target, PACKAGE).check() == []
    response = MOON | {"type": "response", "name": "MoonResponse"}
    done = import_definitions(jar(tmp_path / "whole.jar", "9.9.0", MOON, response), target)
    assert (done.halves, done.written) == ((), ("apis/999-Moon.txt",))


def test_a_renamed_api_has_one_file(tmp_path: Path) -> None:
    target = tmp_path / "user"
    import_definitions(jar(tmp_path / "one.jar", "9.8.0", HEARTBEAT), target)
    renamed = HEARTBEAT | {"name": "PulseRequest"}
    import_definitions(jar(tmp_path / "two.jar", "9.9.0", renamed), target)
    assert [file.name for file in (target / "apis").iterdir()] == ["012-Pulse.txt"]
    library = Library(target, PACKAGE)
    assert library.apis[12][0] == "Pulse"
    assert library.api(12).also == ("Heartbeat",)
    assert {block.kind for block in library.api(12).blocks} == {"request", "response"}


def test_a_new_class_goes_to_the_group_that_its_jar_names(tmp_path: Path) -> None:
    record = {"apiKey": 99, "type": "metadata", "name": "MoonRecord", "validVersions": "0", "fields": []}
    import_definitions(jar(tmp_path / "kafka-metadata-9.9.0.jar", "9.9.0", record), tmp_path / "user")
    library = Library(tmp_path / "user")
    assert library.data["MoonRecord"][0] == "metadata"
    assert library.data_class("MoonRecord").blocks[0].record_type == 99


def test_the_release_can_be_told_by_the_file_the_folder_or_the_user(tmp_path: Path) -> None:
    folder = tmp_path / "9.7"
    folder.mkdir()
    (folder / "HeartbeatRequest.json").write_text(json.dumps(HEARTBEAT))
    assert import_definitions(folder, tmp_path / "a").release == "9.7"
    assert import_definitions(folder, tmp_path / "b", release="9.6").release == "9.6"
    with zipfile.ZipFile(tmp_path / "kafka-clients-9.5.1.jar", "w") as archive:
        archive.writestr("common/message/HeartbeatRequest.json", json.dumps(HEARTBEAT))
    assert import_definitions(tmp_path / "kafka-clients-9.5.1.jar", tmp_path / "c").release == "9.5.1"
    folder.rename(tmp_path / "trunk")
    with pytest.raises(ValueError, match="the Kafka release is unknown"):
        import_definitions(tmp_path / "trunk", tmp_path / "d")


def test_a_source_without_definitions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no message definitions"):
        import_definitions(jar(tmp_path / "empty.jar", "9.9.0"), tmp_path / "user")
    assert not (tmp_path / "user").exists()
    with pytest.raises(FileNotFoundError):
        import_definitions(tmp_path / "absent.jar", tmp_path / "user")
    (tmp_path / "text.jar").write_text("not a jar")
    with pytest.raises(ValueError, match="neither a folder nor a jar"):
        import_definitions(tmp_path / "text.jar", tmp_path / "user")


@pytest.mark.parametrize(
    "change",
    [
        {"fields": [{"name": "GroupId", "versions": "0+"}]},
        {"fields": [{"name": "GroupId", "type": "Absent", "versions": "0+"}]},
        {"fields": [{"name": "Group\n    id", "type": "int8", "versions": "0+"}]},
        {"name": "../HeartbeatRequest", "apiKey": 12},
        {"validVersions": "some"},
        {"type": None},
    ],
)
def test_a_definition_that_cannot_be_understood_names_its_file_and_writes_nothing(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    broken = HEARTBEAT | change
    with pytest.raises(ValueError, match=r"HeartbeatRequest\.json"):
        import_definitions(jar(tmp_path / "broken.jar", "9.9.0", broken), tmp_path / "user")
    assert not (tmp_path / "user").exists()


def raw_jar(path: Path, entries: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


def refused(tmp_path: Path, entries: dict[str, bytes]) -> str:
    """Why a jar is not taken in."""
    source = raw_jar(tmp_path / "kafka-clients-9.9.0.jar", entries)
    with pytest.raises(ValueError, match=r"kafka-clients-9\.9\.0\.jar: ") as said:
        import_definitions(source, tmp_path / "user")
    assert not (tmp_path / "user").exists()
    assert "\n" not in str(said.value)
    return str(said.value)


FILE = "common/message/HeartbeatRequest.json"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b" " * (64 << 20), "more than 1 MiB"),
        (b"[" * 500_000, "nested deeper than 32"),
        (b'{"a":' * 100_000, "nested deeper than 32"),
        (b'"' + b'\\"' * 400_000, "not JSON"),
        (b"/*" * 400_000, "not JSON"),
        (b"\xff", "codec can't decode"),
        (b"[]", "not a JSON object"),
        (b'{"validVersions": ' + b"9" * 5_000 + b"}", "digits"),
    ],
    ids=["size", "lists", "objects", "quotes", "comments", "UTF-8", "list", "digits"],
)
def test_a_hostile_text_is_refused_by_one_line(tmp_path: Path, text: bytes, why: str) -> None:
    assert why in refused(tmp_path, {FILE: text})


def test_there_is_an_end_to_entries_definitions_and_their_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = json.dumps(HEARTBEAT).encode()
    many = {
        f"common/message/A{at}Request.json": json.dumps(HEARTBEAT | {"name": f"A{at}Request", "apiKey": at})
        for at in range(30)
    }
    for name, value, why in (
        ("MOST_ENTRIES", 10, "a jar with more than 10 entries"),
        ("MOST_DEFINITIONS", 10, "more than 10 definitions"),
        ("MOST_BYTES", len(one) * 5, "all definitions together"),
        ("MOST_WORK", 500, "more than 500 fields in all"),
    ):
        with monkeypatch.context() as bounds:
            bounds.setattr(importing, name, value)
            assert why in refused(tmp_path, {each: text.encode() for each, text in many.items()})
    assert "is defined twice" in refused(tmp_path, {FILE: one, FILE.replace("Heart", "heart"): one})


def test_a_directory_that_lies_or_has_a_second_one_is_not_read(tmp_path: Path) -> None:
    path = raw_jar(tmp_path / "kafka-clients-9.9.0.jar", {FILE: json.dumps(HEARTBEAT).encode()})
    data = path.read_bytes()
    end = data.rfind(b"PK\x05\x06")
    for broken in (
        data[: end + 10] + b"\xff\xff" + data[end + 12 :],
        data[: end + 12] + b"\xff\xff\xff\x7f" + data[end + 16 :],
        data[:end] + b"PK\x06\x07".ljust(20, b"\0") + data[end:],
    ):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="a jar with more than 20,000 entries"):
            import_definitions(path, tmp_path / "user")


def test_a_version_file_of_any_size_costs_no_more_than_a_definition(tmp_path: Path) -> None:
    version = "kafka/kafka-version.properties"
    source = raw_jar(
        tmp_path / "kafka-clients-9.9.0.jar",
        {version: b"x=" + b"1" * (64 << 20), FILE: json.dumps(HEARTBEAT).encode()},
    )
    assert import_definitions(source, tmp_path / "user").release == "9.9.0"


@pytest.mark.parametrize("name", ["..-4.0.jar", " x -4.0.jar", "\x1b[31m-4.0.jar"])
def test_a_jar_whose_name_is_no_part_of_kafka_is_refused(name: str, tmp_path: Path) -> None:
    source = raw_jar(tmp_path / name, {FILE: json.dumps(HEARTBEAT).encode()})
    with pytest.raises(ValueError, match="is not the name of a part of Kafka"):
        import_definitions(source, tmp_path / "user" / "definitions")
    assert not (tmp_path / "user").exists()


@pytest.mark.parametrize("flip", range(30, 90, 3))
def test_a_damaged_or_locked_jar_is_told_as_such(flip: int, tmp_path: Path) -> None:
    data = bytearray(
        raw_jar(tmp_path / "kafka-clients-9.9.0.jar", {FILE: json.dumps(HEARTBEAT).encode()}).read_bytes()
    )
    at = data.find(b"PK\x01\x02")
    locked = bytearray(data)
    locked[at + 8] |= 1
    data[flip] ^= 0xFF
    for broken in (locked, data):
        (tmp_path / "kafka-clients-9.9.0.jar").write_bytes(broken)
        with pytest.raises((ValueError, zipfile.BadZipFile)):
            import_definitions(tmp_path / "kafka-clients-9.9.0.jar", tmp_path / "user")


@pytest.mark.parametrize(
    "text",
    ['{"a": 1}', '// b\n{"a": 1 // c\n}', '/* "b" */ {"a": /* c\n */ 1}', '{"a": 1}\n]}', '{"a": 1} //'],
)
def test_comments_and_what_follows_the_object_do_not_count(text: str) -> None:
    assert read_json(text) == {"a": 1}


def test_slashes_in_a_string_are_no_comment() -> None:
    assert read_json('{"a": "http://b \\" /* c */"}') == {"a": 'http://b " /* c */'}


def test_the_quirks_of_kafkas_definitions() -> None:
    fields = [
        {"name": "KRaft", "type": "int32", "versions": "0+", "default": "0x7fffffff"},
        {"name": "Bare", "type": "int16", "versions": "0+", "default": -1},
        {"name": "Flag", "type": "bool", "versions": "0+", "default": True},
        {"name": "Zero", "type": "int8", "versions": "0+", "default": "0"},
        {
            "name": "Void",
            "type": "[]int8",
            "nullableVersions": "0+",
            "taggedVersions": "0+",
            "tag": "1",
            "default": None,
        },
        {"name": "Part", "type": "[]Shared", "versions": "0+"},
        {"name": "Whole", "type": "Shared", "versions": "0+"},
    ]
    common = [
        {"name": "Shared", "versions": "0+", "fields": [{"name": "Id", "type": "uuid", "versions": "0+"}]}
    ]
    kafka = HEARTBEAT | {"fields": fields, "commonStructs": common}
    del kafka["flexibleVersions"]
    made = kafka_class("clients", kafka, "9.9.0")
    assert made is not None
    by_name = {field.name: field for field in made.block.fields}
    assert by_name["kRaft"].default == "2147483647"
    assert (by_name["bare"].default, by_name["flag"].default, by_name["zero"].default) == ("-1", "true", None)
    assert (by_name["void"].versions, by_name["void"].tag) == (VersionRange(0, 32767), 1)
    assert by_name["void"].default is None
    assert [len(by_name[name].fields) for name in ("part", "whole")] == [1, 0]


def test_a_key_that_is_only_reserved_is_nothing() -> None:
    assert kafka_class("clients", {"type": "request", "validVersions": "none"}, "9.9.0") is None


@pytest.mark.parametrize("group", ["clients", "elsewhere"])
def test_an_import_puts_a_damaged_file_right(group: str, tmp_path: Path) -> None:
    target = tmp_path / "user"
    broken = [target / "apis" / "012-Heartbeat.txt", target / "data" / group / "RequestHeader.txt"]
    for file in broken:
        file.parent.mkdir(parents=True)
        file.write_bytes(b"\xff")
    header = {"type": "header", "name": "RequestHeader", "validVersions": "0", "fields": []}
    import_definitions(jar(tmp_path / "kafka-clients-0.9.jar", "0.9", HEARTBEAT, header), target)
    library = Library(target, PACKAGE)
    assert library.check() == []
    assert (target / "apis" / "012-Heartbeat.txt").exists()
    assert (target / "data" / "clients" / "RequestHeader.txt").exists()


# -- what is a vendor's


def secret_sauce(kind: str, key: int = 10_001) -> dict[str, Any]:
    """A request, or response, of a vendor's own."""
    fields = [{"name": "Flavour", "type": "string", "versions": "0+"}]
    made: dict[str, Any] = {"apiKey": key, "type": kind, "name": f"SecretSauce{kind.capitalize()}"}
    return made | {"validVersions": "0-1", "flexibleVersions": "0+", "fields": fields}


SAUCE = (secret_sauce("request"), secret_sauce("response"))


def vendors_jar(path: Path, *definitions: dict[str, Any], manifest: str = "") -> Path:
    """A jar that does not say its release as Kafka's do."""
    with zipfile.ZipFile(path, "w") as archive:
        for definition in definitions:
            archive.writestr(f"common/message/{definition['name']}.json", json.dumps(definition))
        if manifest:
            archive.writestr("META-INF/MANIFEST.MF", manifest)
    return path


def test_a_vendors_definitions_are_an_overlay_that_takes_nothing_from_kafka(tmp_path: Path) -> None:
    taken = HEARTBEAT | {"validVersions": "0-99"}
    source = vendors_jar(tmp_path / "kafka-clients-7.9.0-ce.jar", *SAUCE, taken)
    done = import_definitions(source, tmp_path / "own", vendor="confluent")
    assert (done.release, done.classes, done.kafkas) == ("7.9.0", 2, 1)
    folder = tmp_path / "own" / "vendors" / "confluent"
    assert [str(path.relative_to(folder)) for path in folder.rglob("*.txt")] == ["apis/10001-SecretSauce.txt"]
    found = Library(tmp_path / "own", *vendors_in(tmp_path / "own"), PACKAGE)
    assert found.apis[10_001][0] == "SecretSauce"
    assert {span.release for block in found.api(10_001).blocks for span in block.spans} == {"confluent-7.9.0"}
    newer = vendors_jar(tmp_path / "kafka-clients-7.10.0-ce.jar", *SAUCE)
    assert import_definitions(newer, tmp_path / "own", vendor="confluent").release == "7.10.0"
    assert import_definitions(source, tmp_path / "own", vendor="confluent").written == ()
    assert {key for key in found.apis if key != 10_001} == set(Library(PACKAGE).apis)
    assert found.api(12) == Library(PACKAGE).api(12)


@pytest.mark.parametrize(
    ("name", "manifest", "release"),
    [
        ("kafka-clients-7.9.0-ce.jar", "", "7.9.0"),
        ("kafka-clients-7.9.0-ccs.jar", "", "7.9.0"),
        ("automq-1.5.2.jar", "Implementation-Version: 9.9.9\n", "1.5.2"),
        ("clients.jar", "Manifest-Version: 1.0\nImplementation-Version: 1.5.2-rc1\n", "1.5.2"),
        ("clients.jar", "Bundle-Version: 3.9.0.redhat-1\n", "3.9.0"),
    ],
)
def test_the_release_is_told_by_the_jars_name_or_its_manifest(
    name: str, manifest: str, release: str, tmp_path: Path
) -> None:
    source = vendors_jar(tmp_path / name, *SAUCE, manifest=manifest)
    assert import_definitions(source, tmp_path / "own", vendor="somebody").release == release


def test_a_vendors_release_that_nothing_tells_is_asked_for(tmp_path: Path) -> None:
    source = vendors_jar(tmp_path / "clients.jar", *SAUCE)
    with pytest.raises(ValueError, match=r"the release of somebody's is unknown.*--release"):
        import_definitions(source, tmp_path / "own", vendor="somebody")
