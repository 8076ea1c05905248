"""``kdissect client send``: any request of the schema table, raw bytes, or requests of other clients."""

from __future__ import annotations

import os
from typing import Any

import click

from kdissect.cli.commands.client.asking import Asking, output_options
from kdissect.cli.commands.client.connecting import connection_options
from kdissect.cli.commands.client.replay import replay
from kdissect.cli.completing import a_filter, a_version, an_api
from kdissect.cli.contents import bytes_from, content_of, json_from
from kdissect.cli.errors import Unreadable, Wrong
from kdissect.client.cluster import Cluster
from kdissect.client.errors import OtherSideError
from kdissect.client.filling import values_of
from kdissect.client.ready import readable
from kdissect.client.session import sized
from kdissect.message import Request, bare_frame, parse_request
from kdissect.model import DecodeError
from kdissect.present.form import plural
from kdissect.present.nearest import nearest
from kdissect.protocol import apis
from kdissect.protocol.definition import NEWEST
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import Struct, message_struct


@click.command("send")
@connection_options
@click.option("--api", metavar="NAME|KEY", shell_complete=an_api, help="API of the request.")
@click.option(
    "--api-version",
    "--version",
    "version",
    type=click.IntRange(0, NEWEST),
    metavar="N",
    shell_complete=a_version,
    help="Version of the request. Default: the newest that both sides know.",
)
@click.option(
    "--json",
    "body",
    metavar="JSON|FILE|-",
    help="Body in Kafka's JSON. Missing fields have their defaults.",
)
@click.option(
    "--hex",
    "raw",
    metavar="HEX|FILE|-",
    help="Bytes in hex or base64: with --api the body, otherwise a whole request, header first.",
)
@click.option("--as-is", is_flag=True, help="Send the bytes of --hex unchanged: they include their size.")
@click.option(
    "--request-log", "log", metavar="FILE|-", help="Send the requests of a broker's request log again."
)
@click.option(
    "--capture", "captures", multiple=True, metavar="FILE", help="Send the requests of a capture again."
)
@click.option(
    "-Y",
    "filter",
    metavar="FILTER",
    shell_complete=a_filter,
    help="Send only those of --capture that this display filter selects.",
)
@click.option("--yes", is_flag=True, help="Send also requests that may change data.")
@click.option("--reading-only", is_flag=True, help="Leave out requests that may change data.")
@output_options
def command(**given: Any) -> int:
    """Send one request and print its answer. Without --json and --hex every field has its default.

    \b
    kdissect client send localhost --api Metadata --version 1 --json '{"topics": null}'
    kdissect client send localhost --capture trouble.pcapng -Y 'api == Fetch and error' -T tree -x
    """
    ways = [name for name in ("log", "captures", "api", "raw") if given[name]]
    if "log" in ways or "captures" in ways:
        if len(ways) > 1 or given["body"] is not None:
            raise Wrong(
                "a replay has one source of requests: give either --request-log or --capture, and nothing "
                "else"
            )
        if given["version"] is not None or given["as_is"]:
            raise Wrong(
                "a replay sends requests unchanged: leave out --version (for --api) and --as-is (for --hex)"
            )
        return replay(given)
    if given["filter"] is not None:
        raise Wrong("-Y needs --capture")
    if given["reading_only"]:
        raise Wrong("--reading-only is for a replay: give --request-log or --capture")
    if given["as_is"] and (given["raw"] is None or given["api"]):
        raise Wrong("--as-is needs --hex without --api, which adds a header")
    if not ways:
        raise Wrong("nothing to send: give --api NAME, --hex BYTES, --request-log FILE or --capture FILE")
    if given["raw"] is not None and given["body"] is not None:
        raise Wrong("--json and --hex both contain the body: give only one of them")
    return _send_one(given)


