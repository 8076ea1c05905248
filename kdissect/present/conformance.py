"""The columns of ``kdissect client conformance``: one row a check."""

from __future__ import annotations

from kdissect.present.columns import Table, attribute_column

CHECKS = Table(
    "conformance",
    (
        attribute_column("check", "text", "kind of check: advertised, answer, order or outside"),
        attribute_column("api_key", "int16", "the API's key"),
        attribute_column("api", "text", "the API's name"),
        attribute_column("api_version", "int16", "version of the request"),
        attribute_column(
            "outcome", "text", "right, wrong, skipped, or closed (the broker closed the connection)"
        ),
        attribute_column("error", "text", "the first error code of the response, by name"),
        attribute_column("latency_ns", "int64", "from the request to the first byte of the response"),
        attribute_column("detail", "text", "what is wrong, or why it was skipped"),
    ),
)
