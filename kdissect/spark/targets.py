"""Where tables are written: folders of Parquet, Delta, Iceberg, or tables of Spark's catalog.

    --to parquet:DIR               each table a folder, as ``--out DIR``
    --to delta:PATH                each table a Delta table in a folder of its own
    --to iceberg:CATALOG.NAMESPACE each table an Iceberg table; pyiceberg's configuration says what CATALOG is
    --to table:NAMESPACE           each table one of Spark's catalog

The files of Delta and Iceberg are Parquet too. ``deltalake`` and ``pyiceberg`` then commit them. They work
with every version of Spark, while Spark's own packages for Delta and Iceberg support new versions late. A
commit is complete or missing. It names its run, so that a repeated run commits nothing twice.

New columns are added to a table by name. Columns of the table that the rows lack are null.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kdissect.lazy import Later
from kdissect.spark import provenance
from kdissect.spark.provenance import TableOrigin, origin_in
from kdissect.spark.storage import is_folder, is_remote, join, without_query
from kdissect.spark.target_files import Staged, TargetError, arrow_of, label_of, write_files, written_files
from kdissect.spark.writing import remove
from kdissect.wording import NotInstalledError, how_to_install

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
else:
    pa = Later("pyarrow")

KINDS = ("parquet", "delta", "iceberg", "table")
RUN = "run"
"""The partition of Parquet, and the folder of Delta, with the number of the run."""
_APPLICATION = "kdissect"
"""The application of kdissect's transactions in Delta's log."""


class Target(Protocol):
    """A place for tables."""

    @property
    def where(self) -> str:
        """The user's name for it."""

    @property
    def room(self) -> str | None:
        """A folder in the file system of the tables, for files on their way into them. None if Spark itself
        writes: it reads such files anywhere."""

    def has(self, name: str) -> bool:
        """Whether a table exists. For its own catalog, Spark finds out when it writes."""

    def write(
        self,
        frame: DataFrame | Staged,
        name: str,
        parts: Sequence[str],
        run: int | None,
        overwrite: bool,
        origin: str | None = None,
    ) -> None:
        """Write a table, or add a run's rows to it: all of them or none.

        :param frame: its rows. Staged files are removed, and have no partitions.
        :param run: the number of the run that adds; None if the table is made as a whole.
        :param origin: the origin that a table stores if it is made as a whole.
        :raises TargetError: they cannot be written.
        """


def target_of(text: str) -> Target:
    """The target that ``--to`` names.

    :raises ValueError: it has another form.
    :raises NotInstalledError: its library is not installed.
    """
    kind, colon, where = text.partition(":")
    if not colon or not where or kind not in KINDS:
        forms = "parquet:DIR, delta:PATH, iceberg:CATALOG.NAMESPACE or table:NAMESPACE"
        raise ValueError(f"--to {text}: the form is {forms}")
    if kind == "parquet":
        return ParquetFolder(where.rstrip("/"))
    if kind == "table":
        return Catalog(where)
    if kind == "delta":
        needs("deltalake", "delta")
        return Delta(where.rstrip("/"))
    needs("pyiceberg", "iceberg")
    catalog, dot, namespace = where.partition(".")
    if not dot or not namespace:
        raise ValueError(f"--to {text}: the form is iceberg:CATALOG.NAMESPACE")
    return Iceberg(catalog, namespace)


def needs(module: str, extra: str) -> None:
    """Check that a target's library is installed.

    :raises NotInstalledError: it is not.
    """
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise NotInstalledError(
            f"--to {extra}: needs {module}, which is not installed: {how_to_install(extra)}"
        )


