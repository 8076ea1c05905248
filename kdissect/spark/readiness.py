"""Exchanges and connections of many captures → the versions that Kafka 4 does not have, and the sides that
limit them.

Spark counts, and :class:`~kdissect.analysis.versions.VersionFacts` judges, as for ``stats -z versions``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdissect.analysis.offers_seen import ranges_of
from kdissect.analysis.room import Room
from kdissect.analysis.speakers import address
from kdissect.analysis.versions import (
    REFUSED,
    REPLICAS,
    Talker,
    VersionFacts,
    is_of_broker,
    is_whole,
    replica_id_of,
)
from kdissect.limits import DEFAULTS
from kdissect.present.statistics import STATISTICS
from kdissect.protocol import apis
from kdissect.spark.tables import POINT, body_of, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_TALKER = f"{POINT}, connection, client, client_id, broker"
_REPLICAS = ", ".join(f"'{api}'" for api in sorted(REPLICAS))

_SPOKEN = f"""
    select {_TALKER}, api, api_key, api_version, count(*) as count,
           min_by(if(api in ({_REPLICAS}), request, null), number) as sample,
           count_if(response_packet is not null and coalesce(error, '') <> '{REFUSED}') as answered
    from exchanges where request_packet is not null and api_key is not null and api_version is not null
    group by all
"""
_ASKED = f"select {_TALKER}, number, request, response from exchanges where api_key = {apis.API_VERSIONS}"
_WHOLE = f"select {POINT}, connection, opened, gaps, skipped_bytes from connections where opened"


def readiness(spark: SparkSession) -> tuple[DataFrame, int]:
    """The rows of the table ``versions`` that a release of Kafka does not have any more, worst first. Also
    how often something was left out because there was no room. The session has the views ``exchanges`` and
    ``connections``.
    """
    facts = VersionFacts(Room(DEFAULTS))
    for row in spark.sql(_SPOKEN).toLocalIterator():
        talker = _talker(row)
        facts.add_requests(talker, row.api_key, row.api_version, row["count"])
        if row.answered:
            facts.note_answered(talker.broker, row.api_key, row.api_version)
        if is_of_broker(row.api, row.api_version, replica_id_of(body_of(row.sample))):
            facts.note_between_brokers(talker.connection)
    for row in spark.sql(_ASKED).toLocalIterator():
        asked = body_of(row.request)
        software = asked.get("clientSoftwareName"), asked.get("clientSoftwareVersion")
        facts.take_api_versions(_talker(row), row.number, software, ranges_of(body_of(row.response)))
    if "opened" in spark.table("connections").columns:  # tables of older releases do not have it
        for row in spark.sql(_WHOLE).toLocalIterator():
            if is_whole(row.opened, row.gaps, row.skipped_bytes):
                facts.note_whole((row[POINT], row.connection))
    table = STATISTICS["versions"]
    gone = [row for row in facts.result() if row["removed_in"] is not None]
    return spark.createDataFrame([tuple(row.values()) for row in gone], ddl(table)), facts.left_out


def _talker(row: Row) -> Talker:
    return Talker((row[POINT], row.connection), address(row.client), row.client_id, row.broker)
