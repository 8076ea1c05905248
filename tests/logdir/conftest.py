"""Log directories of real brokers, from the project's own copy."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "logdirs.tar.xz"


@pytest.fixture(scope="session")
def logdirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of brokers; tests must not write into it."""
    folder = tmp_path_factory.mktemp("kafka")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "logdirs"
