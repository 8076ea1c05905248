"""Faults of the bytes inside a message.

Decoding a message does not look into its bytes fields. Callers that need their content ask for it, and for
its faults here. The faults are found in the same places, and by the same rules, as the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.embedded.decoded import Context, Embedded
from kdissect.embedded.envelope import EmbeddedMessage
from kdissect.embedded.fields import NO_CONTEXT, decode_field
from kdissect.model import Fault
from kdissect.protocol.traits import field_traits


def embedded_faults(message: str, values: dict[str, Any], context: Context = NO_CONTEXT) -> Iterator[Fault]:
    """The faults of all bytes embedded in a message, at every depth.

    They have no packet. They have no offset either, because embedded bytes may be stored in another form in
    the message.

    :param message: Kafka's name of the message class.
    :param values: the result of ``decode`` for it.
    :param context: as for :func:`~kdissect.embedded.fields.decode_field`.
    """
    if field_traits(message).holds:
        yield from _inside(message, [values], context)


def _inside(message: str, ancestors: list[dict[str, Any]], context: Context) -> Iterator[Fault]:
    for name, value in ancestors[-1].items():
        if isinstance(value, bytes):
            yield from _of_field(message, ancestors, name, value, context)
            continue
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, dict):
                yield from _inside(message, [*ancestors, item], context)


def _of_field(
    message: str, ancestors: list[dict[str, Any]], name: str, value: bytes, context: Context
) -> Iterator[Fault]:
    found = decode_field(message, ancestors, name, value, context)
    if found is None:
        return
    yield from found.faults
    if isinstance(found, EmbeddedMessage):
        found = found.body
    if isinstance(found, Embedded) and found.struct is not None:
        yield from embedded_faults(found.struct.name, found.values, found.context)
