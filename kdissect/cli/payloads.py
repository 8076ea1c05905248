"""``--decode-as``, ``--schemas``, ``--registry``: the decoder of the keys and values of records."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.config import Config, Mistaken, place_of
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
    """The decoder; None if no option needs one.

    :raises Wrong: a rule or a folder cannot be used.
    """
    decoder = _decoder_of(given, config)
    report_faults(decoder)
    return decoder


def _decoder_of(given: Mapping[str, Any], config: Config) -> PayloadDecoder | None:
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
    return PayloadDecoder(schemas, found, config.limits)


def usable_decoder(
    given: Mapping[str, Any], config: Config, mistaken: Mistaken
) -> tuple[Config, PayloadDecoder | None]:
    """The configuration without unusable folders, rules and registry, and its decoder.

    :param mistaken: called with each of them.
    :raises Wrong: an option of the command line cannot be used.
    """
    try:
        return config, decoder_of(given, config)
    except Wrong:
        kept = config._replace(schemas=(), decode_as={}, registry={})
    decoder = _decoder_of(given, kept)
    for table, name, add in _one_by_one(config):
        more = add(kept)
        try:
            decoder = _decoder_of(given, more)
        except Wrong as wrong:
            mistaken(Wrong(f"{place_of(table, name)}: {wrong.message.removeprefix('--')}"))
        else:
            kept = more
    report_faults(decoder)
    return kept, decoder


def _one_by_one(config: Config) -> Iterator[tuple[str, str, Callable[[Config], Config]]]:
    """The settings for decoding: table and name of each, and a function that adds it to a configuration."""

    def add_folder(folder: str, to: Config) -> Config:
        return to._replace(schemas=(*to.schemas, folder))

    def add_rule(topic: str, form: str, to: Config) -> Config:
        return to._replace(decode_as={**to.decode_as, topic: form})

    def add_registry(to: Config) -> Config:
        return to._replace(registry=config.registry)

    for folder in config.schemas:
        yield "", "schemas", partial(add_folder, folder)
    for topic, form in config.decode_as.items():
        yield "decode_as", topic, partial(add_rule, topic, form)
    yield "", "registry", add_registry


def payload_arguments(given: Mapping[str, Any]) -> list[str]:
    """The options for another process, which may have another working directory."""
    out = [part for rule in given["payload_rules"] for part in ("--decode-as", rule)]
    out += [part for folder in given["schemas"] for part in ("--schemas", os.path.abspath(folder))]
    if given["registry"] is not None:
        out += ["--registry", given["registry"]]
    if given["registry_ca"] is not None:
        out += ["--registry-ca", os.path.abspath(given["registry_ca"])]
    return out


def registry_of(given: Mapping[str, Any], config: Config) -> Registry | None:
    """The registry that ``--registry`` names; None without the option.

    :raises Wrong: the registry cannot be used.
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
    """Refuse a registry where it cannot be used: tasks of Spark run on other machines.

    :raises Wrong: a registry is given.
    """
    for name in ("registry", "registry_ca"):
        if given.get(name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise Wrong(
                f"{option}: Spark tasks do not ask a registry; give --schemas with a folder that all tasks "
                "can read"
            )


def rules_of(given: Mapping[str, Any], config: Config) -> tuple[str, ...]:
    """The rules of the configuration, then those of ``--decode-as``, which have precedence."""
    configured = (f"{topic}={form}" for topic, form in config.decode_as.items())
    return (*configured, *given.get("payload_rules", ()))


def learn_of_logs(decoder: PayloadDecoder, paths: Iterable[str], config: Config) -> None:
    """Take in the schemas that log directories contain, before their records are shown."""
    from kdissect.registry.folders import learn_logs, schema_folders

    learn_logs(decoder.schemas, schema_folders(paths), config.limits)


def report_faults(decoder: PayloadDecoder | None) -> None:
    """Report faults of schemas, each once."""
    if decoder is None:
        return
    complaints = Complaints()
    for problem in decoder.schemas.problems:
        complaints.report(problem)
    decoder.schemas.problems.clear()
    complaints.close()
