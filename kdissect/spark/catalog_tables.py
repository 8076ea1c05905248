"""``CREATE TABLE … USING kdissect OPTIONS (…)``: the table's options when it is read.

Spark keeps the options of such a table. But when it reads the table, it passes none of them to a source in
Python (seen with 4.1 to 4.3). It passes the schema. So kdissect writes the options into the schema of such a
table: into the metadata of the first column. The metadata is copied with the column: into tables that are
made from it, and into their Parquet files. So the options must not contain a password. A schema that is taken
from such a table and given to another read has these options too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kdissect.model import CaptureError
from kdissect.present.arrow import arrow_schema
from kdissect.present.columns import Table

PLACES = ("path", "paths")
"""The options with the places of captures."""
_KEY = "kdissect"
"""The key in the metadata."""
_OF_CATALOGS = ("owner", "provider", "location", "comment", "collation", "external")
"""Options that ``CREATE TABLE`` adds."""
_TWICE = "option."
"""The prefix of the options' second copy, which ``CREATE TABLE`` adds."""


def is_ours(key: str) -> bool:
    """Whether a user gave this option, and not Spark itself."""
    return key.lower() not in _OF_CATALOGS and not key.lower().startswith(_TWICE)


def is_created(options: Mapping[str, str]) -> bool:
    """Whether these are the options of ``CREATE TABLE``."""
    return "provider" in options


def remembering(table: Table, options: Mapping[str, str]) -> StructType:
    """The schema of a table, with the options in its metadata."""
    schema: StructType = from_arrow_schema(arrow_schema(table))
    kept = {key: value for key, value in options.items() if is_ours(key)}
    schema.fields[0].metadata = {_KEY: json.dumps(kept)}
    return schema


def options_of(schema: StructType, given: Mapping[str, str]) -> dict[str, str]:
    """The options for reading a table.

    :param given: the options from Spark: all of them, or for a table of a catalog those of the query.
    :raises CaptureError: no option has the place of captures.
    """
    kept = [field.metadata[_KEY] for field in schema.fields if _KEY in field.metadata]
    own: dict[str, str] = json.loads(kept[0]) if kept else {}
    is_elsewhere = any(key.lower() in PLACES for key in given)
    if is_elsewhere:
        own = {key: value for key, value in own.items() if key.lower() not in PLACES}
    if not is_elsewhere and not any(key.lower() in PLACES for key in own):
        raise CaptureError(
            "no capture is given: load(paths) names files or directories; CREATE TABLE … USING kdissect names"
            " no columns, and has OPTIONS (path '…')"
        )
    return {**own, **given}
