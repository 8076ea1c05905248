"""Which values are secrets: the rules that the definitions name beside the fields.

Everything that Kafka's own request log hides is hidden, and also secrets that it should hide but writes.
Names of users, token ids and config names stay. In a message that can contain a secret, bytes outside of all
fields are hidden too, because a secret may be among them. A broker's text about a request with a secret is
hidden if it repeats that secret, or if the request is not known.

If only imported definitions have a field, its name is all that is known. Fields whose names suggest a secret
are hidden unless the configuration shows them (``[secrets] show``). :mod:`kdissect.present.record_secrets`
finds the secrets in records of users' topics.

Every output uses these rules: JSON through :mod:`kdissect.present.body`, trees and hex dumps through
:mod:`kdissect.present.tree`. ``--show-secrets`` turns it off.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from kdissect import names
from kdissect.embedded.decoded import Context
from kdissect.embedded.framing import FRAME_VERSION, read_metadata, record_types
from kdissect.message import SASL_TOKEN
from kdissect.present.secret_names import suggests_secret
from kdissect.protocol.config_names import TOPIC, is_secret_config
from kdissect.protocol.definition import ALWAYS
from kdissect.protocol.imported import imported
from kdissect.protocol.json_plan import MARK, SECRET_TYPES, Hidden
from kdissect.protocol.library import Library, library
from kdissect.protocol.schema import Struct
from kdissect.protocol.select import Selection, pick, selection
from kdissect.protocol.traits import field_traits, secret_field_names

Ancestors = Sequence[dict[str, Any]]
"""The values of the structs around a field, the message's first."""

Asked = tuple[str, dict[str, Any]]
"""The class and the values of the request that a response answers."""


class Spot(NamedTuple):
    """A value and its place."""

    ancestors: Ancestors
    value: Any
    asked: Asked | None
    """None if the request is unknown or incomplete."""


Rule = Callable[[Spot], bool]
"""Whether this value of the field is a secret."""


def _always(_: Spot) -> bool:
    return True


def _config(spot: Spot) -> bool:
    """Whether a config that is being set is a secret: Kafka hides passwords and unknown configs
    (``loggableValue``)."""
    ancestors = spot.ancestors
    resource = next((each["resourceType"] for each in reversed(ancestors) if "resourceType" in each), None)
    return is_secret_config(resource, ancestors[-1].get("name"))


def _topic_config(spot: Spot) -> bool:
    return is_secret_config(TOPIC, spot.ancestors[-1].get("name"))


def _repeats(spot: Spot) -> bool:
    """Whether a broker's text about a request repeats a secret of it."""
    if spot.asked is None:
        return True
    text = str(spot.value)
    return any(secret in text for secret in secrets_of(*spot.asked))


def _sensitive(spot: Spot) -> bool:
    """Whether a config in a broker's answer is marked as sensitive. A synonym counts like its config. If the
    message breaks off before the mark, the config counts as sensitive."""
    ancestors = spot.ancestors
    config = ancestors[2] if len(ancestors) > 2 else ancestors[-1]
    return bool(config.get(MARK, True))


RULES: dict[str, Rule] = {
    ALWAYS: _always,
    "by config": _config,
    "by topic config": _topic_config,
    "if sensitive": _sensitive,
    "if repeated": _repeats,
}
"""The rules by the words after ``secret`` in the definitions. An unknown word means always."""
_TOKEN: dict[str, Rule] = {"authBytes": _always}
"""The secrets of a SASL token without a header, which no definition describes."""


def is_metadata_topic(ancestors: Ancestors) -> bool:
    """Whether the record set in these structs is one of ``__cluster_metadata``."""
    words = (values.get(name) for values in ancestors for name in ("topic", "name", "topicId"))
    return any(names.is_metadata_topic(word) for word in words)


def is_secret_metadata(value: bytes) -> bool:
    """Whether the value of a record of ``__cluster_metadata`` contains a secret. If that is unknown, the
    answer is yes.
    """
    found = read_metadata("metadata", value)
    if not may_hold_secrets(found.name):
        return False
    if not found.is_exact:
        return True
    return any(is_secret(found.name, name, (found.values,), item) for name, item in found.values.items())


def secret_metadata_types() -> bytes:
    """Whether records of each type of ``__cluster_metadata`` below 128 may contain a secret.

    A byte for each type, 1 or 0.
    """
    return _secret_types(library())


@lru_cache(maxsize=4)
def _secret_types(_: Library) -> bytes:
    names = record_types("metadata")
    return bytes(number in names and may_hold_secrets(names[number]) for number in range(128))


def is_secret_record(value: bytes | None, is_metadata: bool | None) -> bool:
    """Whether a record's value contains a secret.

    :param is_metadata: whether it belongs to ``__cluster_metadata``; None if its topic is unknown. Then a
        value counts only if all its bytes are a metadata record with a secret.
    """
    if is_metadata is False or not value:
        return False
    if is_metadata:
        return is_secret_metadata(value)
    return (
        value[0] == FRAME_VERSION and read_metadata("metadata", value).is_exact and is_secret_metadata(value)
    )


