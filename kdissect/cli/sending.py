"""``kdissect client send``: any request of the schema table, raw bytes, or what somebody else sent."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import click

from kdissect.cli import DONE, UNREADABLE
from kdissect.cli.asking import Asking, output_options
from kdissect.cli.completing import a_filter, a_version, an_api
from kdissect.cli.config import load_config
from kdissect.cli.connecting import connection_options
from kdissect.cli.errors import Complaints, OtherSideFailed, Unreadable, Wrong, complain
from kdissect.cli.filtering import chooser_of
from kdissect.cli.given import bytes_from, content_of, file_content, json_from
from kdissect.cli.inputs import packets_of
from kdissect.client.cluster import Cluster
from kdissect.client.errors import OtherSideError
from kdissect.client.filling import values_of
from kdissect.client.ready import readable
from kdissect.client.replay import LOGINS, Again, DamagedLineError, from_exchange, from_log
from kdissect.client.session import sized
from kdissect.dissect import dissect
from kdissect.exchange import Exchange
from kdissect.message import SASL_TOKEN, Request, bare_frame, parse_request
from kdissect.model import DecodeError, Fault
from kdissect.present.form import plural
from kdissect.present.nearest import nearest
from kdissect.present.options import Options
from kdissect.protocol import apis
from kdissect.protocol.definition import NEWEST
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import Struct, message_struct


@click.command()
@connection_options
@click.option("--api", metavar="NAME|KEY", shell_complete=an_api, help="What to ask.")
@click.option(
    "--api-version",
    "--version",
    "version",
    type=click.IntRange(0, NEWEST),
    metavar="N",
    shell_complete=a_version,
    help="Else the newest that both sides know.",
)
@click.option(
    "--json",
    "body",
    metavar="JSON|FILE|-",
    help="The body in Kafka's JSON; what is left out has its default.",
)
@click.option(
    "--hex",
    "raw",
    metavar="HEX|FILE|-",
    help="The bytes instead (base64 too): with --api those of the body, else a whole request, header first.",
)
@click.option(
    "--as-is", is_flag=True, help="The bytes of --hex have their size, and whatever else, themselves."
)
@click.option("--request-log", "log", metavar="FILE|-", help="The requests of a broker's request log again.")
@click.option("--capture", "captures", multiple=True, metavar="FILE", help="The requests of a capture again.")
@click.option(
    "-Y", "filter", metavar="FILTER", shell_complete=a_filter, help="Those of --capture that it shows."
)
@click.option("--yes", is_flag=True, help="Also replay requests that may change data.")
@click.option("--reading-only", is_flag=True, help="Leave out of a replay what may change data.")
@output_options
def send(**given: Any) -> int:
    """Send one request and show its answer; without --json and --hex every field has its default.

    \b
    kdissect client send localhost --api Metadata --version 1 --json '{"topics": null}'
    kdissect client send localhost --capture trouble.pcapng -Y 'api == Fetch and error' -T tree -x
    """
    ways = [name for name in ("log", "captures", "api", "raw") if given[name]]
    if "log" in ways or "captures" in ways:
        if len(ways) > 1 or given["body"] is not None:
            raise Wrong("a replay takes its requests from one place: --request-log or --capture, alone")
        if given["version"] is not None or given["as_is"]:
            raise Wrong("a replay sends requests as they were: --version goes with --api, --as-is with --hex")
        return _replay(given)
    if given["filter"] is not None:
        raise Wrong("-Y chooses from --capture")
    if given["reading_only"]:
        raise Wrong("--reading-only leaves requests out of a replay: --request-log or --capture")
    if given["as_is"] and (given["raw"] is None or given["api"]):
        raise Wrong("--as-is goes with --hex alone: --api puts a header before the bytes")
    if not ways:
        raise Wrong("what is to be sent? --api NAME, --hex BYTES, --request-log FILE or --capture FILE")
    if given["raw"] is not None and given["body"] is not None:
        raise Wrong("--json and --hex both give the body: one of them")
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
        _see_that_it_can_be_said(key, forced, body)

    async def flow(cluster: Cluster) -> None:
        ready = await cluster.broker(negotiate=forced is None)
        version = cluster.pick(ready, key, forced=forced)
        data = raw if raw is not None else _body_bytes(_struct(key, version), body)
        try:
            exchange = await ready.connection.ask(key, version, data)
        except OtherSideError as error:
            raise await cluster.explained(error, key, version) from None
        asking.show(exchange)
        readable(exchange, ready.address)

    return asking.run(flow)


def _send_raw(asking: Asking, given: dict[str, Any]) -> int:
    """Bytes that have a header themselves, or are no request at all."""
    if given["version"] is not None:
        raise Wrong("--version goes with --api: bytes of a whole request have their version themselves")
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
    """What the bytes of ``--hex`` are.

    :raises Unreadable: no request.
    """
    what = f"--hex: these {plural(len(raw), 'byte')} are no request"
    if int.from_bytes(raw[:4], "big") == len(raw) - 4:
        raise Unreadable(f"{what}: they begin with their own size; --as-is sends them as they are")
    try:
        request = parse_request(bare_frame(raw))
    except DecodeError as error:
        raise Unreadable(f"{what}: {error.reason}; --as-is sends them as they are") from None
    if request.api_key not in apis.api_keys():
        raise Unreadable(
            f"{what} of an API that is known (key {request.api_key}); --as-is sends them as they are, --api "
            f"{request.api_key} puts a header before them"
        )
    return request


def _see_that_it_can_be_said(key: int, forced: int | None, body: Any) -> None:
    """Before anybody is asked: whether a request's body fits the forced version, or any.

    :raises Wrong: it does not; the text is of the newest version that was tried.
    """
    if key not in apis.api_keys() and forced is None:
        raise Wrong(f"--api {key}: there is no such API that kdissect knows; --version N and --hex send it")
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
    """:raises Unreadable: it is no JSON, and no file that has some."""
    is_text = given.lstrip()[:1] in ("{", "[")
    if not is_text and given != "-" and not os.path.exists(given):
        raise Unreadable(f"--json {given}: there is no such file, and it is no JSON object either")
    try:
        return json_from(content_of(given))
    except ValueError as error:
        raise Unreadable(f"--json{'' if is_text else ' ' + given}: {error}") from None


def _body_bytes(struct: Struct, body: Any) -> bytes:
    try:
        return encode(struct, values_of(struct, body))
    except ValueError as error:
        raise Wrong(f"--json: {error}") from None


# -- replaying --------------------------------------------------------------------------------------


def _replay(given: dict[str, Any]) -> int:
    """Send again what was sent before, one after the other."""
    asking = Asking(given, "text")
    damage = Complaints()
    found = _requests(given, asking.options, damage)
    if given["reading_only"]:
        found = [each for each in found if not each.may_change]
    changing = Counter(each.name for each in found if each.may_change)
    if changing and not given["yes"]:
        names = ", ".join(f"{name} ({count})" for name, count in changing.most_common(5))
        raise Wrong(
            f"{changing.total()} of {plural(len(found), 'request')} may change data: {names}: "
            "--yes sends them, --reading-only leaves them out"
        )
    if not found:
        where = "" if given["log"] is None else f"{given['log']}: "
        raise Wrong(f"{where}there is no request to be sent again")
    failed = 0

    async def flow(cluster: Cluster) -> None:
        nonlocal failed
        for each in found:
            connection = (await cluster.broker(negotiate=False)).connection
            try:
                data = connection.session.again(each.message)
                asking.show(await connection.answer(await connection.send(data)))
            except OtherSideError as error:
                failed += 1
                complain(f"{each.source}: {error}")
                await connection.close()

    code = asking.run(flow)
    if failed:
        raise OtherSideFailed(f"{plural(failed, 'request')} of {len(found)} got no answer")
    return code or (UNREADABLE if damage else DONE)


def _requests(given: dict[str, Any], options: Options, damage: Complaints) -> list[Again]:
    """The requests of the log or the capture.

    :param damage: is told what is wrong with the files.
    :raises Unreadable: it cannot be read.
    """
    if given["log"] is None:
        return list(_captured(given, options, damage))
    found = []
    unfit = Complaints()
    name = "standard input" if given["log"] == "-" else given["log"]
    lines = file_content(given["log"]).decode("utf-8", "replace").split("\n")
    for each in from_log(iter(lines)):
        if isinstance(each, Again):
            found.append(each)
        else:
            (damage if isinstance(each, DamagedLineError) else unfit).say(f"{name}: {each}")
    for told in (unfit, damage):
        told.close()
    return found


def _captured(given: dict[str, Any], options: Options, damage: Complaints) -> Iterator[Again]:
    config = load_config()
    chooser = chooser_of(given["filter"], False, "exchanges", options, config.slow_ms)
    exchanges = []
    name = given["captures"][0] if len(given["captures"]) == 1 else None
    with closing(packets_of(given["captures"], config.limits)) as packets:
        for event in dissect(packets, config.limits, config.ports):
            if isinstance(event, Fault) and event.layer == "file":
                damage.tell(name, event)
            elif isinstance(event, Exchange) and (chooser is None or chooser.event(event)):
                exchanges.append(event)
    damage.close()
    left_out = 0
    for exchange in sorted(exchanges, key=lambda each: each.number):
        again = from_exchange(exchange)
        if again is not None:
            yield again
        elif exchange.api not in (*LOGINS, SASL_TOKEN):
            left_out += 1
    if left_out:
        complain(f"left out: {plural(left_out, 'exchange')} without a whole request")
