"""The report of a worker on itself. Spark sends these functions to it, because it may have no kdissect.

So this module imports Python's own library only. Functions import the rest where they need it.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any


def tell(paths: Sequence[str], seconds: float, batches: Iterable[Any]) -> Iterator[Any]:
    """For each number, the facts of :func:`facts`, as JSON.

    :param seconds: how long each takes, so that no worker does all of them.
    """
    import pyarrow as pa

    for batch in batches:
        for _ in range(batch.num_rows):
            time.sleep(seconds)
            yield pa.record_batch([pa.array([json.dumps(facts(paths))])], names=["told"])


def facts(paths: Sequence[str]) -> dict[str, Any]:
    """The programs on this worker, and what it sees at these paths.

    :returns: ``host``, ``python`` and ``program`` say where it is. ``kdissect`` is its version; null if it
        cannot be imported, and ``why`` has the reason. ``seen`` has each path: null, or why it cannot be
        used. ``wrote`` has each folder, and a file that was written into it.
    """
    found: dict[str, Any] = {
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "program": sys.executable,
        "kdissect": None,
        "why": None,
        "seen": {},
        "wrote": {},
    }
    try:
        import kdissect.spark.one_pass  # with everything that tasks need
    except Exception as error:  # a library may be damaged in any way
        found["why"] = f"{type(error).__name__}: {error}"
    else:
        found["kdissect"] = kdissect.__version__
    for path in paths:
        try:
            if os.path.isdir(path):
                found["wrote"][path] = _write(path)
            elif found["kdissect"] is None:
                open(path, "rb").close()
            else:
                _read(path)
            found["seen"][path] = None
        except Exception as error:
            found["seen"][path] = str(error).partition("\n")[0]
    return found


def _write(folder: str) -> str:
    path = os.path.join(folder, f"_kdissect-{uuid.uuid4().hex[:12]}")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return path


def _read(path: str) -> None:
    from kdissect.capture.files import read_packets
    from kdissect.spark.storage import open_file

    read_packets([path], opener=open_file).close()
