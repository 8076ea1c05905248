"""``kdissect bytes``: raw bytes of messages, records or internal records → decoded, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, BinaryIO, cast

import click

from kdissect.cli.completing import a_message_class, a_version, an_api
from kdissect.cli.config import load_config
from kdissect.cli.contents import FORMS, TOO_DEEP, bytes_from, content_of, json_from
from kdissect.cli.errors import Unreadable, Wrong
from kdissect.cli.exit_codes import DONE, UNREADABLE
from kdissect.cli.group import HelpfulGroup
from kdissect.cli.output import TextOutput, inputs_of, open_output
from kdissect.embedded.internal import FAMILIES
from kdissect.present import raw
from kdissect.present.nearest import nearest
from kdissect.present.options import Options
from kdissect.present.raw_trees import internal_tree, message_tree_of, records_tree
from kdissect.present.tables import json_line
from kdissect.protocol import apis

Object = dict[str, Any]
Answer = Callable[[Object, Options], Object]
LONGEST_LINE = 512 << 20
"""The most bytes of a line of NDJSON: the largest Kafka message in hex, with room to spare."""


def shared_options(function: click.decorators.FC) -> click.decorators.FC:
    """The options that all three commands share."""
    for option in (
        click.option("--show-secrets", is_flag=True, help="Show passwords, tokens and keys."),
        click.option("-o", "output", metavar="FILE", help="Write to this file instead of stdout."),
        click.option("-x", "dump", is_flag=True, help="Print the bytes beside the tree."),
        click.option(
            "-T", "form", type=click.Choice(("tree", "ndjson")), default="tree", help="Output format."
        ),
        click.option("--input", "input_form", type=click.Choice(FORMS), default="auto", help="Form of DATA."),
        click.option("--encode", is_flag=True, help="Encode: Kafka's JSON in, bytes out."),
        click.option(
            "--ndjson", is_flag=True, help="Read one question per line from stdin; print one answer per line."
        ),
        click.argument("data", required=False, metavar="[DATA | FILE | -]"),
    ):
        function = option(function)
    return function


@click.group(cls=HelpfulGroup)
def command() -> None:
    """Decode raw bytes: hex, base64, a file, stdin, or NDJSON lines on stdin.

    Fields of a line and of its answer (an id is passed through):

    \b
    message   kind (request, response, data), api_key or api, version, hex
              (data: any other message class, with name)  → body, consumed, faults
    records   hex                                         → batches, records, faults
    internal  family, key_hex, value_hex, name (optional)   → name, version, key, body, faults

    A line that is not understood is answered with an error; the exit code is then 3.
    """


@command.command()
@shared_options
@click.option(
    "--kind", type=click.Choice(("request", "response", "data")), default="request", show_default=True
)
@click.option(
    "--api",
    metavar="NAME|KEY",
    shell_complete=an_api,
    help="API of the message. Without it DATA is a whole request, header first.",
)
@click.option(
    "--api-version",
    "version",
    type=int,
    metavar="N",
    shell_complete=a_version,
    help="Version of the API or class.",
)
@click.option(
    "--name",
    metavar="CLASS",
    shell_complete=a_message_class,
    help="Kafka's message class, with --kind data.",
)
@click.option("--embedded", is_flag=True, help="Decode bytes inside the message too.")
@click.option("--records", is_flag=True, help="Show decoded record batches inside the message.")
def message(**given: Any) -> int:
    """A request or response without its header, or any other message class."""
    return _run(given, raw.decode_message, raw.encode_message, _asked_message, message_tree_of)


@command.command()
@shared_options
def records(**given: Any) -> int:
    """A record set: the batches of a Produce request, a Fetch response, a log segment."""
    return _run(given, raw.decode_records, raw.encode_records, lambda _: {}, records_tree)


@command.command()
@shared_options
@click.option("--family", type=click.Choice(FAMILIES), help="Topic or protocol that the bytes belong to.")
@click.option("--key", "key_hex", metavar="HEX", help="Key of the record; DATA is its value.")
@click.option("--name", metavar="CLASS", help="Class within the family, if the bytes do not say it.")
def internal(**given: Any) -> int:
    """A record of one of Kafka's own topics, or a blob that group members exchange."""
    decode, encode = raw.decode_internal_record, raw.encode_internal_record
    return _run(given, decode, encode, _asked_internal, internal_tree)


