"""A capture, and the same capture from another cluster: groups, topics and ids have the same names in
both."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.cli.run import CAPTURES

EAST, WEST = "PXsGDZHiTBOEQ1xgBLsyeQ", "WESTDZHiTBOEQ1xgBLsyeQ"
GROUP = "event-store"
LAG, TRANSACTIONS = CAPTURES / "incidents/lag-grows.pcapng.gz", CAPTURES / "transactions-kafka39.pcapng"
_ID_OF = {LAG: EAST, TRANSACTIONS: "Bf0YksmlT8uSA2eAB0Ak7A"}
"""The cluster ids of captures."""


def two_clusters(folder: Path, capture: Path = LAG) -> tuple[Path, Path]:
    """Write both captures. Their clusters are :data:`EAST` and :data:`WEST`."""
    east = capture.read_bytes()
    east = gzip.decompress(east) if capture.suffix == ".gz" else east
    east = west = east.replace(_ID_OF[capture].encode(), EAST.encode())
    for here, there in (
        (EAST.encode(), WEST.encode()),
        (bytes((127, 0, 0, 1)), bytes((127, 0, 0, 2))),
        (b"127.0.0.1", b"127.0.0.2"),
    ):
        west = west.replace(here, there)
    paths = folder / "east.pcapng", folder / "west.pcapng"
    for path, data in zip(paths, (east, west), strict=True):
        path.write_bytes(data)
    return paths
