"""``--decode-as``, ``--schemas``: what decodes the keys and values of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.config import Config
from kdissect.cli.errors import Complaints, Wrong
from kdissect.model import CaptureError

if TYPE_CHECKING:
    from kdissect.payload.decoder import Decoder

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
)


def payload_options(function: click.decorators.FC) -> click.decorators.FC:
    """The options of :func:`decoder_of`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def decoder_of(given: Mapping[str, Any], config: Config) -> Decoder | None:
    """What decodes; None if nobody asks for it.

    :raises Wrong: a rule or a folder cannot be used.
    """
    rules = rules_of(given, config)
    folders = given["schemas"] or config.schemas
    if not rules and not folders:
        return None
    from kdissect.payload.decoder import Decoder
    from kdissect.registry.folders import read_schemas
    from kdissect.registry.rules import rule_of

    try:
        schemas = read_schemas(folders, config.limits)
    except CaptureError as error:
        raise Wrong(f"--schemas {error}") from None
    found = []
    for text in rules:
        try:
            found.append(rule_of(text, schemas))
        except ValueError as error:
            raise Wrong(f"--decode-as {text}: {error}") from None
    decoder = Decoder(schemas, found, config.limits)
    tell(decoder)
    return decoder


def rules_of(given: Mapping[str, Any], config: Config) -> tuple[str, ...]:
    """The rules of the configuration, then those of ``--decode-as``, which count more."""
    configured = (f"{topic}={form}" for topic, form in config.decode_as.items())
    return (*configured, *given.get("payload_rules", ()))


def learn_of_logs(decoder: Decoder, paths: Iterable[str], config: Config) -> None:
    """Take in the schemas that log directories hold themselves, before their records are shown."""
    from kdissect.registry.folders import learn_logs, schema_folders

    learn_logs(decoder.schemas, schema_folders(paths), config.limits)


def tell(decoder: Decoder | None) -> None:
    """Tell what is wrong with schemas, each once."""
    if decoder is None:
        return
    complaints = Complaints()
    for problem in decoder.schemas.problems:
        complaints.say(problem)
    decoder.schemas.problems.clear()
    complaints.close()