def _asked_message(given: Object) -> Object:
    api = given["api"]
    asked: Object = {"kind": given["kind"], "version": given["version"], "name": given["name"]}
    if given["kind"] == "data":
        if given["name"] is None or given["version"] is None:
            raise Wrong("--kind data needs --name CLASS and --api-version N (kdissect schema list --all)")
    elif api is not None:
        if given["version"] is None:
            raise Wrong("--api needs --api-version N")
        asked["api_key"] = _api_key(api)
    elif given["kind"] == "response" or given["encode"]:
        raise Wrong("--api NAME and --api-version N are needed: the bytes do not say what they are")
    return asked


def _api_key(text: str) -> int:
    """The key of an API given by name or key.

    :raises Wrong: there is no such name; the text names the nearest.
    """
    try:
        return int(text) if text.lstrip("-").isdecimal() else apis.api_key(text)
    except LookupError:
        hint = nearest(text, map(apis.api_name, apis.api_keys()))
        raise Wrong(f"--api {text}: there is no such API{hint or ' (kdissect schema list)'}") from None


def _asked_internal(given: Object) -> Object:
    if given["family"] is None:
        raise Wrong(f"--family is needed: {', '.join(FAMILIES)}")
    return {"family": given["family"], "key_hex": given["key_hex"], "name": given["name"]}


def _run(
    given: Object,
    decode: Answer,
    encode: Answer,
    asked_of: Callable[[Object], Object],
    tree: Callable[[Object, bytes, Options, bool], Iterator[str]],
) -> int:
    config = load_config()
    options = Options(
        show_secrets=given["show_secrets"],
        embedded=given.get("embedded", False),
        records=given.get("records", False),
        limits=config.limits,
        shown_fields=config.shown_fields,
    )
    answer = encode if given["encode"] else decode
    if given["ndjson"]:
        if given["data"] not in (None, "-"):
            raise Wrong("--ndjson reads its lines from stdin, not from an argument")
        with open_output(given["output"], inputs_of(given)) as file:
            return _answer_lines(answer, options, file)
    asked = asked_of(given)
    if given["encode"]:
        _encode_one(given, asked, encode, options)
    else:
        _decode_one(given, asked, decode, options, tree)
    return DONE


def _answer_lines(answer: Answer, options: Options, file: BinaryIO) -> int:
    """Answer every line, and return the exit code."""
    code = DONE
    lines = cast(BinaryIO, sys.stdin.buffer)
    for number in count(1):
        line = lines.readline(LONGEST_LINE)
        if not line:
            return code
        if not line.strip():
            continue
        out: Object = {"id": None}
        try:
            asked = json_from(line)
            if not isinstance(asked, dict):
                raise ValueError("a JSON object is needed")
            out["id"] = asked.get("id")
            out |= _answered(answer, asked, options)
        except ValueError as error:
            out["line"], out["error"] = number, str(error)
            code = UNREADABLE
        file.write(json_line(out))
    return code


def _answered(answer: Answer, asked: Object, options: Options) -> Object:
    """Answer a line.

    :raises ValueError: the line makes no sense; the text says why.
    """
    try:
        return answer(asked, options)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except (TypeError, KeyError):
        raise ValueError("a field has a value of the wrong type") from None


def _decode_one(
    given: Object,
    asked: Object,
    decode: Answer,
    options: Options,
    tree: Callable[[Object, bytes, Options, bool], Iterator[str]],
) -> None:
    data = bytes_from(given["data"], given["input_form"])
    with open_output(given["output"], inputs_of(given)) as file:
        try:
            if given["form"] == "ndjson":
                named = "value_hex" if "family" in asked else "hex"
                if raw.is_whole_request(asked):
                    file.write(json_line(raw.decode_whole_request(data, options)))
                else:
                    file.write(json_line(decode(asked | {named: data.hex()}, options)))
            else:
                output = TextOutput(file, given["output"])
                for line in tree(asked, data, options, given["dump"]):
                    output.line(line)
        except ValueError as error:
            raise Wrong(str(error)) from None


def _encode_one(given: Object, asked: Object, encode: Answer, options: Options) -> None:
    """Encode JSON, and print the hex: one line each for key and value."""
    try:
        value = json_from(content_of(given["data"]))
    except ValueError as error:
        raise Unreadable(str(error)) from None
    try:
        if asked.get("kind"):
            question = asked | {"body": value}
        elif isinstance(value, dict):
            question = value | {name: item for name, item in asked.items() if item is not None}
        else:
            raise ValueError("a JSON object is needed")
        found = _answered(encode, question, options)
    except ValueError as error:
        raise Wrong(str(error)) from None
    with open_output(given["output"], inputs_of(given)) as file:
        for digits in found.values():
            file.write((digits or "").encode("ascii") + b"\n")
