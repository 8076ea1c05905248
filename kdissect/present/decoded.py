"""Keys and values of records, decoded: into rows, and into lines of NDJSON many at a time.

Nothing here runs where decoding is not asked for.
"""

from __future__ import annotations

from typing import Any

from kdissect.payload.decoder import Decoded, Decoder
from kdissect.payload.framing import Headers
from kdissect.payload.schemas import TOPIC
from kdissect.protocol.json_form import dumps

COLUMNS = ("keyDecoded", "valueDecoded", "keyFormat", "valueFormat")
"""The columns that are filled here, in their order, the last of the table."""


def add_decoded(row: dict[str, Any], topic: str, decoder: Decoder) -> None:
    """Add :data:`COLUMNS` to a row of records, from what it shows: a secret that is hidden there is not
    decoded either."""
    key, value, headers = row["key"], row["value"], row["headers"]
    if topic == TOPIC:
        decoder.schemas.learn(key, value)
    for side, data in (("key", key), ("value", value)):
        if data is not None:
            found = decoder.decode(topic, side, data, headers)
            row[f"{side}Decoded"] = found.value
            row[f"{side}Format"] = found.told()


class Texts:
    """:data:`COLUMNS` of records as the end of a line of JSON.

    What is told of the format is the same for nearly all records of a topic, so its text is kept.
    """

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._told: dict[tuple[Any, ...], str] = {}

    def text(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
        """What follows the other columns: a comma before each, and the brace at the end."""
        decoder = self._decoder
        if topic == TOPIC:
            decoder.schemas.learn(key, value)
        values, formats = "", ""
        if key is not None:
            found = decoder.decode(topic, "key", key, headers)
            if found.value is not None:
                values = f',"keyDecoded":{dumps(found.value)}'
            formats = f',"keyFormat":{self._format(found)}'
        if value is not None:
            found = decoder.decode(topic, "value", value, headers)
            if found.value is not None:
                values += f',"valueDecoded":{dumps(found.value)}'
            formats += f',"valueFormat":{self._format(found)}'
        return f"{values}{formats}}}\n".encode("ascii")

    def _format(self, found: Decoded) -> str:
        if found.problem is not None:
            return dumps(found.told())
        told = (found.format, found.confidence, found.framing, found.name, found.envelope, found.compression)
        text = self._told.get(told)
        if text is None:
            text = dumps(found.told())
            if len(self._told) < _MOST_KEPT:
                self._told[told] = text
        return text


_MOST_KEPT = 4_096
