"""The screen of connections: handshakes of TLS below the list, and when connections were busy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from kdissect.capture.files import read_packets
from kdissect.capture.keylogs import KeyLogs
from kdissect.capture.writer import PcapngWriter
from kdissect.feed.decoder import Decoded
from kdissect.model import TLS_KEY_LOG, Packet, Secrets
from kdissect.tls.keylog import TlsSecrets
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.connections import SPARKS, Activity
from tests.amount import some
from tests.cli.golden import check_golden
from tests.cli.run import CAPTURES
from tests.feed.feeds import index_with, source_of
from tests.lab import Case
from tests.tls.endpoints import Ends, Flight
from tests.tls.talks import TLS12, lines
from tests.tls.tshark import packets_of
from tests.tui.pages.test_selected_exchange import Step, answer
from tests.tui.snapshots import EXCHANGES, app_of, press, running, shown_after
from tests.tui.test_screens import SIZES, USUAL


def test_activity_is_told_by_connection_over_the_time_of_the_whole_capture() -> None:
    rows = [{"connection": 2, "time_ns": n} for n in range(SPARKS)]
    rows += [{"connection": 5, "time_ns": 0}, {"connection": 5, "time_ns": 0}]
    index = index_with(rows)
    activity = Activity(index, index.order())
    assert activity.text(2) == "█" * SPARKS
    assert activity.text(5) == "█" + "·" * (SPARKS - 1)
    assert activity.text(3) == activity.text(99) == ""
    only = Activity(index, index.order()[-1:])
    assert only.text(2) == ""
    assert only.text(5) == "█" + "·" * (SPARKS - 1)


def test_times_that_are_absurdly_far_apart_do_no_harm() -> None:
    index = index_with(
        [{"connection": 0, "time_ns": -(1 << 63)}, {"connection": 0, "time_ns": (1 << 63) - 1}]
    )
    assert Activity(index, index.order()).text(0) == "█" + "·" * (SPARKS - 2) + "█"
    assert Activity(index_with([]), index_with([]).order()).text(0) == ""


TLS13 = Case("tls13")


def secrets() -> TlsSecrets:
    found = TlsSecrets()
    found.add((TLS13.folder / "keys.log").read_bytes())
    return found


def app_with(path: Path, known: TlsSecrets | None) -> Kdissect:
    return Kdissect(Decoded(source_of(path, secrets=known)), settings=EXCHANGES)


def screens(app: Kdissect, *keys: str, size: tuple[int, int] = (160, 40)) -> str:
    async def run() -> str:
        async with running(app, *size) as pilot:
            return await shown_after(pilot, *keys)

    return asyncio.run(run())


def with_app(app: Kdissect, step: Step) -> None:
    async def run() -> None:
        async with running(app, 200, 40) as pilot:
            await step(pilot)

    asyncio.run(run())


def written(path: Path, items: Iterable[Packet | Secrets]) -> Path:
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        for item in items:
            writer.write(item)
    return path


def talked(path: Path, flights: list[Flight]) -> Path:
    return written(path, packets_of([flights]))


@pytest.mark.parametrize("size", some(SIZES, 1, USUAL), ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["dark", "decrypted"])
def test_screen(name: str, size: tuple[int, int], update_golden: bool) -> None:
    app = app_with(TLS13.capture, None if name == "dark" else secrets())
    shown = screens(app, "2", "j", size=size)
    check_golden(f"tui/tls-{name}-{size[0]}x{size[1]}.txt", shown, update_golden)


def test_a_certificate_that_is_nearly_over_and_one_that_is_not(tmp_path: Path) -> None:
    for days, is_warned in ((5, True), (90, False)):
        made = Ends(TLS12, days=days, mutual=True).talk(lines())
        shown = screens(app_with(talked(tmp_path / "x.pcapng", made.flights), None), "2")
        assert ("! EXPIRES IN 4 DAYS; CN=broker-rsa; names kafka.test" in shown) == is_warned
        assert "server name" in shown
        assert "close_notify" not in shown  # it is encrypted


def test_connections_in_the_clear_and_clients_have_nothing_below() -> None:
    assert "certificate" not in screens(app_of(CAPTURES / "errors.pcapng"), "2")
    app = app_with(TLS13.capture, secrets())
    assert "suite" in screens(app, "2")
    assert "suite" not in screens(app_with(TLS13.capture, secrets()), "2", "g")


def saved(path: Path) -> tuple[int, int]:
    """How many packets a file has, and how many blocks of secrets."""
    items = list(read_packets([path]))
    return sum(isinstance(each, Packet) for each in items), sum(isinstance(each, Secrets) for each in items)


@pytest.mark.parametrize("is_embedded", [True, False])
def test_secrets_are_saved_with_packets_when_that_is_wanted(is_embedded: bool, tmp_path: Path) -> None:
    capture, without, with_them = (tmp_path / f"{name}.pcapng" for name in ("in", "without", "with"))
    packets = [item for item in TLS13.packets() if isinstance(item, Packet)]
    block = Secrets(TLS_KEY_LOG, (TLS13.folder / "keys.log").read_bytes())
    written(capture, [*packets, block] if is_embedded else packets)

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "w", "enter")
        assert "leave them out" in await answer(pilot, str(without))
        assert "335 packets of 55 exchanges, without the TLS secrets" in await shown_after(pilot, "enter")
        await press(pilot, "w", "enter")
        await answer(pilot, str(with_them))
        assert "335 packets of 55 exchanges, with the TLS secrets" in await shown_after(
            pilot, "down", "enter"
        )
        await press(pilot, "w", "enter")
        await answer(pilot, str(tmp_path / "never.pcapng"))
        assert "nothing was saved" in await shown_after(pilot, "escape")

    with_app(app_with(capture, None if is_embedded else secrets()), step)
    assert (saved(without), saved(with_them)) == ((335, 0), (335, 1))
    assert not (tmp_path / "never.pcapng").exists()
    shown = screens(app_with(with_them, None))
    assert "55 exchanges" in shown


def test_secrets_of_a_key_log_that_grows_are_saved_too(tmp_path: Path) -> None:
    out, logs = tmp_path / "out.pcapng", KeyLogs((str(TLS13.folder / "keys.log"),))

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "w", "enter")
        await answer(pilot, str(out))
        await press(pilot, "down", "enter")

    with_app(Kdissect(Decoded(source_of(TLS13.capture, key_logs=logs)), settings=EXCHANGES), step)
    assert saved(out) == (335, 1)
    assert "55 exchanges" in screens(app_with(out, None))


def test_rows_and_packets_in_the_clear_are_saved_without_a_question(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "w", "enter")
        assert "55 exchanges written to" in await answer(pilot, str(tmp_path / "x.csv"))

    with_app(app_with(TLS13.capture, secrets()), step)


def test_where_a_message_stands_counts_inside_tls() -> None:
    shown = screens(app_with(TLS13.capture, secrets()), "enter", "comma")
    assert "request: bytes 0 to 55 of the stream to broker, inside TLS" in shown
    assert "relative sequence" not in shown


def test_a_list_that_is_empty_because_of_tls_says_so(tmp_path: Path) -> None:
    said = "nothing is decrypted of 11 TLS connections: no secret; kdissect doctor tls says how to get one"
    assert said in screens(app_with(TLS13.capture, None))
    late = written(tmp_path / "late.pcapng", packets_of([Ends(TLS12).talk(lines()).flights])[12:])
    assert "nothing is decrypted of 1 TLS connection: handshake not captured" in screens(app_with(late, None))
    assert "nothing is decrypted" not in screens(app_with(TLS13.capture, secrets()))


def test_a_small_terminal_shows_both_ends() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), 80, 24) as pilot:
            heads = (await shown_after(pilot, "2")).splitlines()[2].split()
            assert heads[:3] == ["Conn", "Client", "Broker"]
            assert {"Requests", "Errors", "Fatal"} <= set(heads)

    asyncio.run(run())
