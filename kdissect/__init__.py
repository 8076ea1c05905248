"""kdissect: the network protocol analyzer for Apache Kafka.

    import kdissect

    for exchange in kdissect.read(["capture.pcapng"]):
        print(exchange.number, exchange.api, exchange.latency_ns, exchange.error)

    fetch = kdissect.schema("Fetch", 12, "response")
    values = fetch.decode(data)

    for batch in kdissect.records(data).batches:
        print(batch.codec, batch.records())

The names of this module are public. Everything else may change. A name is imported when it is first used;
``__init__.pyi`` has the types.
"""

from __future__ import annotations

from kdissect import ctrl_c

ctrl_c.expect()

from kdissect import leaves  # noqa: E402 - it takes long enough for Ctrl-C to come

__version__ = "0.1.0"

leaves.choose()

_HOMES = {
    "CaptureError": ("kdissect.model", "CaptureError"),
    "Connection": ("kdissect.session.conversation", "Connection"),
    "Conversation": ("kdissect.session.conversation", "Conversation"),
    "Exchange": ("kdissect.exchange", "Exchange"),
    "Fault": ("kdissect.model", "Fault"),
    "Limits": ("kdissect.limits", "Limits"),
    "RecordSet": ("kdissect.record.sets", "RecordSet"),
    "Schema": ("kdissect.protocol.codec", "Schema"),
    "Finding": ("kdissect.insight.finding", "Finding"),
    "Report": ("kdissect.explaining", "Report"),
    "explain": ("kdissect.explaining", "explain"),
    "read": ("kdissect.reading", "read"),
    "records": ("kdissect.record.sets", "read_record_set"),
    "schema": ("kdissect.protocol.codec", "schema"),
}
"""The module of each public name, and the name there (PEP 562)."""

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
