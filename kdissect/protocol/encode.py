"""Values → bytes: the reverse of ``decode``, with the same plan.

Values have the form that ``decode`` returns. A field that is not in the dict has its default, as in Kafka's
own classes. A tagged field with its default value is not written. A field of another version is accepted if
its value is the default or if its definition allows dropping it (``ignorable``). Anything else that does not
fit is refused, with the path to it, before a byte is written.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from struct import Struct as Packer
from typing import Any

from kdissect.protocol.cursor import uuid_text
from kdissect.protocol.plan import (
    ARRAY,
    COMPACT,
    COMPACT_ARRAY,
    NULLABLE_STRUCT,
    STRING,
    STRUCT,
    UUID,
    WIDTHS,
    Plan,
    prefix_width,
)
from kdissect.protocol.schema import UNKNOWN_TAGS, Field, Struct, is_default
from kdissect.wording import plural

_int16, _int32 = Packer(">h").pack, Packer(">i").pack
_PACK = tuple(Packer(form).pack for form in (">b", ">h", ">i", ">q", ">H", ">I", ">d", ">?"))
"""The functions that pack values, by opcode, up to ``BOOLEAN``."""
_INTEGERS = {
    **{f"int{bits}": (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, (1 << bits) - 1) for bits in (16, 32)},
}
_MAX_STRING = (1 << 15) - 1


def encode(struct: Struct, value: dict[str, Any]) -> bytes:
    """The bytes of one struct.

    :raises ValueError: the value breaks its schema; the message begins with the path.
    """
    out = bytearray()
    _write_struct(out, struct.plan, _complete(struct, value, ""))
    return bytes(out)


def size_of(struct: Struct, value: dict[str, Any]) -> int:
    """The number of bytes that :func:`encode` returns, computed without encoding.

    :raises ValueError: as :func:`encode`.
    """
    return _struct_size(struct.plan, _complete(struct, value, ""))


def validate(struct: Struct, value: dict[str, Any]) -> None:
    """:raises ValueError: the value breaks its schema; the message begins with the path."""
    _complete(struct, value, "")


# -- the value against its schema -------------------------------------------------------------------


def _complete(struct: Struct, value: Any, path: str) -> dict[str, Any]:
    """The value with all fields that will be written, and no others."""
    if not isinstance(value, dict):
        raise ValueError(f"{path or struct.name}: a dict is needed, not {_kind(value)}")
    prefix = f"{path}." if path else ""
    complete: dict[str, Any] = {}
    for field in struct.fields:
        found = _checked(field, value.get(field.name, field.default), prefix + field.name)
        if field.tag is None or not is_default(field, found):
            complete[field.name] = found
    for name in value.keys() - struct.by_name.keys():
        if name == UNKNOWN_TAGS:
            complete[name] = _checked_tags(struct, value[name], prefix + name)
        elif name not in struct.absent:
            raise ValueError(f"{prefix}{name}: {struct.name} has no such field")
        else:
            default, ignorable = struct.absent[name]
            if not ignorable and not _is_default(value[name], default):
                raise ValueError(f"{prefix}{name}: version {struct.version} cannot express {value[name]!r}")
    return complete


def _is_default(value: Any, default: Any) -> bool:
    """Whether a value equals the default; absent fields of a struct have their default."""
    if isinstance(value, dict) and isinstance(default, dict):
        return all(name in default and _is_default(item, default[name]) for name, item in value.items())
    return bool(value == default)


def _checked(field: Field, value: Any, path: str) -> Any:
    if value is None:
        # Kafka's own default of a records field is null, whatever its schema allows.
        if not field.nullable and field.type != "records":
            raise ValueError(f"{path}: null is not allowed")
        return None
    if not field.is_array:
        if field.struct is not None:
            return _complete(field.struct, value, path)
        _check_scalar(field.type, value, path)
        return value
    if not isinstance(value, list | tuple):
        raise ValueError(f"{path}: a list is needed, not {_kind(value)}")
    if field.struct is not None:
        return [_complete(field.struct, item, f"{path}[{at}]") for at, item in enumerate(value)]
    for at, item in enumerate(value):
        _check_scalar(field.type.removeprefix("[]"), item, f"{path}[{at}]")
    return value


def _check_scalar(kind: str, value: Any, path: str) -> None:
    if kind in _INTEGERS:
        low, high = _INTEGERS[kind]
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{path}: an integer is needed, not {_kind(value)}")
        if not low <= value <= high:
            raise ValueError(f"{path}: {value} is outside {kind}, {low} to {high}")
    elif kind == "bool":
        if not isinstance(value, bool):
            raise ValueError(f"{path}: true or false is needed, not {_kind(value)}")
    elif kind == "float64":
        if not isinstance(value, float | int) or isinstance(value, bool):
            raise ValueError(f"{path}: a number is needed, not {_kind(value)}")
    elif kind in ("bytes", "records"):
        if not isinstance(value, bytes):
            raise ValueError(f"{path}: bytes are needed, not {_kind(value)}")
    elif not isinstance(value, str):
        raise ValueError(f"{path}: a {kind} is needed, not {_kind(value)}")
    elif kind == "uuid":
        _uuid_bytes(value, path)
    else:
        _check_text(value, path)


def _check_text(value: str, path: str) -> None:
    try:
        size = len(value.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError as error:
        raise ValueError(f"{path}: {error.reason}") from None
    if size > _MAX_STRING:
        raise ValueError(f"{path}: a string of {plural(size, 'byte')}, at most {_MAX_STRING:,} are allowed")


def _checked_tags(struct: Struct, value: Any, path: str) -> list[dict[str, Any]]:
    """Unknown tagged fields. They need a flexible version, and tags that the schema does not have."""
    if not isinstance(value, list):
        raise ValueError(f"{path}: a list is needed, not {_kind(value)}")
    if struct.plan[2] is None and value:
        raise ValueError(f"{path}: version {struct.version} of {struct.name} has no tagged fields")
    taken = {field.tag for field in struct.fields if field.tag is not None}
    for at, item in enumerate(value):
        if not isinstance(item, dict) or item.keys() != {"tag", "data"}:
            raise ValueError(f"{path}[{at}]: tag and data are needed")
        _check_scalar("uint32", item["tag"], f"{path}[{at}].tag")
        _check_scalar("bytes", item["data"], f"{path}[{at}].data")
        if item["tag"] in taken:
            raise ValueError(f"{path}[{at}].tag: {item['tag']} is taken")
        taken.add(item["tag"])
    return value


def _uuid_bytes(text: str, path: str) -> bytes:
    try:
        data = urlsafe_b64decode(text + "==")
    except ValueError:
        data = b""
    if len(data) != 16 or uuid_text(data) != text:
        raise ValueError(f"{path}: {text!r} is not a uuid in Kafka's form")
    return data


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


# -- writing ----------------------------------------------------------------------------------------


def _write_struct(out: bytearray, form: Plan, value: dict[str, Any]) -> None:
    for opcode, name, argument in form[1]:
        _write(out, opcode, argument, value[name])
    if form[2] is not None:
        tagged = [
            (tag, opcode, argument, value[name]) for tag, (opcode, name, argument) in form[2] if name in value
        ]
        tagged += [(item["tag"], -1, None, item["data"]) for item in value.get(UNKNOWN_TAGS, ())]
        write_unsigned_varint(out, len(tagged))
        for tag, opcode, argument, item in sorted(tagged, key=lambda entry: entry[0]):
            content = bytearray(item if opcode < 0 else b"")
            if opcode >= 0:
                _write(content, opcode, argument, item)
            write_unsigned_varint(out, tag)
            write_unsigned_varint(out, len(content))
            out += content


def _write(out: bytearray, opcode: int, argument: Any, value: Any) -> None:
    if opcode < UUID:
        out += _PACK[opcode](value)
    elif opcode == UUID:
        out += _uuid_bytes(value, "")
    elif opcode < ARRAY:
        data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        _write_length(out, opcode, -1 if data is None else len(data))
        out += data or b""
    elif opcode <= COMPACT_ARRAY:
        _write_length(out, opcode, -1 if value is None else len(value))
        for item in value or ():
            _write(out, argument[1], argument[2], item)
    elif opcode == STRUCT:
        _write_struct(out, argument, value)
    else:
        absent = b"\xff" if opcode == NULLABLE_STRUCT else b"\0"
        out += absent if value is None else b"\x01"
        if value is not None:
            _write_struct(out, argument, value)


def _write_length(out: bytearray, opcode: int, length: int) -> None:
    if opcode in COMPACT:
        write_unsigned_varint(out, length + 1)
    else:
        out += _int16(length) if opcode == STRING else _int32(length)


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Append KIP-482's varint: seven bits a byte, lowest first."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


# -- sizing -----------------------------------------------------------------------------------------


def _struct_size(form: Plan, value: dict[str, Any]) -> int:
    size = sum(_size(opcode, argument, value[name]) for opcode, name, argument in form[1])
    if form[2] is not None:
        tagged = [
            (tag, _size(field[0], field[2], value[field[1]])) for tag, field in form[2] if field[1] in value
        ]
        tagged += [(item["tag"], len(item["data"])) for item in value.get(UNKNOWN_TAGS, ())]
        size += varint_size(len(tagged))
        size += sum(varint_size(tag) + varint_size(length) + length for tag, length in tagged)
    return size


def _size(opcode: int, argument: Any, value: Any) -> int:
    if opcode < STRING:
        return WIDTHS[opcode]
    if opcode < ARRAY:
        data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        length = 0 if data is None else len(data)
        return _prefix_size(opcode, -1 if data is None else length) + length
    if opcode <= COMPACT_ARRAY:
        size = _prefix_size(opcode, -1 if value is None else len(value))
        return size + sum(_size(argument[1], argument[2], item) for item in value or ())
    if opcode == STRUCT:
        return _struct_size(argument, value)
    return 1 if value is None else 1 + _struct_size(argument, value)


def _prefix_size(opcode: int, length: int) -> int:
    if opcode in COMPACT:
        return varint_size(length + 1)
    return prefix_width(opcode)


def varint_size(value: int) -> int:
    """The number of bytes that :func:`write_unsigned_varint` writes."""
    return max(1, (value.bit_length() + 6) // 7)
