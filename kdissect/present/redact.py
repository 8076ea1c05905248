"""Which fields are secrets: one table, and the rule for each.

What Kafka's own request log hides is hidden, and what it writes although it should not. Names of users,
token ids and config names stay. A message that can hold a secret hides the bytes that no field accounts
for too: a secret may be among them.

Every output asks here: JSON through :mod:`kdissect.present.body`, trees and hex dumps through
:mod:`kdissect.present.tree`. ``--show-secrets`` turns it off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from kdissect import names
from kdissect.embedded.framing import FRAME_VERSION, read_metadata
from kdissect.present.config_names import BROKER, BROKER_LOGGER, NOT_SECRET, TOPIC

Ancestors = Sequence[dict[str, Any]]
"""The values of the structs around a field, the message's first."""

Rule = Callable[[Ancestors], bool]
"""Whether this value of the field is a secret."""


def _always(_: Ancestors) -> bool:
    return True


def _config(ancestors: Ancestors) -> bool:
    """A config to be set: Kafka hides passwords and what it does not know (``loggableValue``)."""
    resource = next((each["resourceType"] for each in reversed(ancestors) if "resourceType" in each), None)
    return is_secret_config(resource, ancestors[-1].get("name"))


def _topic_config(ancestors: Ancestors) -> bool:
    return is_secret_config(TOPIC, ancestors[-1].get("name"))


def _sensitive(ancestors: Ancestors) -> bool:
    """A config as a broker tells it, which marks those that are sensitive. A synonym goes with its config.
    Where the message breaks off before the mark, it is taken for sensitive."""
    config = ancestors[2] if len(ancestors) > 2 else ancestors[-1]
    return bool(config.get("isSensitive", True))


_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)")


def is_secret_config(resource: int | None, name: Any) -> bool:
    """Whether a config's value is a secret: a password, or unknown.

    :param resource: Kafka's ``ConfigResource.Type``.
    """
    if resource == BROKER_LOGGER:
        return False
    known = NOT_SECRET.get(resource if resource is not None else -1)
    if known is None or not isinstance(name, str):
        return True
    prefixed = _LISTENER.fullmatch(name) if resource == BROKER else None
    return name not in known and not (prefixed and prefixed[1] in known)


SECRETS: dict[str, dict[str, Rule]] = {
    # Messages of the protocol
    "SaslToken": {"authBytes": _always},
    "SaslAuthenticateRequest": {"authBytes": _always},
    "SaslAuthenticateResponse": {"authBytes": _always},
    "CreateDelegationTokenResponse": {"hmac": _always},
    "RenewDelegationTokenRequest": {"hmac": _always},
    "ExpireDelegationTokenRequest": {"hmac": _always},
    "DescribeDelegationTokenResponse": {"hmac": _always},
    "AlterUserScramCredentialsRequest": {"salt": _always, "saltedPassword": _always},
    "CreateTopicsRequest": {"value": _topic_config},
    "CreateTopicsResponse": {"value": _sensitive},
    "AlterConfigsRequest": {"value": _config},
    "IncrementalAlterConfigsRequest": {"value": _config},
    "DescribeConfigsResponse": {"value": _sensitive},
    "EnvelopeRequest": {"requestData": _always, "requestPrincipal": _always},
    "EnvelopeResponse": {"responseData": _always},
    "PushTelemetryRequest": {"metrics": _always},
    # Records of Kafka's own topics
    "ConfigRecord": {"value": _config},
    "UserScramCredentialRecord": {"salt": _always, "storedKey": _always, "serverKey": _always},
}
"""Message class: its fields that are or may be secrets."""


def is_metadata_topic(ancestors: Ancestors) -> bool:
    """Whether the record set in these structs is one of ``__cluster_metadata``."""
    words = (values.get(name) for values in ancestors for name in ("topic", "name", "topicId"))
    return names.is_metadata_topic(*words)


def is_secret_metadata(value: bytes) -> bool:
    """Whether the value of a record of ``__cluster_metadata`` holds a secret, as far as can be told."""
    found = read_metadata("metadata", value)
    if not may_hold_secrets(found.name):
        return False
    if not found.is_exact:
        return True
    return any(is_secret(found.name, name, (found.values,), item) for name, item in found.values.items())


def is_secret_record(value: bytes | None, is_metadata: bool | None) -> bool:
    """Whether a record's value holds a secret.

    :param is_metadata: whether it is of ``__cluster_metadata``; None where its topic is not known. Then
        only bytes that are nothing but a metadata record with a secret are taken for one.
    """
    if is_metadata is False or not value:
        return False
    if is_metadata:
        return is_secret_metadata(value)
    return (
        value[0] == FRAME_VERSION and read_metadata("metadata", value).is_exact and is_secret_metadata(value)
    )


def may_hold_secrets(message: str) -> bool:
    """Whether messages of this class can hold secrets at all."""
    return message in SECRETS


def is_secret(message: str, field: str, ancestors: Ancestors, value: Any) -> bool:
    """Whether the value of a field must not be shown. Null and nothing are no secrets.

    :param message: Kafka's name of the message class.
    """
    if value is None or value in ("", b""):
        return False
    rules = SECRETS.get(message)
    rule = rules.get(field) if rules else None
    return rule is not None and rule(ancestors)
