"""Kafka's own definitions (JSON files, or a jar that holds them) → our text, merged with the existing
definitions.

The rules of the merge are those of :mod:`kdissect.protocol.merging`. Importing the same release again changes
nothing. A source may come from anybody. So the bytes read are bounded, and each definition is checked
(:mod:`kdissect.protocol.vetting`) before it is used.
"""

from __future__ import annotations

import json
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from kdissect.limits import DEEPEST
from kdissect.protocol import plan
from kdissect.protocol.definition import (
    NONE,
    Block,
    Document,
    FieldDefinition,
    ReleaseSpan,
    VersionRange,
    parse,
    versions_of,
    write,
)
from kdissect.protocol.library import Library, package_folder, vendor_folder
from kdissect.protocol.merging import KafkaClass, merge
from kdissect.protocol.schema import build
from kdissect.protocol.vetting import vet
from kdissect.wording import plural

MOST_ENTRIES = 20_000
"""The largest number of entries of a jar, of any kind."""
MOST_DEFINITIONS = 2_000
LARGEST_DEFINITION = 1 << 20
"""The largest size of one text, in bytes."""
MOST_BYTES = 32 << 20
"""The largest size of all texts together, in bytes."""
MOST_WORK = 200_000
"""The largest number of fields of all classes together, each counted once per version. Kafka 4.4 has
8,400."""
_RELEASE = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,5}){1,4}")
_ZIP = b"PK\x03\x04"
_MANIFEST = "META-INF/MANIFEST.MF"
_ZIP_END, _ZIP64_LOCATOR = b"PK\x05\x06", b"PK\x06\x07"
_ENTRY_BYTES = 46
"""The smallest size of an entry in a jar's directory."""


class ImportReport(NamedTuple):
    """The result of an import."""

    release: str
    classes: int
    written: tuple[str, ...]
    """The files of the target folder that are new or changed."""
    halves: tuple[str, ...] = ()
    """APIs left out because the definition of their request, or of their response, is missing."""
    kafkas: int = 0
    """The number of a vendor's classes left out because Kafka has them."""


def import_definitions(
    source: Path,
    target: Path,
    release: str | None = None,
    library: Library | None = None,
    vendor: str | None = None,
) -> ImportReport:
    """Merge the definitions of a folder or jar with those of ``library``, and write the differing ones into
    ``target``.

    :param release: the Kafka release; by default it is read from the jar, or from a folder's name.
    :param library: by default the definitions of ``target``, then kdissect's own.
    :param vendor: the vendor, if the definitions are not Kafka's; the release is then the vendor's. Classes
        that Kafka has too are left out: a vendor's numbers must not replace Kafka's.
    :raises ValueError: no definitions in the source, an invalid definition, or no release.
    """
    kafkas = Library(package_folder())
    if vendor is not None:
        target = vendor_folder(target, vendor)
    library = library or Library(target, package_folder())
    if source.is_dir():
        next(source.iterdir(), None)  # to rglob, an unreadable folder looks empty
        if not any(source.rglob("*.json")):
            raise ValueError(f"{source}: there are no definitions (*.json) in this folder")
        texts, release = _folder(source), release or source.name
    else:
        _check_jar(source)
        texts, release = _jar(source), release or _jar_release(source)
    if not _RELEASE.fullmatch(release):
        told = f"{release} is not one" if release else "the source does not say it"
        whose = "Kafka release" if vendor is None else f"release of {vendor}'s"
        raise ValueError(f"{source}: the {whose} is unknown ({told}): give --release X.Y.Z")
    try:
        classes = _classes(texts, release if vendor is None else f"{vendor}-{release}")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{source}: a damaged jar, or one with a password: {error}") from None
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    if not classes:
        raise ValueError(f"{source}: no message definitions")
    merged: dict[int | str, tuple[str, Document]] = {}
    read = len(classes)
    if vendor is not None:
        classes = [each for each in classes if not _is_known(kafkas, each)]
    for each in classes:
        key = each.name if each.api_key is None else each.api_key
        merged[key] = merge(merged.get(key) or _known(library, key), each)
    halves = {
        key: name for key, (name, document) in merged.items() if isinstance(key, int) and _is_half(document)
    }
    written = [
        path
        for key, (name, document) in sorted(merged.items(), key=str)
        if key not in halves and (path := _put(target, library, key, name, document))
    ]
    return ImportReport(release, len(classes), tuple(written), tuple(halves.values()), read - len(classes))


def _is_known(library: Library, each: KafkaClass) -> bool:
    return each.name in library.data if each.api_key is None else each.api_key in library.apis


