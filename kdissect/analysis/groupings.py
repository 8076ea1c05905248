"""Rows by API and version, and, if asked for, by broker, client, client id and topic."""

from __future__ import annotations

from kdissect.analysis.declared import Declared, column
from kdissect.analysis.fold import Row

GROUPINGS = ("broker", "client", "client_id", "topic")
"""The groupings of rows beyond API and version. With ``topic``, an exchange counts for each of its topics,
under the names known by then; an exchange without a topic counts in a row without one."""

ApiRowKey = tuple[int | None, str, int | None, str | None, str | None, str | None, str | None]
"""API key, API, version, broker, client, client id, topic: the last four are None unless asked for."""


def key_columns(table: str) -> tuple[Declared, ...]:
    """The columns of :func:`key_values`, for a statistic of this name."""
    return (
        column("api", "text", "Kafka's newest name of the API"),
        column("api_version", "int16", "version of the API"),
        column("broker", "text", f"address:port of the broker; null unless asked for ({table},broker)"),
        column("client", "text", f"address of the client; null unless asked for ({table},client)"),
        column("client_id", "text", f"the client's id; null unless asked for ({table},client_id)"),
        column("topic", "text", f"the topic; null without a topic, and unless asked for ({table},topic)"),
    )


def key_values(key: ApiRowKey) -> Row:
    """The columns of a key."""
    _, api, version, broker, client, client_id, topic = key
    return {
        "api": api,
        "api_version": version,
        "broker": broker,
        "client": client,
        "client_id": client_id,
        "topic": topic,
    }


def order_of(key: ApiRowKey) -> tuple[bool, int, int, str, str, str, str]:
    """The sort key: API keys and versions, with unknown APIs last."""
    api_key, _, version, broker, client, client_id, topic = key
    known = (api_key or 0, version or 0, broker or "", client or "", client_id or "", topic or "")
    return (api_key is None, *known)
