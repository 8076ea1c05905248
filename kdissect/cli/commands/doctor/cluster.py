"""The output of ``doctor spark --cluster``: the result of a small job on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdissect.cli.spark_sessions import running, within_reach


def cluster_rows(master: str, conf: Sequence[str], paths: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """What the workers of a cluster have, and what they lack.

    :param paths: captures, and folders for tables, that the workers must reach.
    :raises Wrong: there is no session.
    """
    from kdissect.spark.checkup import check_cluster
    from kdissect.spark.launch import is_connect

    # Spark says how executors end at INFO. While a session starts, it passes over lines of the very level
    # that is set.
    logged = () if is_connect(master) else ("spark.log.level=DEBUG",)
    with running({"master": master, "conf": (*logged, *conf), "spark_log": None}) as (spark, _, log):
        yield from check_cluster(spark, master, [within_reach(path, master) for path in paths], log)