def _classes(texts: Iterator[tuple[str, str, bytes]], release: str) -> list[KafkaClass]:
    """The classes that the texts define, each once.

    :raises ValueError: a definition is invalid, or there are too many.
    """
    classes: dict[tuple[object, str], KafkaClass] = {}
    count = size = work = 0
    for group, name, data in texts:
        count, size = count + 1, size + len(data)
        if count > MOST_DEFINITIONS:
            raise ValueError(f"more than {MOST_DEFINITIONS:,} definitions")
        if len(data) > LARGEST_DEFINITION or size > MOST_BYTES:
            what = name if len(data) > LARGEST_DEFINITION else "all definitions together"
            most = LARGEST_DEFINITION if len(data) > LARGEST_DEFINITION else MOST_BYTES
            raise ValueError(f"{what}: more than {most >> 20} MiB")
        try:
            definition = read_json(data.decode("utf-8"))
            work += vet(definition)
            if work > MOST_WORK:
                raise ValueError(f"more than {plural(MOST_WORK, 'field')} in all versions together")
            read = kafka_class(group, definition, release)
        except json.JSONDecodeError as error:
            raise ValueError(f"{name}: not JSON: {error}") from error
        except RecursionError:
            raise ValueError(f"{name}: it is nested deeper than {DEEPEST}") from None
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        if read is None:
            continue
        key = (read.name if read.api_key is None else read.api_key), read.block.kind
        if key in classes:
            raise ValueError(f"{name}: {read.name} is defined twice")
        classes[key] = read
    return list(classes.values())


def _check_jar(source: Path) -> None:
    """:raises OSError: it cannot be read.
    :raises ValueError: it is no jar, or an incomplete one."""
    if not stat.S_ISREG(source.stat().st_mode):
        raise ValueError(f"{source}: neither a folder nor a jar")
    with source.open("rb") as file:
        begin = file.read(len(_ZIP))
        _check_directory(source, file)
    if not zipfile.is_zipfile(source):
        is_cut = begin == _ZIP
        what = "a jar whose end is missing" if is_cut else "neither a folder nor a jar"
        raise ValueError(f"{source}: {what}")


def _check_directory(source: Path, file: BinaryIO) -> None:
    """Check the size of a jar's directory, because Python makes an object of each entry when it opens a jar.

    :raises ValueError: it has too many entries.
    """
    size = file.seek(0, 2)
    start = max(0, size - (1 << 16) - 64)
    file.seek(start)
    data = file.read()
    end = data.rfind(_ZIP_END)
    if end < 0:
        return
    count = int.from_bytes(data[end + 10 : end + 12], "little")
    said = int.from_bytes(data[end + 12 : end + 16], "little")
    # The count may be false. Below 4 GiB a jar needs no second directory, which could hold any number.
    is_large = count > MOST_ENTRIES or said > MOST_ENTRIES * 4 * _ENTRY_BYTES
    if is_large or _ZIP64_LOCATOR in data[:end][-20:]:
        raise ValueError(f"{source}: a jar with more than {MOST_ENTRIES:,} entries")


def _is_half(document: Document) -> bool:
    """Whether an API's definition has only its request or only its response, so that it cannot be used."""
    return {block.kind for block in document.blocks if not block.era} != {"request", "response"}


def _known(library: Library, key: int | str) -> tuple[str, Document] | None:
    try:
        if isinstance(key, int):
            document = library.api(key)
            return library.apis[key][0], document
        document = library.data_class(key)
        return library.data[key][0], document
    except LookupError:
        return None


def _put(target: Path, library: Library, key: int | str, name: str, document: Document) -> str | None:
    """Write one file, if it differs. Return its name in the target folder, None if it was not written."""
    known = library.apis.get(key) if isinstance(key, int) else library.data.get(key)
    broken = [problem.file for problem in library.problems if problem.key == key]
    for damaged in broken:
        if isinstance(damaged, Path):
            damaged.unlink(missing_ok=True)
    if not broken and known and known[0] == name and known[1].read_text(encoding="utf-8") == write(document):
        return None
    path = f"apis/{key:03}-{name}.txt" if isinstance(key, int) else f"data/{name}/{key}.txt"
    file = target / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(key, int):
        for renamed in file.parent.glob(f"{key:03}-*.txt"):
            renamed.unlink()
    # Write to another file first: concurrent readers find the old text or the new one.
    beside = file.with_name("." + file.name)
    beside.write_text(write(document), encoding="utf-8", newline="\n")
    beside.replace(file)
    return path


# -- Kafka's JSON -----------------------------------------------------------------------------------


