"""``kdissect client send --request-log|--capture``: requests of other clients, sent again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kdissect.cli.commands.client.asking import Asking
from kdissect.cli.config import load_config
from kdissect.cli.contents import file_content
from kdissect.cli.errors import Complaints, OtherSideFailed, Unreadable, Wrong, complain
from kdissect.cli.exit_codes import DONE, UNREADABLE
from kdissect.cli.filters import chooser_of
from kdissect.cli.inputs import open_file
from kdissect.client.cluster import Cluster
from kdissect.client.errors import OtherSideError
from kdissect.client.replay import DamagedLineError, ReplayedRequest, from_exchange, from_log
from kdissect.exchange import Exchange
from kdissect.message import SASL_TOKEN
from kdissect.model import CaptureError, Fault
from kdissect.present.form import plural
from kdissect.present.options import Options
from kdissect.protocol.traits import traits_of_api
from kdissect.source import Input, Pass


def replay(given: dict[str, Any]) -> int:
    """Send earlier requests again, one after the other, and return the exit code.

    :raises Wrong: there is nothing to send, or a request may change data and the user did not confirm it.
    :raises OtherSideFailed: a request got no answer.
    """
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
        raise Wrong(f"{where}there is no request to send again")
    failed = 0

    async def flow(cluster: Cluster) -> None:
        nonlocal failed
        for each in found:
            connection = (await cluster.broker(negotiate=False)).connection
            try:
                data = connection.session.repeat_request(each.message)
                asking.show(await connection.answer(await connection.send(data)))
            except OtherSideError as error:
                failed += 1
                complain(f"{each.source}: {error}")
                await connection.close()

    code = asking.run(flow)
    if failed:
        raise OtherSideFailed(f"{plural(failed, 'request')} of {len(found)} got no answer")
    return code or (UNREADABLE if damage else DONE)


def _requests(given: dict[str, Any], options: Options, damage: Complaints) -> list[ReplayedRequest]:
    """The requests of the log or the capture.

    :param damage: receives the faults of the files.
    :raises Unreadable: it cannot be read.
    """
    if given["log"] is None:
        return list(_captured(given, options, damage))
    found = []
    unfit = Complaints()
    name = "standard input" if given["log"] == "-" else given["log"]
    lines = file_content(given["log"]).decode("utf-8", "replace").split("\n")
    for each in from_log(iter(lines)):
        if isinstance(each, ReplayedRequest):
            found.append(each)
        else:
            (damage if isinstance(each, DamagedLineError) else unfit).report(f"{name}: {each}")
    for told in (unfit, damage):
        told.close()
    return found


def _captured(given: dict[str, Any], options: Options, damage: Complaints) -> Iterator[ReplayedRequest]:
    config = load_config()
    chooser = chooser_of(given["filter"], False, "exchanges", options, config.slow_ms)
    exchanges = []
    name = given["captures"][0] if len(given["captures"]) == 1 else None
    source = Input(tuple(given["captures"]), config.limits, config.ports, config.topics, open_file=open_file)
    reading = Pass(source.with_points())
    try:
        reading.open()
    except CaptureError as error:
        raise Unreadable(str(error)) from None
    for events in reading.events():
        for event in events:
            if isinstance(event, Fault) and event.layer == "file":
                damage.report_fault(name, event)
            elif isinstance(event, Exchange) and (chooser is None or chooser.event(event)):
                exchanges.append(event)
    damage.close()
    left_out = 0
    for exchange in sorted(exchanges, key=lambda each: each.number):
        again = from_exchange(exchange)
        if again is not None:
            yield again
        elif exchange.api != SASL_TOKEN and not traits_of_api(exchange.api).logs_in:
            left_out += 1
    if left_out:
        complain(f"left out: {plural(left_out, 'exchange')} without a whole request")
