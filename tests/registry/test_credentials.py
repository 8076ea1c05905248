"""Where the credentials for a registry come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.registry.credentials import PASSWORD, TOKEN, USER, Configured, credentials_for
from kdissect.registry.remote import RegistryCredentials, place_of

PLACE = place_of("https://registry.example:8081/api")
SECRET = "hunter2-and-more"
CONFIGURED = Configured("https://registry.example:8081", "configured", SECRET)


def netrc(folder: Path, text: str) -> dict[str, str]:
    path = folder / "netrc"
    path.write_text(text)
    path.chmod(0o600)
    return {"NETRC": str(path)}


def test_the_environment_counts_before_the_configuration_and_that_before_netrc(tmp_path: Path) -> None:
    file = netrc(tmp_path, f"machine registry.example login filed password {SECRET}\n")
    environment = {USER: "me", PASSWORD: SECRET}
    found = [
        credentials_for(PLACE, configured, said)
        for configured, said in (
            (CONFIGURED, environment | file),
            (CONFIGURED, {TOKEN: SECRET} | file),
            (CONFIGURED, file),
            (Configured(), file),
            (Configured(), {"NETRC": "/no/such/file"}),
        )
    ]
    assert found == [
        RegistryCredentials("me", SECRET),
        RegistryCredentials(token=SECRET),
        RegistryCredentials("configured", SECRET),
        RegistryCredentials("filed", SECRET),
        RegistryCredentials(),
    ]


@pytest.mark.parametrize(
    "url", ["http://registry.example:8081", "https://registry.example", "https://other.example:8081"]
)
def test_credentials_are_for_the_registry_that_they_are_configured_for(url: str) -> None:
    assert credentials_for(place_of(url), CONFIGURED, {"NETRC": "/no/such/file"}) == RegistryCredentials()


def test_the_default_of_netrc_is_for_nobody(tmp_path: Path) -> None:
    file = netrc(tmp_path, f"default login me password {SECRET}\n")
    assert credentials_for(PLACE, Configured(), file) == RegistryCredentials()


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({PASSWORD: SECRET}, f"{PASSWORD} is set, and {USER} is not"),
        ({USER: "me", TOKEN: SECRET}, "a user and a token"),
        ({TOKEN: SECRET + "\r\nX-Evil: 1"}, "invalid characters"),
        ({USER: f"me:{SECRET}"}, "a colon"),
    ],
)
def test_what_cannot_be_used_is_said_without_its_value(environment: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        credentials_for(PLACE, CONFIGURED, environment)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(CONFIGURED)


def test_a_broken_netrc_is_said_without_what_is_in_it(tmp_path: Path) -> None:
    file = netrc(tmp_path, f"machine registry.example login me {SECRET} x\n")
    with pytest.raises(ValueError, match="this is not a netrc file") as caught:
        credentials_for(PLACE, Configured(), file)
    assert SECRET not in str(caught.value)
