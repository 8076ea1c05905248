"""What the user says of topics."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from kdissect.payload.decoder import PayloadDecoder
from kdissect.payload.schemas import Schemas
from kdissect.payload.tree import draw
from kdissect.registry.rules import rule_of

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}'
PROTO = (
    'syntax = "proto3"; import "line.proto"; message A {} message B { int32 n = 1; message C {} Line l = 2; }'
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "order.avsc").write_text(ORDER)
    (tmp_path / "b.proto").write_text(PROTO)
    (tmp_path / "line.proto").write_text('syntax = "proto3"; message Line {}')
    (tmp_path / "bad.avsc").write_text("{")
    return tmp_path


def decode(text: str, data: bytes, side: str = "value") -> object:
    return PayloadDecoder(rules=[rule_of(text, Schemas())]).decode("orders", side, data).value


@pytest.mark.parametrize(
    ("form", "data", "value"),
    [
        ("avro:{}/order.avsc", b"\x06", {"id": 3}),
        ("protobuf:{}/b.proto#B", b"\x08\x03", {"n": 3}),
        ("protobuf:{}/b.proto#C", b"", {}),
        ("protobuf:{}/b.proto", b"", {}),
        ("protobuf", b"\x08\x03", [{"field": 1, "wire": "varint", "value": 3}]),
        ("json", b"5", 5),
        ("text", b"5", "5"),
        ("int64", b"\0\0\0\0\0\0\0\x05", 5),
        ("hex", b"\xff", "ff"),
        ("raw", b"{}", None),
        ("auto", b"{}", {}),
        ("avro", b"{}", None),
    ],
)
def test_a_rule_decodes_values(form: str, data: bytes, value: object, files: Path) -> None:
    assert decode(f"or*={form.format(files)}", data) == value


def test_a_rule_may_be_for_keys(files: Path) -> None:
    assert decode("orders:key=int32", b"\0\0\0\x05", "key") == 5
    assert decode("orders:key=int32", b"abcd", "value") == "abcd"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("orders", "the form is TOPIC="),
        ("=json", "the form is TOPIC="),
        ("orders=", "the form is TOPIC="),
        ("orders=jsn", "there is no form 'jsn'; there are avro:FILE"),
        ("orders=json:x", "'json' takes no file"),
        ("orders=avro:", "a file is needed after avro:"),
        ("orders=avro:nowhere", "nowhere: cannot be read: No such file"),
        ("orders=avro:{}/bad.avsc", "bad.avsc: an Avro schema is JSON"),
        ("orders=protobuf:{}/b.proto#X", "there is no message 'X'; there are A, B, B.C, Line"),
    ],
)
def test_a_wrong_rule_is_refused(text: str, reason: str, files: Path) -> None:
    with pytest.raises(ValueError, match=reason):
        rule_of(text.format(files), Schemas())


UPPER = """
def upper(data):
    text = data.decode("ascii").upper()
    return text, [("first", 0, 1)]

def plain(data):
    return {"text": data.decode()}

def odd(data):
    return {1: {2, 3}}

def endless(data):
    value = []
    value.append(value)
    return value
"""


def test_other_packages_bring_decoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "upper_case-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: upper-case\nVersion: 1.0\n")
    names = ("upper", "plain", "odd", "endless")
    points = "".join(f"{name} = upper_case:{name}\n" for name in names)
    (about / "entry_points.txt").write_text(
        f"[kdissect.payloads]\n{points}broken = upper_case.missing:decode\n"
    )
    (tmp_path / "upper_case.py").write_text(UPPER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "upper_case", raising=False)
    rule = rule_of("*=upper", Schemas())
    decoder = PayloadDecoder(rules=[rule])
    found = decoder.decode("t", "value", b"abc")
    assert (found.format, found.value, found.spans) == ("upper", "ABC", (("first", 0, 1),))
    drawn = draw(decoder, "t", "value", b"abc", (), 7)
    assert [(each.name, each.value, each.start, each.end) for each in drawn] == [
        ("first", b"a", 7, 8),
        ("(data)", b"bc", 8, 10),
    ]
    assert decoder.decode("t", "value", b"\xff").problem == "is not upper: UnicodeDecodeError"
    assert PayloadDecoder(rules=[rule_of("*=plain", Schemas())]).decode("t", "value", b"abc").value == {
        "text": "abc"
    }
    for name in ("odd", "endless"):
        odd = PayloadDecoder(rules=[rule_of(f"*={name}", Schemas())]).decode("t", "value", b"abc")
        assert (odd.value, odd.problem) == (None, f"is not {name}: ValueError")
    with pytest.raises(ValueError, match="the decoder broken cannot be loaded: ModuleNotFoundError"):
        rule_of("*=broken", Schemas())
    with pytest.raises(ValueError, match=r"there is no form 'upperr'; there are .*upper"):
        rule_of("*=upperr", Schemas())
    pickle.loads(pickle.dumps(decoder))
