"""``--decode-as``, ``--schemas``, ``--registry``: what decodes the keys and values of records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.config import Config
from kdissect.cli.errors import Complaints, Wrong
from kdissect.model import CaptureError

if TYPE_CHECKING:
    from kdissect.payload.decoder import PayloadDecoder
    from kdissect.registry.remote import Registry

_OPTIONS = (
    click.option(
        "--decode-as",
        "payload_rules",
        multiple=True,
        metavar="TOPIC=FORM",
        help="Decode values of topics: avro:FILE, protobuf:FILE#Message, json, auto … "
        "TOPIC may have * and ?; TOPIC:key=FORM is for keys. '*=auto' decodes whatever is recognised.",
    ),
    click.option(
        "--schemas",
        "schemas",
        multiple=True,
        metavar="DIR",
        help="Decode keys and values with the schemas of a folder: ID.avsc, ID.proto, ID.json …",
    ),
    click.option(
        "--registry",
        "registry",
        metavar="URL",
        help="Ask this schema registry (Confluent's, or Apicurio's /apis/ccompat/v7) for schemas. User and "
        "password: KDISSECT_REGISTRY_USER, KDISSECT_REGISTRY_PASSWORD, the configuration, or ~/.netrc.",
    ),
    click.option(
        "--registry-ca", "registry_ca", metavar="FILE", help="Certificates (PEM) to trust, for --registry."
    ),
)


def payload_options(function: click.decorators.FC) -> click.decorators.FC:
    """The options of :func:`decoder_of`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def decoder_of(given: Mapping[str, Any], config: Config) -> PayloadDecoder | None:
    """What decodes; None if nobody asks for it.

    :raises Wrong: a rule or a folder cannot be used.
    """
    rules = rules_of(given, config)
    folders = given.get("schemas") or config.schemas
    registry = registry_of(given, config)
    if not rules and not folders and registry is None:
        return None
    from kdissect.payload.decoder import PayloadDecoder
    from kdissect.registry.folders import read_schemas
    from kdissect.registry.rules import rule_of

    try:
        schemas = read_schemas(folders, config.limits)
    except CaptureError as error:
        raise Wrong(f"--schemas {error}") from None
    schemas.registry = registry
    found = []
    for text in rules:
        try:
            found.append(rule_of(text, schemas))
        except ValueError as error:
            raise Wrong(f"--decode-as {text}: {error}") from None
    decoder = PayloadDecoder(schemas, found, config.limits)
    tell(decoder)
    return decoder


def payload_arguments(given: Mapping[str, Any]) -> list[str]:
    """The same options for another process, which may have another working directory."""
    out = [part for rule in given["payload_rules"] for part in ("--decode-as", rule)]
    out += [part for folder in given["schemas"] for part in ("--schemas", os.path.abspath(folder))]
    if given["registry"] is not None:
        out += ["--registry", given["registry"]]
    if given["registry_ca"] is not None:
        out += ["--registry-ca", os.path.abspath(given["registry_ca"])]
    return out


def registry_of(given: Mapping[str, Any], config: Config) -> Registry | None:
    """The registry that ``--registry`` names; None without it.

    :raises Wrong: it cannot be asked so.
    """
    url, ca = given.get("registry"), given.get("registry_ca")
    if url is None:
        if ca is not None:
            raise Wrong("--registry-ca needs --registry URL")
        return None
    from kdissect.registry.credentials import Configured, credentials_for
    from kdissect.registry.remote import Registry, place_of

    configured = Configured(**config.registry)
    try:
        place = place_of(url)
        shown = credentials_for(place, configured, os.environ)
        return Registry(place, shown, ca or configured.ca, configured.timeout_s)
    except ValueError as error:
        raise Wrong(f"--registry: {error}") from None


def refuse_registry(given: Mapping[str, Any]) -> None:
    """See that no registry is asked where it cannot be: tasks of Spark run on machines of their own.

    :raises Wrong: it is.
    """
    for name in ("registry", "registry_ca"):
        if given.get(name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise Wrong(
                f"{option}: Spark tasks do not ask a registry; give --schemas with a folder that all tasks "
                "can read"
            )


def rules_of(given: Mapping[str, Any], config: Config) -> tuple[str, ...]:
    """The rules of the configuration, then those of ``--decode-as``, which count more."""
    configured = (f"{topic}={form}" for topic, form in config.decode_as.items())
    return (*configured, *given.get("payload_rules", ()))


def learn_of_logs(decoder: PayloadDecoder, paths: Iterable[str], config: Config) -> None:
    """Take in the schemas that log directories hold themselves, before their records are shown."""
    from kdissect.registry.folders import learn_logs, schema_folders

    learn_logs(decoder.schemas, schema_folders(paths), config.limits)


def tell(decoder: PayloadDecoder | None) -> None:
    """Tell what is wrong with schemas, each once."""
    if decoder is None:
        return
    complaints = Complaints()
    for problem in decoder.schemas.problems:
        complaints.say(problem)
    decoder.schemas.problems.clear()
    complaints.close()
