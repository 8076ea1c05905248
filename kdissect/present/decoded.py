"""Keys and values of records, decoded: into rows, and into lines of NDJSON many at a time.

Nothing here runs where decoding is not asked for.
"""

from __future__ import annotations

from typing import Any

from kdissect.payload.decoder import Decoder
from kdissect.payload.schemas import TOPIC


def add_decoded(row: dict[str, Any], topic: str, decoder: Decoder) -> None:
    """Add ``keyDecoded``, ``valueDecoded``, ``keyFormat`` and ``valueFormat`` to a row of records, from what
    it shows: a secret that is hidden there is not decoded either."""
    key, value, headers = row["key"], row["value"], row["headers"]
    if topic == TOPIC:
        decoder.schemas.learn(key, value)
    for side, data in (("key", key), ("value", value)):
        if data is not None:
            found = decoder.decode(topic, side, data, headers)
            row[f"{side}Decoded"] = found.value
            row[f"{side}Format"] = found.told()
