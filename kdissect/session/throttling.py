"""How long a quota holds a request back, as the responses tell it (KIP-124, KIP-219).

Brokers before 2.0 hold the answer itself back for ``throttleTimeMs``. Since KIP-219 they answer at once, and
then read nothing from the connection for that long. What comes in the meantime waits, and that wait is a part
of the *next* exchange's latency. A client of today waits by itself, so that the broker need not.

The broker's release decides between the two, whatever version it is asked in. A connection may show that its
broker is 2.0 or newer: by a version that came with KIP-219, or by what it offers. The definitions tell these
versions. They are those in which Kafka's clients wait by themselves
(``AbstractResponse.shouldClientThrottle``), and one that came later. Where nothing shows it, the answer was
held back only if it took at least as long as it says.
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
"""Keys from here on (ElectLeaders, Kafka 2.2) are newer than KIP-219."""


def answers_first(request: Request) -> bool:
    """Whether the version of a request that was served shows that its broker answers before it throttles."""
    key, version = request.api_key, request.api_version
    if key is None or version is None:
        return False
    return answers_first_in(key, version)


def answers_first_in(key: int, version: int) -> bool:
    """The same of an API in a version."""
    return key >= _NEWER_API or version in api_traits(key).answers_first


def offers_answers_first(offered: dict[str, Any]) -> bool:
    """Whether the versions that a broker offers show it; ``offered`` is the body of its answer to
    ApiVersions."""
    for each in offered.get("apiKeys") or ():
        if each.get("apiKey") == PRODUCE:
            return (each.get("maxVersion") or 0) in api_traits(PRODUCE).answers_first
    return False


def throttle_in(candidates: Sequence[Struct]) -> tuple[bool, bool]:
    """Whether an answer tells how long a quota holds the client back. Then whether that is known without a
    look at its other fields: it stands before them, or nowhere.

    :param candidates: the forms that its body may have.
    """
    throttles = [THROTTLE_FIELD in each.by_name for each in candidates]
    if not any(throttles):
        return False, bool(candidates)
    return True, all(each.fields and each.fields[0].name == THROTTLE_FIELD for each in candidates)


def told_ms(response: Message) -> int:
    """The throttle time that a response tells, ms; 0 where it tells none."""
    seen = response.survey()
    told = seen.throttle_ms if seen is not None else response.body().get(THROTTLE_FIELD)
    return max(0, told) if isinstance(told, int) else 0
