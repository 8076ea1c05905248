"""Other versions of Spark: ``python -m tests.spark.versions [VERSION…]``, else 4.1 and 4.2.

Each gets an environment of its own with PySpark of that version, which finds all other packages in this one.
Tables, partitions, statistics, the data source, and (from 4.2 on) streams have the rows of ``read``. Damage
warns (:mod:`tests.spark.test_fault_reports`). What Spark does not do for a source in Python
(:mod:`tests.spark.test_sources_in_python`) is the same in each, and our rule does it
(:mod:`tests.spark.test_scans`).
"""

# ruff: noqa: T201

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

import pyarrow.dataset as ds

from tests.spark.same import CAPTURES, TABLES, in_order, read_rows, without_moments, written_rows
from tests.spark.test_stream import TABLES as STREAMED
from tests.spark.test_stream import rows

BASIC = CAPTURES / "basic-kafka43.pcapng"
SINCE = (4, 2)
"""The version that streams need."""
_FRAMES = """
import sys, warnings
warnings.simplefilter("ignore")
import kdissect.spark
from kdissect.spark.launch import session
from tests.spark.same import TABLES, read_rows, spark_rows
from tests.spark.test_stats import events_of, on_one_machine, rows_of
from kdissect.present.statistics import STATISTICS
from pathlib import Path
path = Path(sys.argv[1])
spark = session("local[2]", {}, sys.argv[2])
for name in TABLES:
    assert spark_rows(kdissect.spark.table(spark, path, name)) == read_rows(name, [path]), name
exchanges = kdissect.spark.exchanges(spark, path)
assert 0 < exchanges.where("api = 'Fetch'").count() < exchanges.count()
(fold,) = on_one_machine(events_of(path), ["srt"])
found = kdissect.spark.stats(spark, path, "srt").toArrow().to_pylist()
assert found == rows_of(STATISTICS["srt"], fold.result())
spark.sql(f"CREATE TABLE captured USING kdissect OPTIONS (path '{path}')")
assert spark_rows(spark.table("captured")) == read_rows("exchanges", [path])
from tests.spark import test_sources_in_python as of_spark
of_spark.test_no_columns_are_told(spark)
of_spark.test_a_plan_tells_a_source_s_name_only(spark)
of_spark.test_filters_are_kept_for_the_next_query(spark)
from tests.spark import test_scans as of_scans
of_scans.test_a_scan_reads_what_the_query_needs(spark)
of_scans.test_rows_are_the_same(spark, "exchanges")
of_scans.test_a_scan_makes_the_rows_that_pass(spark)
of_scans.test_filters_leave_the_same_rows(spark, "exchanges")
of_scans.test_a_table_of_the_catalog_has_its_options_still(spark)
folder = Path(sys.argv[2]).parent
from tests.spark import test_news as of_damage
for name in ("one", "two", "three"):
    (folder / name).mkdir()
of_damage.test_who_uses_a_data_frame_is_warned_once(spark, folder / "one")
of_damage.test_who_asks_for_statistics_is_warned(spark, folder / "two")
if spark.version >= "4.2":
    of_damage.test_who_follows_a_folder_is_warned(spark, folder / "three")
(folder / "spool").mkdir()
(folder / "spool" / path.name).write_bytes(path.read_bytes())
reader = spark.readStream.format("kdissect").option("state", str(folder / "state"))
writer = reader.load(str(folder / "spool")).writeStream.format("memory").queryName("live")
query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
try:
    query.awaitTermination()
except Exception as error:
    assert spark.version < "4.2", error
    assert "a stream needs Spark 4.2 or newer" in str(error), error
else:
    assert spark.version >= "4.2"
    assert set(spark_rows(spark.table("live"))) <= set(read_rows("exchanges", [path]))
    assert spark.table("live").count() >= exchanges.count() - 3
"""


def check(version: str, folder: Path) -> None:
    """One version."""
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", f"pyspark=={version}.*"], check=True)
    packages = environment / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    ours = [sysconfig.get_paths()["purelib"], os.getcwd()]
    (packages / "ours.pth").write_text("".join(f"{path}\n" for path in ours))
    found = subprocess.run(
        [python, "-c", "import pyspark; print(pyspark.__version__)"], check=True, stdout=subprocess.PIPE
    )
    name = found.stdout.decode().strip()
    assert name.startswith(f"{version}."), name

    def run(*words: str, code: int = 0) -> str:
        command = [python, "-m", "kdissect", "spark", *words, "--master", "local[2]"]
        done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
        assert done.returncode == code, done.stderr
        return done.stderr

    tables = [word for table in TABLES for word in ("--table", table)]
    run("batch", str(BASIC), "--out", str(folder / "out"), *tables)
    run("batch", str(BASIC), "--to", f"delta:{folder}/lake", *tables, "--partition-by", "date")
    for table in TABLES:
        expected = read_rows(table, [BASIC])
        assert written_rows(folder / "out" / table) == expected, table
        files = list((folder / "lake" / table).rglob("*.parquet"))
        assert in_order(without_moments(_without_places(files))) == in_order(_plain(expected)), table
    subprocess.run([python, "-c", _FRAMES, str(BASIC), str(folder / "log")], check=True)
    (folder / "in").mkdir()
    (folder / "in" / BASIC.name).write_bytes(BASIC.read_bytes())
    stream = ("stream", str(folder / "in"), "--out", str(folder / "grown"), "--available-now", "--close")
    if tuple(map(int, version.split(".")[:2])) < SINCE:
        told = run(*stream, code=2)
        assert told == f"kdissect: a stream needs Spark 4.2 or newer; this is {name}\n", told
    else:
        run(*stream)
        for table in STREAMED:
            assert rows(folder / "grown", table) == read_rows(table, [BASIC]), table
    print(f"{name}: equal", flush=True)


def _without_places(files: list[Path]) -> list[dict[str, object]]:
    """Rows of partitioned tables, without what partitions add to records, batches and faults."""
    added = ("time_ns", "broker", "date")
    found = ds.dataset(list(map(str, files)), format="parquet").to_table().to_pylist() if files else []
    return [{name: row[name] for name in row if name not in added} for row in found]


def _plain(expected: list[str]) -> list[dict[str, object]]:
    from ast import literal_eval

    return [
        {
            name: value
            for name, value in literal_eval(row).items()
            if name not in ("time_ns", "broker", "date")
        }
        for row in expected
    ]


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    for version in parser.parse_args().versions or ("4.1", "4.2"):
        with tempfile.TemporaryDirectory() as folder:
            check(version, Path(folder))


if __name__ == "__main__":
    main()