class ParquetFolder:
    """Parquet; each run has a partition of its own.

    :param run_key: the name of that partition.
    """

    def __init__(self, root: str, run_key: str = RUN) -> None:
        self.where = root
        self._run_key = run_key

    @property
    def room(self) -> str | None:
        """The folder of the tables."""
        return self.where

    def has(self, name: str) -> bool:
        """Whether the folder of a table exists.

        :raises CaptureError: another file system does not answer.
        """
        return is_folder(self.folder(name))

    def folder(self, name: str) -> str:
        """The folder of a table."""
        return join(self.where, name)

    def remove(self, name: str, run: int) -> None:
        """Remove the rows of a run from a table, if there are any.

        :raises OSError: another file system cannot remove it.
        """
        remove(join(self.folder(name), f"{self._run_key}={run}"))

    def write(
        self,
        frame: DataFrame | Staged,
        name: str,
        parts: Sequence[str],
        run: int | None,
        overwrite: bool,
        origin: str | None = None,
    ) -> None:
        path = self.folder(name)
        if run is None:
            write_files(frame, path, parts, "overwrite" if overwrite else "error")
            provenance.keep(path, origin)
            return
        final = join(path, f"{self._run_key}={run}")
        if is_remote(path) or isinstance(frame, Staged):
            write_files(frame, final, parts, "overwrite")
            return
        staged = join(self.where, f"_staged/{name}")
        write_files(frame, staged, parts, "overwrite")
        os.makedirs(path, mode=0o700, exist_ok=True)
        shutil.rmtree(final, ignore_errors=True)
        os.rename(staged, final)
        # This also removes rows that a dead run left in another table.
        shutil.rmtree(os.path.dirname(staged), ignore_errors=True)


class Catalog:
    """Tables of the session's catalog."""

    room: str | None = None

    def __init__(self, namespace: str) -> None:
        self.where = namespace

    def has(self, name: str) -> bool:
        return False

    def origins(self, spark: SparkSession) -> dict[str, TableOrigin | None]:
        """The existing tables, with their origins.

        :raises TargetError: the catalog has no such namespace.
        """
        if not spark.catalog.databaseExists(self.where):
            raise TargetError(
                f"table:{self.where}: the catalog has no namespace {self.where}; "
                f"Spark's SQL makes it: CREATE NAMESPACE {self.where}"
            )
        found: dict[str, TableOrigin | None] = {}
        for name in provenance.KNOWN:
            full = f"{self.where}.{name}"
            if spark.catalog.tableExists(full):
                (row,) = spark.sql(f"SHOW TBLPROPERTIES {full} ('{provenance.PROPERTY}')").collect()
                found[name] = origin_in(row["value"])
        return found

    def write(
        self,
        frame: DataFrame | Staged,
        name: str,
        parts: Sequence[str],
        run: int | None,
        overwrite: bool,
        origin: str | None = None,
    ) -> None:
        if run is not None:
            raise TargetError(
                "--append works with parquet, delta and iceberg only: a Spark catalog keeps no runs"
            )
        assert not isinstance(frame, Staged)
        writer = frame.write.mode("overwrite" if overwrite else "error").partitionBy(*parts)
        writer.option("compression", "zstd").saveAsTable(f"{self.where}.{name}")
        if origin is not None:
            text = origin.replace("\\", r"\\").replace("'", r"\'")
            frame.sparkSession.sql(
                f"ALTER TABLE {self.where}.{name} SET TBLPROPERTIES ('{provenance.PROPERTY}' = '{text}')"
            )


_DELETED = "has deleted rows that are still in its files, and kdissect cannot leave them out"


class StoredFiles(NamedTuple):
    """What a table of Delta or Iceberg consists of."""

    files: tuple[str, ...]
    """Whole paths or URIs."""
    schema: pa.Schema
    """The columns of the table. Files that other programs rewrote may have narrower or wider numbers."""
    partitions: tuple[str, ...] = ()
    """The columns that are in names of folders, and not in files."""


