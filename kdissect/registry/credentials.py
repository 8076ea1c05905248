"""The credentials for a registry. They come from the environment, the configuration or ``~/.netrc``.

They never come from the command line, which other users can see. Messages never show their values.
"""

from __future__ import annotations

import netrc
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from kdissect.registry.remote import TIMEOUT_S, RegistryCredentials, RegistryUrl, place_of

USER, PASSWORD, TOKEN = "KDISSECT_REGISTRY_USER", "KDISSECT_REGISTRY_PASSWORD", "KDISSECT_REGISTRY_TOKEN"
_TOKEN = re.compile(r"[\x21-\x7e]+")


class Configured(NamedTuple):
    """The section ``[registry]`` of the configuration."""

    url: str | None = None
    """The registry that the credentials are for. It is used only with ``--registry``."""
    user: str | None = None
    password: str | None = None
    token: str | None = None
    ca: str | None = None
    """A file of certificates."""
    timeout_s: float = TIMEOUT_S

    def __repr__(self) -> str:
        return f"Configured({self.url!r}, …)"


def credentials_for(
    place: RegistryUrl, configured: Configured, environment: Mapping[str, str]
) -> RegistryCredentials:
    """The credentials for a registry: from the environment, else from the configuration, else from netrc.

    :raises ValueError: they cannot be used.
    """
    user, password, token = (environment.get(name) for name in (USER, PASSWORD, TOKEN))
    if user or token:
        return _checked(RegistryCredentials(user or None, password, token or None), "the environment")
    if password:
        raise ValueError(f"{PASSWORD} is set, and {USER} is not")
    if configured.url is not None and place_of(configured.url).origin == place.origin:
        found = RegistryCredentials(configured.user, configured.password, configured.token)
        if found.header() is not None:
            return _checked(found, "the configuration")
    return _of_netrc(place, environment)


def _checked(found: RegistryCredentials, where: str) -> RegistryCredentials:
    if found.token is not None:
        if found.user is not None:
            raise ValueError(f"{where} has both a user and a token for the registry: give only one of them")
        if not _TOKEN.fullmatch(found.token):
            raise ValueError(f"{where} has a token for the registry with invalid characters")
    if found.user is not None and ":" in found.user:
        raise ValueError(f"{where}: the name of a registry user cannot have a colon")
    return found


def _of_netrc(place: RegistryUrl, environment: Mapping[str, str]) -> RegistryCredentials:
    """The host's entry in netrc. A ``default`` entry names no host, so it is sent to none."""
    path = environment.get("NETRC") or os.path.join(os.path.expanduser("~"), ".netrc")
    if not os.path.isfile(path):
        return RegistryCredentials()
    try:
        found = netrc.netrc(path).hosts.get(place.host)
    except netrc.NetrcParseError as error:
        at = "" if error.lineno is None else f", line {error.lineno}"
        raise ValueError(f"{path}{at}: this is not a netrc file") from None
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"{path}: cannot be read") from None
    if found is None:
        return RegistryCredentials()
    return _checked(RegistryCredentials(found[0] or found[1], found[2]), path)