def may_hold_secrets(message: str) -> bool:
    """Whether messages of this class can contain secrets at all."""
    return bool(_rules(library(), message))


def secret_fields() -> frozenset[str]:
    """The names of the fields of all classes that are or may be secrets."""
    return secret_field_names() | _TOKEN.keys()


def answers_secrets(message: str) -> bool:
    """Whether the secrets of a response of this class depend on its request."""
    return _repeats in _rules(library(), message).values()


def asked_of(message: str, context: Context) -> Asked | None:
    """The request that a response of this class answers, if its secrets depend on that; None if it is not
    known completely."""
    if context.request is None or not context.is_whole:
        return None
    return message.removesuffix("Response") + "Request", context.request


def is_secret(
    message: str,
    field: str,
    ancestors: Ancestors,
    value: Any,
    shown: frozenset[str] = frozenset(),
    asked: Asked | None = None,
) -> bool:
    """Whether the value of a field must not be shown. Null and empty values are no secrets.

    :param message: Kafka's name of the message class.
    :param shown: the fields of imported definitions that are shown although their names suggest a secret.
        They are of a class or an API (``MoonRequest.token``, ``Moon.token``), all of one (``Moon``), or of
        any (``token``).
    :param asked: the request, if the message is its response.
    """
    if value is None or value in ("", b"", []):
        return False
    rule = _rules(library(), message).get(field)
    if rule is None or (shown and rule is _looks_secret and _is_shown(message, field, shown)):
        return False
    return rule(Spot(ancestors, value, asked))


def hidden_fields(message: str, shown: frozenset[str] = frozenset()) -> Hidden | None:
    """The fields of a message class that are or may be secrets; None if it cannot contain any.

    :param shown: as for :func:`is_secret`.
    """
    if not may_hold_secrets(message):
        return None
    always: set[str] = set()
    maybe: set[str] = set()
    marked: set[str] = set()
    for name, rule in _rules(library(), message).items():
        if rule is _looks_secret:
            if not _is_shown(message, name, shown):
                always.add(name)
        else:
            (always if rule is _always else marked if rule is _sensitive else maybe).add(name)
    return Hidden(frozenset(always), frozenset(maybe), frozenset(marked))


def verdicts(
    struct: Struct, values: dict[str, Any], maybe: frozenset[str], asked: Asked | None
) -> Iterator[bool]:
    """For each value in a message that may be a secret, whether it is one. The values come in the order of
    the wire, without null and empty ones.

    :param maybe: the fields that may be secrets, as :func:`hidden_fields` gives them.
    :param asked: as for :func:`is_secret`.
    """
    rules = _rules(library(), struct.name)  # found once: a broker's answer has thousands of configs
    for name, value, ancestors in pick(_places(struct, maybe), values):
        if value:
            rule = rules.get(name)
            yield rule is not None and rule(Spot(ancestors, value, asked))


@lru_cache(maxsize=256)
def _places(struct: Struct, names: frozenset[str]) -> Selection:
    """The places of the fields with these names in a struct."""
    return selection(struct, lambda field: field.name in names and field.type in SECRET_TYPES)


def _is_shown(message: str, field: str, shown: frozenset[str]) -> bool:
    api = message.removesuffix("Request").removesuffix("Response")
    return not shown.isdisjoint((field, message, api, f"{message}.{field}", f"{api}.{field}"))


def _looks_secret(_: Spot) -> bool:
    """The rule for a field of which only the name is known: it is a secret."""
    return True


@lru_cache(maxsize=4096)
def _rules(_: Library, message: str) -> dict[str, Rule]:
    """The fields of a class that are or may be secrets, with those of imported definitions.

    :param _: the definitions in use, because the result depends on them.
    """
    if message == SASL_TOKEN:
        return _TOKEN
    unknown = imported(message).fields
    rules = {
        name: _looks_secret for name, around in unknown if suggests_secret(name) or suggests_secret(around)
    }
    told = field_traits(message).secrets
    return {**rules, **{name: RULES.get(rule, _always) for name, rule in told.items()}}


# -- secrets that are repeated ----------------------------------------------------------------------


def secrets_of(message: str, values: dict[str, Any]) -> frozenset[str]:
    """The secrets in the values of a request, in the form in which a text would repeat them."""
    return frozenset(text for text in _secrets_in(message, (values,)) if text)


def _secrets_in(message: str, ancestors: tuple[dict[str, Any], ...]) -> Iterator[str]:
    for name, value in ancestors[-1].items():
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, dict):
                yield from _secrets_in(message, (*ancestors, item))
            elif isinstance(item, str | bytes) and is_secret(message, name, ancestors, item):
                yield from _forms(item)


def _forms(secret: str | bytes) -> Iterator[str]:
    if isinstance(secret, str):
        yield secret
        return
    yield secret.hex()
    yield b64encode(secret).decode()
    text = secret.decode("utf-8", "surrogateescape")
    yield text
    parts = text.split("\0")
    if len(parts) == 3:  # PLAIN: authorization id, user name and password (RFC 4616)
        yield parts[2]
    yield from re.findall(r"auth=\w+ ([^\x01]+)", text)  # OAUTHBEARER (RFC 7628)
