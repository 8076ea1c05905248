"""The units of times and sizes."""

from __future__ import annotations

from kdissect.present.form import SECOND

DURATIONS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "min": 60 * SECOND,
    "h": 3_600 * SECOND,
    "d": 86_400 * SECOND,
}
"""Unit: nanoseconds."""
SIZES = {
    "B": 1,
    "kB": 1_000,
    "KB": 1_000,
    "MB": 1_000_000,
    "GB": 1_000_000_000,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
}
"""Unit: bytes."""
