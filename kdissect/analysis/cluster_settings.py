"""Exchanges that tell or change configurations, quotas, features and permissions → statements.

Values that are, or may be, secrets are redacted before they are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdissect.analysis.cluster_fields import Body, Told
from kdissect.analysis.statements import Statement, client_of, fields
from kdissect.exchange import Exchange
from kdissect.protocol.config_names import is_secret_config
from kdissect.wording import REDACTED

RESOURCES = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
"""Kafka's ``ConfigResource.Type``."""
SET, DELETE = 0, 1
"""Kafka's ``AlterConfigOp.OpType``. The other operations add to, or take from, an unknown value."""
SOURCES = {
    1: "topic",
    2: "broker",
    3: "brokers",
    4: "file",
    5: "default",
    6: "broker-logger",
    7: "client-metrics",
    8: "group",
}
"""Kafka's ``DescribeConfigsResponse.ConfigSource``: where the value in force was set."""
_ACL_RESOURCES = {
    2: "topic",
    3: "group",
    4: "cluster",
    5: "transactional-id",
    6: "delegation-token",
    7: "user",
}
_OPERATIONS = (
    *("?", "Any", "All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction"),
    *("DescribeConfigs", "AlterConfigs", "IdempotentWrite", "CreateTokens", "DescribeTokens"),
    "TwoPhaseCommit",
)
_PERMISSIONS = {2: "deny", 3: "allow"}


def accepted(response: Body) -> bool:
    """Whether a response reports success."""
    return bool(response) and not response.get("errorCode")


def setting(
    kind: str, resource: str, name: str, value: str | None, source: str | None, by: str | None
) -> Statement:
    """A setting with a value; None means the default."""
    found = fields(
        value="" if value is None else value, is_unset=True if value is None else None, source=source
    )
    return Statement("config", (kind, resource, name), found, by)


def shown(resource_type: int | None, name: Any, value: Any) -> str | None:
    """A configuration's value, redacted if it is or may be a secret."""
    return REDACTED if value is not None and is_secret_config(resource_type, name) else value


def _described(_: Exchange, request: Body, response: Body) -> Told:
    for result in response.get("results") or ():
        kind = RESOURCES.get(result.get("resourceType"))
        if result.get("errorCode") or kind is None:
            continue
        for each in result.get("configs") or ():
            value = each.get("value")
            value = REDACTED if value is None and each.get("isSensitive") else value
            if value is not None and each.get("isSensitive", True):
                value = REDACTED
            source = SOURCES.get(each.get("configSource", -1))
            yield setting(kind, result.get("resourceName") or "", each.get("name") or "", value, source, None)


def _altered(exchange: Exchange, request: Body, response: Body) -> Told:
    if request.get("validateOnly"):
        return
    done = {
        (each.get("resourceType"), each.get("resourceName"))
        for each in response.get("responses") or ()
        if each.get("errorCode") == 0
    }
    for resource in request.get("resources") or ():
        kind = resource.get("resourceType")
        if kind not in RESOURCES or (kind, resource.get("resourceName")) not in done:
            continue
        for each in resource.get("configs") or ():
            name, operation = each.get("name") or "", each.get("configOperation", SET)
            value = shown(kind, name, each.get("value"))
            if operation == DELETE:
                value = None
            elif operation != SET:
                value = f"{'+' if operation == 2 else '-'} {value}"  # of an unknown list
            yield setting(
                RESOURCES[kind], resource.get("resourceName") or "", name, value, None, client_of(exchange)
            )


def _made(exchange: Exchange, request: Body, response: Body) -> Told:
    """The settings of new topics."""
    if request.get("validateOnly"):
        return
    done = {each.get("name") for each in response.get("topics") or () if each.get("errorCode") == 0}
    for topic in request.get("topics") or ():
        for each in topic.get("configs") or ():
            if topic.get("name") in done:
                name = each.get("name") or ""
                yield setting("topic", topic["name"], name, shown(2, name, each.get("value")), "topic", None)