def _send_one(given: dict[str, Any]) -> int:
    asking = Asking(given, "tree")
    forced = given["version"]
    if given["api"] is None:
        return _send_raw(asking, given)
    key = _api_key(given["api"])
    raw = None if given["raw"] is None else bytes_from(given["raw"])
    body = {} if given["body"] is None else _json(given["body"])
    if raw is None:
        _check_body(key, forced, body)

    async def flow(cluster: Cluster) -> None:
        ready = await cluster.broker(negotiate=forced is None)
        version = cluster.pick(ready, key, forced=forced)
        data = raw if raw is not None else _body_bytes(_struct(key, version), body)
        try:
            exchange = await ready.connection.send_and_receive(key, version, data)
        except OtherSideError as error:
            raise await cluster.explained(error, key, version) from None
        asking.show(exchange)
        readable(exchange, ready.address)

    return asking.run(flow)


def _send_raw(asking: Asking, given: dict[str, Any]) -> int:
    """Send bytes that already have a header, or that are no request at all."""
    if given["version"] is not None:
        raise Wrong("--version needs --api: the bytes of a whole request already contain their version")
    as_is = given["as_is"]
    raw = bytes_from(given["raw"])
    data = raw if as_is else sized(raw)
    request = None if as_is else _request(raw)

    async def flow(cluster: Cluster) -> None:
        connection = (await cluster.broker(negotiate=False)).connection
        try:
            asking.show(await connection.answer(await connection.send(data)))
        except OtherSideError as error:
            if request is None or request.api_key is None or request.api_version is None:
                raise
            raise await cluster.explained(error, request.api_key, request.api_version) from None

    return asking.run(flow)


def _request(raw: bytes) -> Request:
    """The request in the bytes of ``--hex``.

    :raises Unreadable: they are no request.
    """
    what = f"--hex: these {plural(len(raw), 'byte')} are not a request"
    if int.from_bytes(raw[:4], "big") == len(raw) - 4:
        raise Unreadable(f"{what}: they begin with a size; --as-is sends them unchanged")
    try:
        request = parse_request(bare_frame(raw))
    except DecodeError as error:
        raise Unreadable(f"{what}: {error.reason}; --as-is sends them unchanged") from None
    if not apis.is_api(request.api_key):
        raise Unreadable(
            f"{what} of a known API (key {request.api_key}); --as-is sends them unchanged, --api "
            f"{request.api_key} adds a header"
        )
    return request


def _check_body(key: int, forced: int | None, body: Any) -> None:
    """Check, before connecting, that the body of a request fits the forced version, or any version.

    :raises Wrong: it does not fit; the text is for the newest version that was tried.
    """
    if not apis.is_api(key) and forced is None:
        raise Wrong(
            f"--api {key}: kdissect does not know this API; --version N and --hex BYTES send it anyway"
        )
    versions = apis.versions(key) if forced is None else (forced,)
    wrong: Wrong | None = None
    for version in reversed(versions):
        try:
            _body_bytes(_struct(key, version), body)
            return
        except Wrong as error:
            wrong = wrong or error
    if wrong is not None:
        raise wrong


def _api_key(text: str) -> int:
    try:
        return int(text) if text.lstrip("-").isdecimal() else apis.api_key(text)
    except LookupError:
        hint = nearest(text, map(apis.api_name, apis.api_keys()))
        raise Wrong(f"--api {text}: there is no such API{hint or ' (kdissect schema list)'}") from None


def _struct(key: int, version: int) -> Struct:
    try:
        return message_struct(key, version, "request")
    except LookupError as error:
        raise Wrong(f"{error.args[0]}: --hex sends bytes of any version") from None


def _json(given: str) -> Any:
    """The JSON in an argument or a file.

    :raises Wrong: it is neither JSON nor a file with JSON.
    :raises Unreadable: the file cannot be read.
    """
    is_text = given.lstrip()[:1] in ("{", "[")
    if not is_text and given != "-" and not os.path.exists(given):
        raise Wrong(f"--json {given}: this is neither a file nor a JSON object")
    try:
        return json_from(content_of(given))
    except ValueError as error:
        raise Wrong(f"--json{'' if is_text else ' ' + given}: {error}") from None


def _body_bytes(struct: Struct, body: Any) -> bytes:
    try:
        return encode(struct, values_of(struct, body))
    except ValueError as error:
        raise Wrong(f"--json: {error}") from None