class Delta:
    """Delta tables, committed by ``deltalake``."""

    def __init__(self, root: str) -> None:
        self.where = root

    @property
    def room(self) -> str | None:
        """The folder of the tables."""
        return self.where

    def has(self, name: str) -> bool:
        """Whether the folder of a table is that of a Delta table."""
        from deltalake import DeltaTable

        return bool(DeltaTable.is_deltatable(without_query(self._folder(name))))

    def _folder(self, name: str) -> str:
        return join(self.where, name)

    def write(
        self,
        frame: DataFrame | Staged,
        name: str,
        parts: Sequence[str],
        run: int | None,
        overwrite: bool,
        origin: str | None = None,
    ) -> None:
        import deltalake
        from deltalake.transaction import (
            AddAction,
            CommitProperties,
            RemoveAction,
            Transaction,
            create_table_with_add_actions,
        )

        path = self._folder(name)
        table = self._table(name) if self.has(name) else None
        if table is not None and run is not None and (table.transaction_version(_APPLICATION) or 0) >= run:
            return
        schema = deltalake.Schema.from_arrow(arrow_of(frame))
        replaces = run is None and overwrite
        if table is not None and not replaces:
            # Columns of the table that these rows lack stay, and are null.
            known = {field.name: field for field in table.schema().fields}
            for field in schema.fields:
                if field.name in known and _kind(field.type) != _kind(known[field.name].type):
                    raise TargetError(
                        f"{path}: the column {field.name} is {_kind(known[field.name].type)} there, and "
                        f"{_kind(field.type)} in this version of kdissect; write to another place"
                    )
            if new := [field for field in schema.fields if field.name not in known]:
                table.alter.add_columns(new)
                table.update_incremental()
        if run is None:
            provenance.forget(path)
        # Spark reads folders of several runs as one table if their names have the form of a partition.
        folder = f"{RUN}={label_of(run)}"
        write_files(frame, join(path, folder), parts, "overwrite")
        actions: list[AddAction | RemoveAction] = [
            AddAction(f"{folder}/{file.path}", file.size, file.partition, file.modified_ms, True, file.stats)
            for file in written_files(join(path, folder))
        ]
        transactions = [] if run is None else [Transaction(_APPLICATION, run)]
        properties = CommitProperties(app_transactions=transactions)
        if table is None:
            added = [action for action in actions if isinstance(action, AddAction)]
            create_table_with_add_actions(
                *(without_query(path), schema, added),
                partition_by=list(parts),
                commit_properties=properties,
            )
            provenance.keep(path, origin)
            return
        table.create_write_transaction(
            actions,
            "overwrite" if replaces else "append",
            schema if replaces else table.schema(),
            partition_by=list(parts),
            commit_properties=properties,
        )
        provenance.keep(path, origin)

    def stored(self, name: str) -> StoredFiles:
        """The current files of a table.

        :raises TargetError: it cannot be read as a Delta table, or files contain rows that were deleted.
        """
        table = self._table(name)
        features = table.protocol().reader_features or ()
        if "deletionVectors" in features and any(batch.num_rows for batch in table.deletion_vectors()):
            purge = f"REORG TABLE delta.`{without_query(self._folder(name))}` APPLY (PURGE)"
            raise TargetError(f"{self._folder(name)}: {_DELETED}; {purge} removes them")
        schema = pa.schema(table.schema().to_arrow())
        return StoredFiles(tuple(table.file_uris()), schema, tuple(table.metadata().partition_columns))

    def _table(self, name: str) -> Any:
        """The current table.

        :raises TargetError: it cannot be read.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            return DeltaTable(without_query(self._folder(name)))
        except (DeltaError, OSError) as error:
            why = str(error).partition("\n")[0]
            raise TargetError(f"{self._folder(name)}: cannot be read as a Delta table: {why}") from None


def _kind(kind: Any) -> str:
    """Delta's name of a type, without inner types: list types also say whether items may be null."""
    return str(getattr(kind, "type", type(kind).__name__.removesuffix("Type").lower()))


