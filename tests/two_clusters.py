"""A capture, and the same as of another cluster: groups of one name in both."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.cli.run import CAPTURES

EAST, WEST = "PXsGDZHiTBOEQ1xgBLsyeQ", "WESTDZHiTBOEQ1xgBLsyeQ"
GROUP = "event-store"
_OTHERS = (
    (EAST.encode(), WEST.encode()),
    (bytes((127, 0, 0, 1)), bytes((127, 0, 0, 2))),
    (b"127.0.0.1", b"127.0.0.2"),
)


def two_clusters(folder: Path) -> tuple[Path, Path]:
    """Write both captures."""
    east = gzip.decompress((CAPTURES / "incidents/lag-grows.pcapng.gz").read_bytes())
    west = east
    for here, there in _OTHERS:
        west = west.replace(here, there)
    paths = folder / "east.pcapng", folder / "west.pcapng"
    for path, data in zip(paths, (east, west), strict=True):
        path.write_bytes(data)
    return paths
