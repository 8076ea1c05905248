"""The fields of a line for ``kdissect bytes``. Each field has the right type, or there is a ValueError that
begins with its path.
"""

from __future__ import annotations

from typing import Any

from kdissect.present.secret_names import REDACTED

Object = dict[str, Any]

SHOW_SECRETS = "a secret is redacted here: decode with --show-secrets"


def text_field(asked: Object, name: str, meaning: str = "text") -> str:
    """A text that must be present."""
    text = optional_text(asked, name)
    if text is None:
        raise ValueError(f"{name}: {meaning} is needed")
    return text


def optional_text(asked: Object, name: str) -> str | None:
    """A text; None if it is null or absent."""
    value = asked.get(name)
    if not isinstance(value, str | None):
        raise ValueError(f"{name}: text is needed")
    return value


def hex_field(asked: Object, name: str) -> bytes:
    """The bytes of a field of hex digits."""
    data = optional_hex(asked, name)
    if data is None:
        raise ValueError(f"{name}: needed")
    return data


def optional_hex(asked: Object, name: str, path: str = "") -> bytes | None:
    """The bytes of a field of hex digits; None if it is null or absent."""
    return bytes_of(asked.get(name), f"{path}{name}")


def bytes_of(digits: Any, path: str) -> bytes | None:
    """The bytes of hex digits; None for null."""
    if digits is None:
        return None
    try:
        return bytes.fromhex(digits)
    except (ValueError, TypeError):
        if digits == REDACTED:
            raise ValueError(f"{path}: {SHOW_SECRETS}") from None
        raise ValueError(f"{path}: hex digits are needed") from None


def integer_field(asked: Object, name: str, path: str = "") -> int:
    """A whole number that must be present."""
    number = optional_integer(asked, name, path)
    if number is None:
        raise ValueError(f"{path}{name}: a whole number is needed")
    return number


def optional_integer(asked: Object, name: str, path: str = "") -> int | None:
    """A whole number of at most 64 bits, the most that Kafka has; None if it is null or absent."""
    value = asked.get(name)
    if not isinstance(value, int | None) or isinstance(value, bool):
        raise ValueError(f"{path}{name}: a whole number is needed")
    if value is not None and not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{path}{name}: {value} does not fit 64 bits")
    return value


def refuse_redacted(value: Any, path: str = "") -> None:
    """Refuse values with an omitted secret.

    :raises ValueError: a secret was left out in these values, so they cannot be encoded.
    """
    if value == REDACTED:
        raise ValueError(f"{path}: {SHOW_SECRETS}")
    if isinstance(value, dict):
        for name, item in value.items():
            refuse_redacted(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            refuse_redacted(item, f"{path}[{at}]")


def flag_field(asked: Object, name: str, path: str = "") -> bool:
    """True or false; false if it is null or absent."""
    value = asked.get(name)
    if not isinstance(value, bool | None):
        raise ValueError(f"{path}{name}: true or false is needed")
    return bool(value)


def list_field(asked: Object, name: str, path: str = "") -> list[Any]:
    """A list that must be present."""
    value = asked.get(name)
    if not isinstance(value, list):
        raise ValueError(f"{path}{name}: a list is needed")
    return value


def objects_field(asked: Object, name: str) -> list[Object]:
    """A list of objects that must be present."""
    values = list_field(asked, name)
    for at, value in enumerate(values):
        if not isinstance(value, dict):
            raise ValueError(f"{name}[{at}]: an object is needed")
    return values