class Iceberg:
    """Iceberg tables, committed by ``pyiceberg``."""

    def __init__(self, catalog: str, namespace: str) -> None:
        self.where = f"{catalog}.{namespace}"
        self._catalog = catalog
        self._namespace = namespace
        self._loaded: Any = None

    @property
    def _known(self) -> Any:
        """The catalog of pyiceberg's configuration.

        :raises TargetError: it is not configured, or does not answer.
        """
        from pyiceberg.catalog import load_catalog

        if self._loaded is None:
            try:
                self._loaded = load_catalog(self._catalog)
            except Exception as error:  # each kind of catalog has its own error
                why = str(error).partition("\n")[0]
                if "--uri" in why:  # an option of pyiceberg's own command
                    why = "no configuration of pyiceberg names it"
                hint = (
                    f"~/.pyiceberg.yaml or PYICEBERG_CATALOG__{self._catalog.upper()}__URI says where it is"
                )
                raise TargetError(
                    f"the Iceberg catalog {self._catalog} cannot be used: {why}; {hint}"
                ) from None
        return self._loaded

    @property
    def room(self) -> str | None:
        """The warehouse of the catalog, if it names one.

        :raises TargetError: the catalog is not configured, or does not answer.
        """
        where = str(self._known.properties.get("warehouse", ""))
        return where.rstrip("/") if "://" in where or os.path.isabs(where) else None

    def _name(self, name: str) -> str:
        return f"{self._namespace}.{name}"

    def has(self, name: str) -> bool:
        """Whether the catalog has a table.

        :raises TargetError: the catalog is not configured, or does not answer.
        """
        return bool(self._known.table_exists(self._name(name)))

    def write(
        self,
        frame: DataFrame | Staged,
        name: str,
        parts: Sequence[str],
        run: int | None,
        overwrite: bool,
        origin: str | None = None,
    ) -> None:
        from pyiceberg.exceptions import ValidationError

        schema = arrow_of(frame)
        catalog = self._known
        if not self.has(name):
            catalog.create_namespace_if_not_exists(self._namespace)
            # In one commit, so that a run that dies leaves no table without its partitions.
            whole = catalog.create_table_transaction(self._name(name), schema)
            with whole as made, made.update_spec() as spec:
                for part in parts:
                    spec.add_identity(part)
        table = catalog.load_table(self._name(name))
        if run is not None and any(
            snapshot.summary is not None and (snapshot.summary.get(_APPLICATION) == str(run))
            for snapshot in table.snapshots()
        ):
            return
        try:
            with table.update_schema() as update:
                update.union_by_name(schema)
        except ValidationError as error:
            raise TargetError(f"{self._name(name)}: {error}; write to another namespace") from None
        # The files contain their partition columns, and their folders repeat them.
        for part in parts:
            assert not isinstance(frame, Staged)
            frame = frame.withColumn(f"_{part}", frame[part])
        folder = join(table.location(), f"data/{label_of(run)}")
        write_files(frame, folder, [f"_{part}" for part in parts], "overwrite")
        files = [file.uri for file in written_files(folder)]
        with catalog.load_table(self._name(name)).transaction() as transaction:
            if run is None and overwrite:
                transaction.delete("true")
            transaction.set_properties({provenance.PROPERTY: origin or ""})
            if files:
                transaction.add_files(files, snapshot_properties={_APPLICATION: label_of(run)})

    def origin(self, name: str) -> TableOrigin | None:
        """The stored origin of a table."""
        table = self._known.load_table(self._name(name))
        return origin_in(table.properties.get(provenance.PROPERTY))

    def stored(self, name: str) -> StoredFiles:
        """The current files of a table.

        :raises TargetError: files contain rows that were deleted.
        """
        table = self._known.load_table(self._name(name))
        tasks = list(table.scan().plan_files())
        if any(task.delete_files for task in tasks):
            rewrite = f"CALL {self._catalog}.system.rewrite_data_files(table => '{self._name(name)}', "
            options = "options => map('delete-file-threshold', '1'))"
            raise TargetError(f"{self._name(name)}: {_DELETED}; {rewrite}{options} removes them")
        return StoredFiles(tuple(task.file.file_path for task in tasks), table.schema().as_arrow())
