"""``CREATE TABLE … USING kdissect``: the table has its rows whenever it is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql.types import StructType, _parse_datatype_string

import kdissect.spark
from kdissect.model import CaptureError
from kdissect.spark.catalog_tables import options_of, remembering
from kdissect.spark.settings import TableSettings
from kdissect.spark.source import CaptureSource
from kdissect.spark.tables import TABLES, ddl
from tests.spark.same import CAPTURES, read_rows, spark_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ERRORS = CAPTURES / "errors.pcapng"
BASIC = CAPTURES / "basic-kafka43.pcapng"


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """The name of a table that is not there."""
    kdissect.spark.register(spark)
    yield "captured"
    spark.sql("DROP TABLE IF EXISTS captured")


def test_a_table_of_the_catalog(spark: SparkSession, table: str, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "a.pcapng").write_bytes(ERRORS.read_bytes())
    spark.sql(f"CREATE TABLE {table} USING kdissect OPTIONS (path '{folder}/*', table 'connections')")
    expected = read_rows("connections", [folder / "a.pcapng"])
    assert spark_rows(spark.table(table)) == spark_rows(spark.sql(f"SELECT * FROM {table}")) == expected
    # What is there counts when it is read.
    (folder / "b.pcapng").write_bytes(BASIC.read_bytes())
    assert spark.table(table).count() > len(expected)
    # Options of a query come before those of the table.
    only = spark.sql(f"SELECT * FROM {table} WITH (path '{folder}/a.pcapng')")
    assert spark_rows(only) == expected
    assert spark.sql(f"SELECT * FROM {table} WITH (filter 'number < 0')").isEmpty()
    spark.sql(f"DROP TABLE {table}")
    assert len(list(folder.iterdir())) == 2


def test_a_statistic_and_columns(spark: SparkSession, table: str) -> None:
    options = f"path '{ERRORS}', stats 'errors', columns 'error,api'"
    spark.sql(f"CREATE TABLE {table} USING kdissect OPTIONS ({options})")
    expected = kdissect.spark.stats(spark, ERRORS, "errors").select("error", "api")
    assert spark_rows(spark.table(table)) == spark_rows(expected) != []


def test_what_a_table_cannot_be_is_one_line(spark: SparkSession, table: str) -> None:
    with pytest.raises(Exception, match="did you mean connections"):
        spark.sql(f"CREATE TABLE {table} USING kdissect OPTIONS (path '{ERRORS}', table 'conections')")
    spark.sql(f"CREATE TABLE {table} (api string) USING kdissect OPTIONS (path '{ERRORS}')")
    with pytest.raises(Exception, match="CREATE TABLE … USING kdissect names no columns") as caught:
        spark.table(table).count()
    assert "Traceback" not in str(caught.value)
    with pytest.raises(Exception, match="kdissect reads captures, and writes none") as caught:
        spark.sql(f"INSERT INTO {table} VALUES ('Fetch')")
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.usefixtures("spark")
def test_the_schema_is_that_of_a_data_frame(name: str) -> None:
    chosen = TableSettings(table=name).chosen_table()
    given = {"path": "/captures", "table": name, "option.table": name, "provider": "kdissect", "owner": "me"}
    schema = remembering(chosen, given)
    usual = _parse_datatype_string(ddl(chosen))
    assert isinstance(usual, StructType)
    assert [(each.name, each.dataType, each.nullable) for each in schema] == [
        (each.name, each.dataType, each.nullable) for each in usual
    ]
    assert options_of(schema, {}) == {"path": "/captures", "table": name}
    assert options_of(schema, {"table": "x"}) == {"path": "/captures", "table": "x"}


def test_a_query_names_other_captures() -> None:
    """They take the place of the table's. The other options stay."""
    chosen = TableSettings(table="connections").chosen_table()
    schema = remembering(chosen, {"path": "/captures", "table": "connections", "provider": "kdissect"})
    for others in ({"path": "/others"}, {"paths": '["/a", "/b"]'}):
        assert options_of(schema, others) == {**others, "table": "connections"}
    schema.fields[0].metadata = {}
    assert options_of(schema, {"path": "/others"}) == {"path": "/others"}


def test_a_table_without_captures_says_how_to_name_them() -> None:
    schema = remembering(TableSettings().chosen_table(), {"filter": "api == Fetch", "provider": "kdissect"})
    with pytest.raises(CaptureError, match=r"has OPTIONS \(path '…'\)$"):
        options_of(schema, {})


@pytest.mark.parametrize("of_a_catalog", [{}, {"provider": "kdissect"}])
@pytest.mark.parametrize("place", [{"path": "s3://me:secret@x/y"}, {"paths": '["a", "s3://me:secret@x/y"]'}])
def test_no_password_is_kept(
    monkeypatch: pytest.MonkeyPatch, place: dict[str, str], of_a_catalog: dict[str, str]
) -> None:
    monkeypatch.setitem(os.environ, "SPARK_HIDE_TRACEBACK", "")  # is set, and goes again
    with pytest.raises(ValueError, match=r"^s3://…@x/y: everybody sees a password in a URI"):
        CaptureSource({**place, **of_a_catalog}).schema()


def test_no_plan_shows_a_password() -> None:
    """Also where only a server of Spark Connect sees the captures."""

    class Session:
        __module__ = "pyspark.sql.connect.session"

    with pytest.raises(ValueError, match=r"^s3://…@x/y: everybody sees a password in a URI"):
        kdissect.spark.table(cast(Any, Session()), ["s3://me:secret@x/y"], "exchanges")
