"""Every capture, every form, with 1 job and more: ``python -m tests.jobs.long [--only GLOB] [--seconds N]``.

The captures of this repository and, where it is there, all of the shared material: real traffic, made-up
TCP, malicious and damaged files. Each is split into batches of 3 events, or with ``--parts BYTES`` cut into
parts of about so many bytes. All files of a folder are also one capture, and TLS is read with its key log.
"""

# ruff: noqa: T201

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from contextlib import nullcontext
from fnmatch import fnmatch
from pathlib import Path

from tests.jobs.same import FORMS, differences, small_parts
from tests.shared import SHARED, shared
from tests.spark.same import CAPTURES

_EVENTS = 3


def cases() -> Iterator[tuple[str, ...]]:
    """Files and options that are one capture."""
    folders = [CAPTURES]
    if SHARED is not None:
        top = shared("testdata")
        folders += sorted({path.parent for path in top.rglob("*.pcap*")})
        folders += [top / "damaged"]
    for folder in folders:
        logs = sorted(folder.glob("keys.log"))
        keys = [option for log in logs for option in ("--keylog", str(log))]
        files = sorted(path for path in folder.iterdir() if path.is_file() and ".pcap" in path.name)
        for path in files:
            yield (str(path), *keys)
        if len(files) > 1:
            yield (*map(str, files), *keys)


def main() -> int:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="captures whose path matches")
    parser.add_argument("--seconds", type=float, default=3_600, help="after so many none is begun")
    parser.add_argument("--parts", type=int, help="cut captures into parts of about so many bytes")
    parser.add_argument("--jobs", type=int, nargs="+", default=(2, 3), help="how many jobs")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    chosen = [case for case in cases() if fnmatch(case[0], f"*{given.only}*")]
    wrong = []
    done = 0
    for case in chosen:
        if time.monotonic() > end:
            break
        with nullcontext() if given.parts is None else small_parts(given.parts):
            found = differences(case, FORMS, given.jobs, _EVENTS)
        wrong += found
        done += 1
        print(f"{'differs' if found else 'equal'}  {Path(case[0]).name} of {len(case)}", flush=True)
        for each in found:
            print(f"  {each}", flush=True)
    print(f"{done} of {len(chosen)} captures, {len(FORMS)} commands each, {len(wrong)} differences")
    return int(bool(wrong) or done < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
