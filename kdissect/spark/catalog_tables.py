"""``CREATE TABLE … USING kdissect OPTIONS (…)``: what the table's options are when it is read.

Spark keeps the options of such a table. But when it reads the table, it gives a source in Python none of them
(seen with 4.1 to 4.3). It does give the schema. So kdissect writes the options into the schema of such a
table: into the metadata of the first column. The metadata goes where the column goes: into tables that are
made of it, and into their files of Parquet. So no password may be in them. A schema that is taken from such a
table and given to another read has these options too.
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
"""The options that say where captures are."""
_KEY = "kdissect"
"""Of the metadata."""
_OF_CATALOGS = ("owner", "provider", "location", "comment", "collation", "external")
"""What ``CREATE TABLE`` adds to options."""
_TWICE = "option."
"""What it puts before the names of options, which it gives once more so."""


def is_ours(key: str) -> bool:
    """Whether a user gave this option, and not Spark itself."""
    return key.lower() not in _OF_CATALOGS and not key.lower().startswith(_TWICE)


def is_created(options: Mapping[str, str]) -> bool:
    """Whether these are the options of ``CREATE TABLE``."""
    return "provider" in options


def remembering(table: Table, options: Mapping[str, str]) -> StructType:
    """The schema of a table, with the options in it."""
    schema: StructType = from_arrow_schema(arrow_schema(table))
    kept = {key: value for key, value in options.items() if is_ours(key)}
    schema.fields[0].metadata = {_KEY: json.dumps(kept)}
    return schema


def options_of(schema: StructType, given: Mapping[str, str]) -> dict[str, str]:
    """The options with which a table is read.

    :param given: those that Spark gives: all, or for a table of a catalog those of the query.
    :raises CaptureError: nothing says where captures are.
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