def _folder(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    """Group, name and text of each definition. A text is read up to one byte beyond the bound."""
    for path in sorted(path for path in folder.rglob("*.json") if path.is_file()):
        with path.open("rb") as file:
            yield _group(path.parent.resolve().name), path.name, file.read(LARGEST_DEFINITION + 1)


def _jar(jar: Path) -> Iterator[tuple[str, str, bytes]]:
    group = _group(re.sub(r"(^kafka-|-\d.*|\.jar$)", "", jar.name))
    with zipfile.ZipFile(jar) as archive:
        names = archive.namelist()
        if len(names) > MOST_ENTRIES:
            raise ValueError(f"a jar with more than {MOST_ENTRIES:,} entries")
        for name in sorted(names):
            if re.fullmatch(r"common/message/\w+\.json", name):
                yield group, name, _entry(archive, name)


def _group(name: str) -> str:
    """Check a group, which becomes the name of a folder.

    :raises ValueError: it is no valid name.
    """
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", name, re.ASCII):
        raise ValueError(f"{name!r} is not the name of a part of Kafka, such as kafka-clients-X.Y.Z.jar")
    return name


def _entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read an entry up to one byte beyond the bound, whatever size the entry announces."""
    with archive.open(name) as file:
        return file.read(LARGEST_DEFINITION + 1)


def _jar_release(jar: Path) -> str:
    """The release from the jar's own file, else from its file name, else from its manifest."""
    manifest = ""
    try:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"kafka/kafka(-streams)?-version\.properties", name):
                    text = _entry(archive, name).decode("utf-8", "replace")
                    found = re.search(r"^version=([0-9.]{1,40})", text, re.MULTILINE)
                    if found:
                        return found[1]
            if _MANIFEST in archive.namelist():
                manifest = _entry(archive, _MANIFEST).decode("utf-8", "replace")
    except (zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise zipfile.BadZipFile(str(error)) from None
    found = re.search(r"-([0-9]+(?:\.[0-9]+)+)(?:[-.]\w+)*\.jar$", jar.name)
    if found is None:
        found = re.search(
            r"^(?:Implementation|Bundle)-Version: *([0-9]+(?:\.[0-9]+)+)", manifest, re.MULTILINE
        )
    return found[1] if found else ""


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*\\?(?:"|\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""Text or a comment. An unclosed one extends to the end, so that it is not searched for again at each
place."""


def read_json(text: str) -> dict[str, Any]:
    """Read Kafka's JSON: ``//`` and ``/* */`` comments, and text after the object, are ignored."""
    plain = _TOKEN.sub(lambda token: token[0] if token[0].startswith('"') else " ", text)
    value = json.JSONDecoder().raw_decode(plain.strip())[0]
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def kafka_class(group: str, definition: dict[str, Any], release: str) -> KafkaClass | None:
    """One definition; None if the release has no version of it (a key that is only reserved).

    :param definition: a definition that :func:`~kdissect.protocol.vetting.vet` accepted.
    :raises ValueError: a type or a default in it is invalid.
    """
    valid = versions_of(definition["validVersions"])
    if valid == NONE:
        return None
    kind = definition["type"]
    is_api = kind in ("request", "response")
    structures = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    _collect(definition["fields"], structures)
    spans = [ReleaseSpan(valid, release)]
    if definition.get("latestVersionUnstable"):
        spans = [ReleaseSpan(VersionRange(valid.high, valid.high), release, True)]
        if valid.low < valid.high:
            spans.insert(0, ReleaseSpan(VersionRange(valid.low, valid.high - 1), release))
    block = Block(
        kind,
        tuple(spans),
        versions_of(definition.get("flexibleVersions", "none")),
        _fields(definition["fields"], structures, set()),
        None if is_api or definition.get("apiKey") is None else int(definition["apiKey"]),
    )
    name = definition["name"]
    if parse(write(Document((block,)))) != Document((block,)):
        raise ValueError("it contains a word that kdissect's definitions cannot express")
    for version in (valid.low, valid.high):
        build(block, name, version)
    return KafkaClass(group, name, int(definition["apiKey"]) if is_api else None, block)


def _collect(fields: list[dict[str, Any]], structures: dict[str, list[dict[str, Any]]]) -> None:
    for field in fields:
        if "fields" in field:
            structures.setdefault(field["type"].removeprefix("[]"), field["fields"])
            _collect(field["fields"], structures)


def _fields(
    fields: list[dict[str, Any]], structures: dict[str, list[dict[str, Any]]], used: set[str]
) -> tuple[FieldDefinition, ...]:
    definitions = []
    for field in fields:
        inner: tuple[FieldDefinition, ...] = ()
        element = field["type"].removeprefix("[]")
        if element in structures and element not in used:
            used.add(element)
            inner = _fields(structures[element], structures, used)
        tagged = versions_of(field.get("taggedVersions", "none"))
        definitions.append(
            FieldDefinition(
                name=field["name"][0].lower() + field["name"][1:],
                type=field["type"],
                versions=versions_of(field["versions"]) if "versions" in field else tagged,
                nullable=versions_of(field.get("nullableVersions", "none")),
                tag=int(field["tag"]) if "tag" in field else None,
                tagged=tagged,
                flexible=versions_of(field["flexibleVersions"]) if "flexibleVersions" in field else None,
                default=_default(field),
                ignorable=bool(field.get("ignorable")),
                key=bool(field.get("mapKey")),
                entity=field.get("entityType"),
                fields=inner,
            )
        )
    return tuple(definitions)


def _default(field: dict[str, Any]) -> str | None:
    """The default as text; None if it is the type's own default. To Kafka's generator a bare JSON null is no
    default; only the text ``null`` is."""
    value, kind = field.get("default"), field["type"]
    if value is None:
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text != "null" and kind in plan.FIXED and kind.strip("u0123456789") == "int":
        text = str(int(text, 0))
    return None if text in ("", "0", "false") else text
