"""Commands that read files of others, as targets: what they print, and how they end.

Whatever a file holds, a command ends with a code of the contract, and says no more than lines of its own on
stderr: an exception that nobody foresaw is one.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kdissect.cli import main
from kdissect.cli.config import KEYS, load_config
from kdissect.cli.errors import Wrong
from kdissect.cli.exit_codes import DONE, FAULTS_SEEN, UNREADABLE
from kdissect.limits import Limits
from tests.lab import DATA


def _run(*arguments: str) -> None:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    foreseen_only = patch.dict(os.environ, KDISSECT_DEBUG="1")  # what nobody foresaw is raised
    with foreseen_only, redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    assert code in (DONE, FAULTS_SEEN, UNREADABLE), code
    err.flush()
    err.seek(0)
    for line in err.read().split("\n")[:-1]:
        assert line.startswith("kdissect: "), line
        assert line.isprintable(), line


# -- definitions

_KAFKA: list[dict[str, Any]] = [
    {
        "apiKey": 12, "type": "request", "name": "HeartbeatRequest", "validVersions": "0-5",
        "flexibleVersions": "4+", "latestVersionUnstable": True, "fields": [
            {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
            {"name": "Id", "type": "string", "versions": "3+", "nullableVersions": "3+", "default": "null"},
        ],
    },
    {
        "apiKey": 12, "type": "response", "name": "HeartbeatResponse", "validVersions": "0-5",
        "flexibleVersions": "4+", "fields": [
            {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": True},
            {"name": "ErrorCode", "type": "int16", "versions": "0+", "default": "0x7f"},
        ],
    },
    {"apiKey": 999, "type": "request", "name": "MoonRequest", "validVersions": "none", "fields": []},
    {"apiKey": 99, "type": "metadata", "name": "MoonRecord", "validVersions": "0-1", "flexibleVersions": "0+",
     "fields": [
         {"name": "Id", "type": "uuid", "versions": "0+", "taggedVersions": "1+", "tag": 0},
         {"name": "Parts", "type": "[]Part", "versions": "0+", "fields": [
             {"name": "Index", "type": "int32", "versions": "0+", "mapKey": True},
             {"name": "Load", "type": "float64", "versions": "0+", "default": "1.5"},
         ]},
         {"name": "More", "type": "[]Shared", "versions": "1+", "nullableVersions": "1+"},
     ],
     "commonStructs": [{"name": "Shared", "versions": "0+", "fields": [
         {"name": "Data", "type": "bytes", "versions": "0+", "zeroCopy": True}]}]},
    {"type": "header", "name": "RequestHeader", "validVersions": "0-2", "flexibleVersions": "2+", "fields": [
        {"name": "ClientId", "type": "string", "versions": "1+", "flexibleVersions": "none"}]},
    {"apiKey": 3, "type": "coordinator-key", "name": "MoonKey", "validVersions": "0", "fields": []},
]  # fmt: skip


def schema(data: bytes) -> None:
    """A jar for ``schema import``; or after a byte that is odd the texts of definitions in one, with a null
    between."""
    kind, content = data[:1], data[1:]
    with tempfile.TemporaryDirectory(prefix="kdissect-fuzz-") as folder:
        path = Path(folder, "kafka-clients-9.9.0.jar")
        if kind and kind[0] % 2:
            with zipfile.ZipFile(path, "w") as archive:
                for at, text in enumerate(content.split(b"\0")):
                    archive.writestr(f"common/message/A{at}.json", text)
        else:
            path.write_bytes(content)
        _run("schema", "import", str(path), "--to", f"{folder}/out")
        made = sorted(Path(folder, "out").rglob("*"))
        assert all(each.suffix == ".txt" and each.name.isprintable() for each in made if each.is_file())


def schema_seeds() -> Iterator[bytes]:
    texts = [json.dumps(each).encode() for each in _KAFKA]
    for text in texts:
        yield b"\1" + text
    yield b"\1" + b"\0".join(texts)
    yield b"\1// a comment\n/* and another */" + texts[0]
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr("kafka/kafka-version.properties", "version=9.8.0\n")
            for at, text in enumerate(texts):
                archive.writestr(f"common/message/A{at}.json", text)
        yield b"\0" + file.getvalue()


# -- log directories

_FOLDERS = ("orders-0", "__consumer_offsets-3", "__cluster_metadata-0", "__transaction_state-1")
_FILES = (
    *("00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex"),
    *("00000000000000000000.txnindex", "00000000000000000000.snapshot", "leader-epoch-checkpoint"),
    *("replication-offset-checkpoint", "quorum-state", "meta.properties", "partition.metadata"),
    *("00000000000000000000-0000000000.checkpoint", "cleaner-offset-checkpoint"),
)
_FORMS = (
    *(("-T", "text"), ("-T", "records", "--embedded"), ("-T", "records.csv", "--bytes", "hex")),
    *(("-T", "batches"), ("-T", "index"), ("-T", "snapshot"), ("-T", "faults", "--strict")),
)


def log(data: bytes) -> None:
    """A file for ``log``, after a byte that says its folder and name and one that says the form."""
    which, form, content = data[:1] or b"\0", data[1:2] or b"\0", data[2:]
    with tempfile.TemporaryDirectory(prefix="kdissect-fuzz-") as folder:
        path = Path(folder, _FOLDERS[which[0] // 16 % len(_FOLDERS)], _FILES[which[0] % 16 % len(_FILES)])
        path.parent.mkdir()
        path.write_bytes(content)
        _run("log", folder, *_FORMS[form[0] % len(_FORMS)])


def log_seeds() -> Iterator[bytes]:
    counts: defaultdict[str, int] = defaultdict(int)
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress((DATA / "logdirs.tar.xz").read_bytes()))) as archive:
        for member in archive:
            name = member.name.rpartition("/")[2]
            at = next((at for at, each in enumerate(_FILES) if each[-12:] == name[-12:]), None)
            file = archive.extractfile(member) if member.isfile() and at is not None else None
            if file is not None and at is not None and member.size and counts[name] < 6:
                counts[name] += 1
                folder = next((number for number, each in enumerate(_FOLDERS) if each[:-2] in member.name), 0)
                yield bytes((folder * 16 + at, counts[name])) + file.read(2_000)


# -- the configuration


def config(data: bytes) -> None:
    """A configuration file; or after a byte that is odd the environment, a variable a line."""
    kind, content = data[:1], data[1:]
    with tempfile.TemporaryDirectory(prefix="kdissect-fuzz-") as folder:
        path = Path(folder, "config.toml")
        path.write_bytes(b"" if kind and kind[0] % 2 else content)
        environment = {"KDISSECT_CONFIG": str(path)}
        if kind and kind[0] % 2:
            for line in content.decode("utf-8", "surrogateescape").split("\n"):
                name, _, value = line.partition("=")
                if name != "CONFIG":
                    environment[f"KDISSECT_{name}"] = value
        for for_screens in (False, True):
            with redirect_stderr(io.StringIO()):
                try:
                    found = load_config(environment, for_screens=for_screens)
                except Wrong:
                    continue
            assert all(isinstance(each, int) for each in found.limits)
            assert all(0 < port < 65_536 for port in found.ports)


def config_seeds() -> Iterator[bytes]:
    for text in (
        'columns = ["number", "api", "latency_ns"]\nports = [29092]\ncolor = "auto"\ntime = "r"\n',
        'slow_ms = "4s"\ntheme = "nord"\n[topics]\n"lVhqmGaYRoKUVMnTbJRSXA" = "orders"\n',
        '[filters]\nslow = "latency > 100ms and not api == Fetch"\n[keymap]\nsave = "ctrl+s f2"\n',
        "[limits]\nframe_bytes = 104857600\nlayers = 9\n",
        '[secrets]\nshow = ["Moon.token"]\n',
    ):
        yield b"\0" + text.encode()
    for text in (
        "COLUMNS=number,api\nPORTS=1 2\nTIME=u\nSLOW_MS=4s",
        "LIMITS_LAYERS=3\nCOLOR=never\nTHEME=nord",
    ):
        yield b"\1" + text.encode()
    yield b"\1" + "\n".join(f"{key.upper()}=1" for key in KEYS).encode()
    yield b"\1" + "\n".join(f"LIMITS_{name.upper()}=7" for name in Limits._fields).encode()
