"""The one table of actions, and what is made of it: bindings, footer, help, palette, key map."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from textual.command import CommandPalette
from textual.dom import DOMNode
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect import read
from kdissect.analysis.fold import SECOND
from kdissect.settings.actions import ACTIONS, IDS, actions_of
from kdissect.settings.key_names import clash, key_names
from kdissect.settings.places import PAGE_KEYS, PAGES, PLACES
from kdissect.settings.remembered import Remembered
from kdissect.settings.screens import Settings
from kdissect.tui.app import Kdissect
from kdissect.tui.keys import Commands, help_of, is_called
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.facts import FactsPage
from kdissect.tui.pages.statistics import GroupedScreen
from kdissect.tui.widgets.dialogs import HelpPage
from kdissect.tui.widgets.field_tree import FieldTree
from kdissect.tui.widgets.time_line import TimeLine
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

ERRORS = CAPTURES / "errors.pcapng"


def test_every_action_has_keys_words_and_a_known_place() -> None:
    for action in ACTIONS:
        assert set(action.where.split()) <= set(PLACES), action
        assert key_names(action.keys), action
        assert len(key_names(action.keys)) == len(action.keys.split()), action
        assert action.label, action
        assert action.help, action
        assert not action.help.endswith("."), action
    listed = [(place, action.id) for place in PLACES for action in actions_of(place)]
    assert len(listed) == len(set(listed))


def nodes(app: Kdissect) -> Iterator[DOMNode]:
    """The application, its pages and their widgets."""
    yield app
    for page in app.pages.values():
        yield page
        yield from page.query("*")


def test_every_binding_is_of_the_table_and_calls_a_method() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            bound = set()
            for name in app.pages:
                app.action_page(name)
                await settle(pilot)
                for node in [app, app.screen, *app.screen.query("*")]:
                    for binding in node._bindings.key_to_bindings.values():
                        for each in binding:
                            if each.id in IDS:
                                bound.add((each.id, each.action))
                                namespace, method, _ = app._parse_action(each.action, node)
                                assert hasattr(namespace, f"action_{method}"), each
            calls = {(each.id, each.call) for each in ACTIONS if each.where not in ("start", "diff")}
            assert calls - bound == set()

    asyncio.run(run())


def test_the_footer_has_no_more_keys_than_can_be_read() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            for name in app.pages:
                app.action_page(name)
                await settle(pilot)
                shown = {
                    active.binding.action
                    for active in app.screen.active_bindings.values()
                    if active.binding.show
                }
                assert 2 <= len(shown) <= 9, (name, shown)

    asyncio.run(run())


def test_keys_and_brackets_lead_to_every_screen() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            for name, key in PAGE_KEYS.items():
                await press(pilot, key)
                assert app.screen is app.pages[name]
            await press(pilot, "right_square_bracket")
            assert app.screen is app.pages["exchanges"]
            await press(pilot, "left_square_bracket", "left_square_bracket")
            assert app.screen is app.pages[list(PAGES)[-2]]
            for key in "iL":  # these have no number; they stand beside the page that led there
                for bracket, page in (("left", "problems"), ("right", "capture")):
                    await press(pilot, "7", key, f"{bracket}_square_bracket")
                    assert app.screen is app.pages[page], (key, bracket)

    asyncio.run(run())


def test_help_is_that_of_what_has_the_focus() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            text = await shown_after(pilot, "question_mark")
            assert "In the list" in text
            assert "In the tree" not in text
            assert "previous row" in text
            await press(pilot, "escape", "enter")
            text = await shown_after(pilot, "f1")
            assert "In the tree" in text
            assert "In the list" not in text
            await press(pilot, "escape", "2")
            assert "go to the next exchange with an error or fault" not in await shown_after(
                pilot, "question_mark"
            )

    asyncio.run(run())


def test_a_key_map_holds_for_keys_footer_and_help() -> None:
    keys = {
        "next-error": "n ctrl-n",
        "next-match": "N",
        "match-before": "ctrl-b",
        "help": "K",
    }

    assert clash(keys) is None

    async def run() -> None:
        async with running(app_of(ERRORS, settings=Settings(keys=keys))) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            page = app.pages["exchanges"]
            assert isinstance(page, ExchangesPage)
            text = await shown_after(pilot, "e")
            assert page.list_pane.cursor == 0
            assert " n Next error" in text
            await press(pilot, "n")
            assert page.list_pane.cursor == 4
            await press(pilot, "ctrl+n")
            assert page.list_pane.cursor == 10
            rows = [row for _, rows in help_of(app.screen) for row in rows]
            assert ("n ctrl+n", "go to the next exchange with an error or fault") in rows
            assert "next row" in await shown_after(pilot, "K")

    asyncio.run(run())


async def command(pilot: Pilot[None], text: str) -> None:
    """Choose the first command of the palette that a text finds."""
    await pilot.press("colon")
    await pilot.pause()
    palette = pilot.app.screen
    assert isinstance(palette, CommandPalette)
    palette.query_one(Input).value = text
    for _ in range(100):
        await pilot.pause(0.02)
        if palette._hit_count:
            break
    await pilot.pause(0.1)
    await pilot.press("enter")
    if isinstance(pilot.app.screen, CommandPalette):
        await pilot.press("enter")
    await settle(pilot)


async def found(pilot: Pilot[None], text: str) -> list[str]:
    """What the palette lists for a text, the best first."""
    hits = [hit async for hit in Commands(pilot.app.screen).search(text)]
    return [str(hit.prompt) for hit in sorted(hits, key=lambda hit: -hit.score)]


def test_a_word_of_its_own_label_finds_an_action_first() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            assert (await found(pilot, "search"))[0].startswith("Search")

    asyncio.run(run())


def test_on_records_too_people_find_how_to_export_and_to_search() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            await press(pilot, "7")
            assert (await found(pilot, "export"))[0].startswith("Copy")
            assert (await found(pilot, "search"))[0].startswith("Search keys, values and headers")

    asyncio.run(run())


def test_the_palette_goes_to_an_exchange_by_its_number() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            page = app.pages["exchanges"]
            assert isinstance(page, ExchangesPage)
            await command(pilot, "43")
            assert page.chosen_number == 43
            wanted = next(each for each in read(ERRORS) if each.number == 20)
            await command(pilot, f"packet {wanted.response_packet}")
            assert page.chosen_number == 20
            await command(pilot, "2 s")
            assert page.chosen_place() is not None
            times = app.index.column("time_ns") - (app.index.first_ns or 0)
            assert times[page.chosen_place()] == min(times[times >= 2 * SECOND])
            await command(pilot, "43")
            await command(pilot, "4711")
            assert "there is no exchange No. 4,711" in screen_text(app)
            assert page.chosen_number == 43
            await press(pilot, "6")
            await command(pilot, "7")
            assert app.screen is app.pages["exchanges"]
            assert page.chosen_number == 7

    asyncio.run(run())


def test_the_palette_does_what_keys_do_where_the_focus_was() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            page = app.pages["exchanges"]
            assert isinstance(page, ExchangesPage)
            await command(pilot, "go to the next exchange with an error")
            assert page.chosen_number == 5
            await command(pilot, "show connections")
            assert app.screen is app.pages["connections"]
            await press(pilot, "1", "enter")
            tree = page.query_one(FieldTree)
            await command(pilot, "last line")
            assert tree.cursor_line == tree.last_line

    asyncio.run(run())


def test_the_palette_lists_every_action_of_the_screen_and_themes() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            provider = Commands(app.screen)
            hits = [hit async for hit in provider.discover()]
            texts = " ".join(str(hit.prompt).lower() for hit in hits)
            for place in ("page", "exchanges", "list"):
                for action in actions_of(place):
                    assert action.help.lower() in texts, action
            lines = [str(hit.prompt).lower() for hit in hits]
            moves = {at for at, line in enumerate(lines) if "next row" in line or "to the next pane" in line}
            assert len(moves) == 2
            assert min(moves) > lines.index("write a filter")
            (theme,) = (at for at, line in enumerate(lines) if line.startswith("theme: "))
            assert min(moves) > theme > max(at for at, line in enumerate(lines) if line.startswith("show "))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        ("slow", "latency"),
        ("lag", "topics"),
        ("rebalance", "groups"),
        ("export", "save"),
        ("leader", "cluster"),
        ("hanging", "transactions"),
        ("failed", "problems"),
        ("hex", "bytes"),
        ("rebalancing", "groups"),
        ("lagging", "topics"),
        ("p99", "latency"),
        ("timeouts", "problems"),
        ("timeout", "latency"),
        ("denied", "problems"),
        ("disconnects", "connections"),
        ("certificate", "connections"),
        ("election", "cluster"),
        ("under-replicated", "cluster"),
        ("zombie", "transactions"),
        ("kicked", "groups"),
        ("heartbeats", "groups"),
        ("poison", "records"),
        ("duplicates", "records"),
        ("lost", "facts"),
        ("packet", "exchanges"),
        ("subset", "save"),
        ("incident cause", "findings"),
        ("clear", "filter-off"),
        ("time zone", "times"),
        ("docs", "help"),
        ("wireshark", "exchanges"),
        ("sql", "facts"),
        ("sql", "save"),
        ("jump", "go-to"),
        ("goto", "go-to"),
        ("versus", "compare"),
        ("diff", "compare"),
        ("ladder", "exchanges"),
        ("histogram", "latency"),
        ("group-by", "group"),
    ],
)
def test_actions_are_found_by_the_words_people_type(typed: str, action: str) -> None:
    assert is_called(action, typed)
    assert not is_called(action, f"{typed} zzz")


def test_the_palette_finds_them_so() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            await command(pilot, "exactly-once")
            assert app.screen is app.pages["transactions"]
            found = await hits(app, "lagging")
            assert found[0].startswith(("Show Topics", "Show Groups"))

    asyncio.run(run())


async def hits(app: Kdissect, typed: str) -> list[str]:
    """What the palette finds, the best first."""
    found = [hit async for hit in Commands(app.screen).search(typed)]
    return [str(hit.text) for hit in sorted(found, key=lambda hit: -hit.score)]


def test_the_palette_leads_to_tables_filters_and_pages_of_the_help_by_their_names() -> None:
    async def run() -> None:
        odd = 'topic matches "[/a]+"'
        app = app_of(ERRORS, remembered=Remembered(named={"mymeta": "api == Metadata", "odd": odd}))
        async with running(app) as pilot:
            assert (await hits(app, "mymeta"))[0] == "Filter mymeta: api == Metadata"
            assert (await hits(app, "help filter"))[0].startswith("Help filter")
            assert "Help spark" in (await hits(app, "spark"))[0]
            await command(pilot, "exposure")
            facts = app.pages["facts"]
            assert isinstance(facts, FactsPage)
            assert (app.screen, facts.chosen) == (facts, "exposure")
            assert facts.tables.row(facts.tables_pane.cursor)["name"] == "exposure"
            await command(pilot, "table versions")
            assert facts.chosen == "versions"
            await command(pilot, "table srt")
            assert app.screen is app.pages["latency"]  # which shows this table
            await command(pilot, "mymeta")
            assert (app.screen, app.shown.text) == (app.pages["exchanges"], "api == Metadata")
            await command(pilot, "odd")  # brackets are no markup
            assert app.shown.text == odd
            await command(pilot, "help spark")
            assert isinstance(app.screen, HelpPage)

    asyncio.run(run())


def test_an_exact_name_comes_before_words_of_actions_and_a_label_before_both() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            for name in ("slowest", "lag", "traffic"):
                table, *others = await hits(app, name)
                assert table == f"Table {name}: show its rows"
                assert others, name
            assert (await hits(app, "live"))[0].startswith("Help live")
            for label in ("topics", "filter", "errors"):
                assert (await hits(app, label))[0].lower().startswith(("show", "write a filter"))
            slow = await hits(app, "slow")
            assert slow[0] == "Table slowest: show its rows"
            assert slow[1].startswith("Show Latency")

    asyncio.run(run())


def test_a_table_is_shown_by_its_name_however_rows_were_grouped() -> None:
    async def run() -> None:
        app = app_of(CAPTURES / "incidents" / "lag-grows.pcapng.gz")
        async with running(app) as pilot:
            topics, cluster = app.pages["topics"], app.pages["cluster"]
            assert isinstance(topics, GroupedScreen)
            assert isinstance(cluster, GroupedScreen)
            for typed, grouping in (
                ("table positions", "client"),
                ("table lag", "group"),
                ("table topics", "topic"),
                ("positions", "client"),
            ):
                await command(pilot, typed)
                assert (app.screen, topics.grouping) == (topics, grouping)
                assert f"by {grouping} (g:" in screen_text(app)
                assert len(topics.rows), grouping
            await press(pilot, "g", "g")
            await command(pilot, "table topics")
            assert topics.grouping == "partition"  # which has the rows of this table too
            await command(pilot, "cluster_configs")
            assert (app.screen, cluster.grouping) == (cluster, "settings")

    asyncio.run(run())


@pytest.mark.parametrize("page", ["1", "5", "7", "9"])
def test_on_each_screen_words_for_what_is_elsewhere_lead_there(page: str) -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            await press(pilot, page)
            assert any(each.startswith("Go to an exchange") for each in await found(pilot, "jump"))
            assert (await found(pilot, "goto"))[0].startswith("Go to an exchange")
            assert (await found(pilot, "compare"))[0].startswith("Compare with another capture")
            for typed, begins in (("sql", "Show Facts"), ("ladder", ""), ("histogram", "Show Latency")):
                assert (await found(pilot, typed))[0].startswith(begins)

    asyncio.run(run())


def test_actions_of_other_screens_are_found_and_done_there() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            latency, exchanges = app.pages["latency"], app.pages["exchanges"]
            assert isinstance(latency, GroupedScreen)
            assert isinstance(exchanges, ExchangesPage)
            assert "Latency: Group: " in (await hits(app, "group by"))[-1]
            await command(pilot, "groupby")
            assert (app.screen, latency.grouping) == (latency, "broker")
            assert (await hits(app, "group-by"))[0].startswith("Group the figures")
            await command(pilot, "bookmark everything")
            assert app.screen is exchanges
            assert len(app.marks.numbers) == 52
            await press(pilot, "9")
            await command(pilot, "apply as column")
            assert app.screen is exchanges
            assert "Enter goes to the fields" in screen_text(app)
            await command(pilot, "select time")
            assert app.screen is app.pages["findings"]
            assert isinstance(app.focused, TimeLine)
            assert app.focused.begun is not None

    asyncio.run(run())


def test_an_action_of_this_screen_comes_before_those_of_others() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            titles = tuple(f"{each}: " for each in PAGES.values())
            for page, words in (
                ("1", "save copy sort mark filter"),
                ("7", "copy filter"),
                ("9", "save sort"),
            ):
                await press(pilot, page)
                for typed in words.split():
                    texts = await hits(app, typed)
                    assert not texts[0].startswith(titles), (page, typed, texts)

    asyncio.run(run())


def test_letters_that_only_occur_find_nothing_where_a_word_does() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            assert all("expo" in text.lower() for text in await hits(app, "expos"))

    asyncio.run(run())


def test_go_to_asks_where_and_goes_there() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            page = app.pages["exchanges"]
            assert isinstance(page, ExchangesPage)

            async def go(text: str) -> str:
                await command(pilot, "goto")
                app.screen.query_one(Input).value = text
                return await shown_after(pilot, "enter")

            await go("43")
            assert page.chosen_number == 43
            assert "neither a number nor a time" in await go("orders")
            assert "there is no exchange No. 4,711" in await go("#4711")
            assert page.chosen_number == 43

    asyncio.run(run())


def test_compare_copies_the_command_for_this_capture() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            await command(pilot, "compare")
            assert pilot.app.clipboard == f"kdissect diff {ERRORS} AFTER"
            assert "copied: kdissect diff" in screen_text(pilot.app)

    asyncio.run(run())


def test_the_palette_finds_how_to_save_exchanges_from_every_screen() -> None:
    async def run() -> None:
        async with running(app_of(ERRORS)) as pilot:
            assert (await found(pilot, "export"))[0].startswith("Save shown")
            await press(pilot, "6")
            assert (await found(pilot, "pcap"))[0].startswith("Save exchanges to a file: pcapng")
            assert any(each.startswith("Save exchanges") for each in await found(pilot, "save"))
            await command(pilot, "pcapng")
            assert "shown: 52 exchanges" in screen_text(pilot.app)

    asyncio.run(run())
