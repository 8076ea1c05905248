"""Searching the list: names and values of trees, and from the end to the top again."""

from __future__ import annotations

import asyncio

from textual.pilot import Pilot
from textual.widgets import Input

from kdissect import read
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.widgets.bytes_pane import BytesPane
from tests.cli.run import CAPTURES
from tests.tui.pages.test_exchanges import ERRORS, with_page
from tests.tui.snapshots import app_of, press, running, shown_after


async def search(pilot: Pilot[None], text: str) -> str:
    """Search for a text; gives what then stands on the screen."""
    await press(pilot, "ctrl+f")
    pilot.app.screen.query_one(Input).value = text
    return await shown_after(pilot, "enter")


def test_searching_bytes_goes_from_match_to_match_and_shows_where() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        # The software's name stands in no text of the list.
        here = [each.number for each in read(ERRORS) if each.api == "ApiVersions"]
        text = await search(pilot, "apache-kafka-JAVA")
        assert page.chosen_number == here[0]
        assert 'clientSoftwareName: "apache-kafka-java"' in text
        assert page.query_one(BytesPane).range == (17, 35)
        for number in here[1:4]:
            await press(pilot, "n")
            assert page.chosen_number == number
        await press(pilot, "N")
        assert page.chosen_number == here[2]
        await press(pilot, "G", "n")
        assert page.chosen_number == here[0]
        await press(pilot, "N")
        assert page.chosen_number == here[-1]
        await search(pilot, "61 70 61 63 68 65")
        assert page.chosen_number == here[-1]
        assert "not a regular expression" in await search(pilot, "/(/")

    with_page(step)


def test_searching_without_anything_to_search_for_asks() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        await press(pilot, "n")
        assert app.screen is not page
        await press(pilot, "escape", "j")
        assert page.chosen_number == 2

    with_page(step)


def test_a_name_of_the_tree_is_found_and_its_line_is_shown() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        text = await search(pilot, "producerEpoch")
        here = [each.number for each in read(ERRORS) if each.api == "InitProducerId"]
        assert page.chosen_number == here[0]
        assert " producerEpoch: 2 bytes at" in text

    with_page(step)


def test_a_number_of_the_tree_is_found_with_what_it_stands_for() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        text = await search(pilot, "offset_metadata_too_large")  # in no bytes: the list has it
        wanted = next(e.number for e in read(ERRORS) if e.error == "OFFSET_METADATA_TOO_LARGE")
        assert page.chosen_number == wanted
        assert "errorCode: 12 (OFFSET_METADATA_TOO_LARGE)" in text
        text = await search(pilot, "timeoutMs: 30000")
        assert " timeoutMs: 4 bytes at" in text
        assert page.chosen_number != wanted

    with_page(step, height=60)


def test_a_topic_id_and_a_field_of_a_batch_are_found() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        text = await search(pilot, "lastOffsetDelta")
        assert "lastOffsetDelta: " in text
        first = next(e.number for e in read(CAPTURES / "basic-kafka43.pcapng") if list(e.record_sets()))
        assert page.chosen_number == first

    with_page(step, CAPTURES / "basic-kafka43.pcapng", height=60)


def test_what_is_hidden_is_not_found_in_the_tree_either() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        assert "is not found in these exchanges" in await search(pilot, "/authBytes: .n,,/")
        assert "authBytes: <redacted>" in await search(pilot, "authBytes")

    with_page(step, CAPTURES / "sasl-scram.pcapng", height=60)


def test_the_search_goes_on_from_the_other_end() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        here = [each.number for each in read(ERRORS) if each.api == "ApiVersions"]
        await search(pilot, "apache-kafka-java")
        await press(pilot, "G")
        assert "search went on from the top" in await shown_after(pilot, "n")
        assert page.chosen_number == here[0]
        await press(pilot, "N")
        assert page.chosen_number == here[-1]
        await search(pilot, "BROKER_ID_NOT_REGISTERED")  # in one exchange only, the last
        assert page.chosen_number == len(app.index)
        assert "search went on" not in await shown_after(pilot)
        assert "search went on from the top" in await shown_after(pilot, "n")
        assert page.chosen_number == len(app.index)
        assert "search went on from the end" in await shown_after(pilot, "N")
        assert "search went on" not in await shown_after(pilot, "g")
        assert "search went on" in await shown_after(pilot, "n", "n")
        app.shown.write("error")
        assert "search went on" not in await shown_after(pilot)
        assert page.chosen_number == len(app.index)
        assert "is not found in these exchanges" in await search(pilot, "no such word")

    with_page(step)


def test_the_status_says_which_match_it_is_of_how_many() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        many = sum(each.api == "ApiVersions" for each in read(ERRORS))
        await search(pilot, "apache-kafka-java")
        assert f"  match 1 of {many}  " in await shown_after(pilot)
        await press(pilot, "n")
        assert f"  match 2 of {many}  " in await shown_after(pilot)
        assert "  match " not in await shown_after(pilot, "j"), "no match is under the cursor"
        await press(pilot, "G", "N")
        assert f"  match {many} of {many}  " in await shown_after(pilot)

    with_page(step, width=160)


def test_a_search_from_the_middle_counts_what_stands_before_it_too() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        here = [each.number for each in read(ERRORS) if each.api == "ApiVersions"]
        await press(pilot, *["j"] * (here[1] - 1))
        await search(pilot, "apache-kafka-java")
        assert page.chosen_number == here[1]
        assert f"  match 2 of {len(here)}  " in await shown_after(pilot)

    with_page(step, width=160)


def test_a_text_that_nothing_can_be_searched_for_stays_in_the_dialog() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng")) as pilot:
            await press(pilot, "7", "ctrl+f")
            line = pilot.app.screen.query_one(Input)
            line.value = "/[unclosed/"
            assert "not a regular expression" in await shown_after(pilot, "enter")
            assert pilot.app.screen.query_one(Input).value == "/[unclosed/"
            line.value = "x"
            assert "Search in keys" not in await shown_after(pilot, "enter")

    asyncio.run(run())


def test_n_without_a_search_asks_what_to_search_for() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng")) as pilot:
            assert "Search in keys" in await shown_after(pilot, "7", "n")

    asyncio.run(run())
