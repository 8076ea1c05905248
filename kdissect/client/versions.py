"""The version of each request, by the versions that the broker advertises, that kdissect knows and that the
user forces.

A client sends ApiVersions in the newest version that it knows. A broker that does not know this version
answers in version 0 with error 35, and with its range of ApiVersions if it can (KIP-511). Then the client
sends it again in the newest version that both know. Brokers before 0.10 know no ApiVersions and close the
connection: they advertise nothing, and versions must be forced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kdissect import __version__
from kdissect.client.errors import AskingError
from kdissect.protocol import apis
from kdissect.protocol.errors import error_names
from kdissect.protocol.schema import Struct, message_struct

UNSUPPORTED_VERSION = next(code for code, name in error_names().items() if name == "UNSUPPORTED_VERSION")

Values = dict[str, Any]


def request_struct(api_key: int, version: int) -> Struct:
    """The schema of a request.

    :raises AskingError: the definitions do not have it.
    """
    try:
        return message_struct(api_key, version, "request")
    except LookupError as error:
        raise AskingError(f"{error.args[0]}: kdissect client send --hex sends bytes of any version") from None


def api_versions_body(version: int) -> Values:
    """The body of an ApiVersions request. From version 3 on, it names the client software."""
    if version < 3:
        return {}
    return {"clientSoftwareName": "kdissect", "clientSoftwareVersion": __version__}


class Advertised:
    """The versions that a broker advertises."""

    def __init__(self, ranges: Mapping[int, range]) -> None:
        self.ranges = dict(ranges)
        """The versions by API key, as advertised; both in the broker's order."""

    def pick(
        self, api_key: int, lowest: int = 0, highest: int | None = None, *, forced: int | None = None
    ) -> int:
        """The newest version that both sides know, within bounds; a forced one is returned unchanged.

        :raises AskingError: there is no such version.
        """
        if forced is not None:
            return forced
        name, known = apis.api_name(api_key), apis.versions(api_key)
        theirs = self.ranges.get(api_key)
        if theirs is None:
            raise AskingError(f"the broker does not advertise {name}: --api-version N sends it anyway")
        stable = [each for each in known if each not in apis.api_summary(api_key).unstable] or list(known)
        wanted = [
            each
            for each in stable
            if each in theirs and each >= lowest and (highest is None or each <= highest)
        ]
        if not wanted:
            bounds = f"{lowest} to {known.stop - 1 if highest is None else highest}"
            said = f"{theirs.start} to {theirs.stop - 1}"
            raise AskingError(f"{name}: kdissect wants versions {bounds}, the broker advertises {said}")
        return max(wanted)


NOTHING = Advertised({})
"""The versions of a broker that was not asked."""


def advertised(body: Values) -> Advertised:
    """The versions in the body of an ApiVersions response."""
    return Advertised(
        {
            each["apiKey"]: range(each["minVersion"], each["maxVersion"] + 1)
            for each in body.get("apiKeys") or ()
        }
    )


def next_try(tried: int, body: Values) -> int | None:
    """The next version of ApiVersions to try; None if this answer has the versions."""
    if body.get("errorCode") != UNSUPPORTED_VERSION or tried == 0:
        return None
    theirs = advertised(body).ranges.get(apis.API_VERSIONS, range(1))
    both = [each for each in theirs if each in apis.versions(apis.API_VERSIONS) and each < tried]
    return max(both, default=0)
