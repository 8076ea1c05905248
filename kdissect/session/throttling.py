"""The time for which a quota throttles a client, from the responses (KIP-124, KIP-219).

Brokers before 2.0 delay the answer itself by ``throttleTimeMs``. Since KIP-219 they answer at once, and then
read nothing from the connection for that time. Later requests wait, and that wait is part of the *next*
exchange's latency. A current client waits by itself, so that the broker need not.

The broker's release decides between the two, not the version of the request. A connection may show that its
broker is 2.0 or newer: by a version that came with KIP-219, or by the broker's list of versions. The
definitions have these versions. They are those in which Kafka's clients wait by themselves
(``AbstractResponse.shouldClientThrottle``), and one later version. If nothing shows it, the answer counts as
delayed only if it took at least the throttle time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kdissect.message import Message, Request
from kdissect.protocol.apis import PRODUCE
from kdissect.protocol.program import THROTTLE_FIELD
from kdissect.protocol.schema import Struct
from kdissect.protocol.traits import api_traits

_NEWER_API = 43
"""The first key of APIs newer than KIP-219 (ElectLeaders, Kafka 2.2)."""


def answers_first(request: Request) -> bool:
    """Whether the version of an answered request shows that its broker answers before it throttles."""
    key, version = request.api_key, request.api_version
    if key is None or version is None:
        return False
    return answers_first_in(key, version)


def answers_first_in(key: int, version: int) -> bool:
    """Whether a version of an API shows that its broker answers before it throttles."""
    return key >= _NEWER_API or version in api_traits(key).answers_first


def offers_answers_first(offered: dict[str, Any]) -> bool:
    """Whether a broker's versions show that it answers before it throttles; ``offered`` is the body of its
    answer to ApiVersions."""
    for each in offered.get("apiKeys") or ():
        if each.get("apiKey") == PRODUCE:
            return (each.get("maxVersion") or 0) in api_traits(PRODUCE).answers_first
    return False


def throttle_in(candidates: Sequence[Struct]) -> tuple[bool, bool]:
    """Whether an answer has a throttle time. Then whether it can be read without the other fields: it
    precedes them, or is absent.

    :param candidates: the possible structs of its body.
    """
    throttles = [THROTTLE_FIELD in each.by_name for each in candidates]
    if not any(throttles):
        return False, bool(candidates)
    return True, all(each.fields and each.fields[0].name == THROTTLE_FIELD for each in candidates)


def told_ms(response: Message) -> int:
    """The throttle time in a response, ms; 0 without one."""
    seen = response.survey()
    told = seen.throttle_ms if seen is not None else response.body().get(THROTTLE_FIELD)
    return max(0, told) if isinstance(told, int) else 0