def entity_text(entity: Any) -> str:
    """``user alice, client-id <default>``."""
    parts = []
    for each in entity or ():
        name = each.get("entityName")
        parts.append(f"{each.get('entityType')} {'<default>' if name is None else name}")
    return ", ".join(parts)


def _quotas(_: Exchange, request: Body, response: Body) -> Told:
    if not accepted(response):
        return
    for entry in response.get("entries") or ():
        for each in entry.get("values") or ():
            value = number_text(each.get("value"))
            yield setting("quota", entity_text(entry.get("entity")), each.get("key") or "", value, None, None)


def _altered_quotas(exchange: Exchange, request: Body, response: Body) -> Told:
    if request.get("validateOnly"):
        return
    done = {
        entity_text(each.get("entity"))
        for each in response.get("entries") or ()
        if each.get("errorCode") == 0
    }
    for entry in request.get("entries") or ():
        entity = entity_text(entry.get("entity"))
        for each in entry.get("ops") or ():
            if entity in done:
                value = None if each.get("remove") else number_text(each.get("value"))
                yield setting("quota", entity, each.get("key") or "", value, None, client_of(exchange))


def number_text(value: Any) -> str:
    """``1048576``, not ``1048576.0``."""
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def _features(_: Exchange, request: Body, response: Body) -> Told:
    """The finalized features. A starting node lists only those it needs, without an epoch: it does not know
    the others yet (KIP-584)."""
    if response.get("finalizedFeaturesEpoch", -1) < 0:
        return
    for each in response.get("finalizedFeatures") or ():
        yield setting("feature", "", each.get("name") or "", str(each.get("maxVersionLevel")), None, None)


def _altered_features(exchange: Exchange, request: Body, response: Body) -> Told:
    if request.get("validateOnly") or not accepted(response):
        return
    results = response.get("results")
    done = (
        {each.get("feature") for each in results if not each.get("errorCode")}
        if results is not None
        else None
    )
    for each in request.get("featureUpdates") or ():
        if done is None or each.get("feature") in done:
            level = each.get("maxVersionLevel", 0)
            value = str(level) if level > 0 else None
            yield setting("feature", "", each.get("feature") or "", value, None, client_of(exchange))


def acl_text(acl: Body) -> str:
    """``User:alice may Read topic orders*``."""
    kind = _ACL_RESOURCES.get(acl.get("resourceType", 0), "resource")
    operation = acl.get("operation", 0)
    word = _OPERATIONS[operation] if 0 <= operation < len(_OPERATIONS) else str(operation)
    pattern = acl.get("resourcePatternType", acl.get("patternType", 3))
    permission = _PERMISSIONS.get(acl.get("permissionType", 0), "?")
    host = acl.get("host")
    return (
        f"{permission} {acl.get('principal')} {word} {kind} {acl.get('resourceName')}"
        f"{'*' if pattern == 4 else ''}{'' if host in ('*', None) else f' from {host}'}"
    )


def _created_acls(exchange: Exchange, request: Body, response: Body) -> Told:
    asked = request.get("creations") or ()
    for acl, result in zip(asked, response.get("results") or (), strict=False):
        if result.get("errorCode") == 0:
            yield Statement("acl", (acl_text(acl),), fields(is_there=True), client_of(exchange))


def _deleted_acls(exchange: Exchange, request: Body, response: Body) -> Told:
    for result in response.get("filterResults") or ():
        for acl in result.get("matchingAcls") or ():
            if not result.get("errorCode") and acl.get("errorCode") == 0:
                yield Statement("acl", (acl_text(acl),), fields(is_there=False), client_of(exchange))


SETTINGS: dict[str, Callable[[Exchange, Body, Body], Told]] = {
    "DescribeConfigs": _described,
    "AlterConfigs": _altered,
    "IncrementalAlterConfigs": _altered,
    "CreateTopics": _made,
    "DescribeClientQuotas": _quotas,
    "AlterClientQuotas": _altered_quotas,
    "ApiVersions": _features,
    "UpdateFeatures": _altered_features,
    "CreateAcls": _created_acls,
    "DeleteAcls": _deleted_acls,
}
"""The function for each API. It needs complete exchanges."""
