"""``kdissect tui`` with measurements: how long each response takes to the screen.

    python -m benchmarks.live_screens FIGURES tui -i eth0 …

The application is the user's, in a terminal; it writes its figures to a file as JSON when it ends. The time
of an exchange begins when the kernel saw the first byte of its response. It ends with the first frame that
has the exchange in the list.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np

import kdissect.tui.app
from kdissect.cli import main
from kdissect.feed.rows import HAS_LATENCY
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage

_MICROSECOND = 1_000


class Timed(Kdissect):
    """The application, which reads the clock after each frame."""

    path: Path
    """The path of the figures. Another file with the ending ``.count`` has the number of exchanges on the
    screen."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.waits = array("q")
        """The times, in microseconds."""
        self._seen = 0
        self._began: tuple[float, float] | None = None
        """When the first rows were drawn, and the CPU seconds until then. The start does not count."""
        self._ended = 0.0, 0.0
        """The same for the latest rows."""

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        count = len(self.index)
        if count == self._seen or not isinstance(screen, ExchangesPage):
            return
        now_ns = time.time_ns()
        self._ended = time.monotonic(), _cpu()
        self._began = self._began or self._ended
        start, self._seen = self._seen, count
        self.path.with_suffix(".count").write_text(str(count))
        has_both = self.index.column("flags", start, count) & HAS_LATENCY != 0
        columns = (self.index.column(name, start, count)[has_both] for name in ("time_ns", "latency_ns"))
        answered_ns = sum(columns)
        self.waits.extend(((now_ns - answered_ns) // _MICROSECOND).tolist())

    def _by_api(self) -> dict[str, int]:
        texts, counts = np.unique(self.index.column("api"), return_counts=True)
        return {self.index.texts[text]: count for text, count in zip(texts, counts.tolist(), strict=True)}

    def on_unmount(self) -> None:
        waits = sorted(self.waits)
        began = self._began or self._ended
        status = self.feed.capture
        assert status is not None
        figures = {
            "exchanges": len(self.index),
            "by_api": self._by_api(),
            "waits_us": {str(percent): _percentile(waits, percent) for percent in (50, 90, 99, 100)},
            "cpu_share": (self._ended[1] - began[1]) / max(1e-9, self._ended[0] - began[0]),
            "captured": status.received,
            "dropped": status.dropped,
            "lost": status.lost,
            "faults": self.index.fault_count(),
        }
        self.path.write_text(json.dumps(figures))


def _cpu() -> float:
    """The CPU seconds of this process."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def _percentile(values: list[int], percent: int) -> int | None:
    return values[max(1, -(-percent * len(values) // 100)) - 1] if values else None


if __name__ == "__main__":
    Timed.path, sys.argv[1:] = Path(sys.argv[1]), sys.argv[2:]
    kdissect.tui.app.Kdissect = Timed  # type: ignore[misc]
    sys.exit(main())
