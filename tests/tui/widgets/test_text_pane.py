"""Text in a pane: where lines are broken."""

from __future__ import annotations

import asyncio
from unittest import mock

from textual.app import App, ComposeResult
from textual.screen import Screen

from kdissect.present.whole_record import TextLine
from kdissect.tui.widgets.text_pane import TextPane

WORDS = "registry " * 9


class OnePane(App[None]):
    def compose(self) -> ComposeResult:
        yield TextPane(id="text")


def lines_of(line: TextLine, width: int) -> list[str]:
    """The line as it stands in a pane on a screen of this width."""

    async def run() -> list[str]:
        app = OnePane()
        async with app.run_test(size=(width, 10)) as pilot:
            pane = app.query_one(TextPane)
            pane.show([line])
            await pilot.pause()
            made = [pane.render_line(at).text.rstrip() for at in range(10)]
            return [each for each in made if each]

    return asyncio.run(run())


def test_words_stay_whole_in_what_is_said_and_bytes_as_they_are_in_a_value() -> None:
    for kind in ("heading", "fact"):
        said = lines_of(TextLine(WORDS, kind), 40)
        assert len(said) > 1
        assert {word for line in said for word in line.split()} == {"registry"}
    value = lines_of(TextLine(WORDS), 40)
    assert len(value[0]) == max(map(len, value)) > len(WORDS) // 3
    assert "".join(f"{line:<{len(value[0])}}" for line in value).split() == WORDS.split()


def test_a_word_that_is_longer_than_the_pane_is_broken() -> None:
    said = lines_of(TextLine("x" * 100, "heading"), 40)
    assert "".join(said) == "x" * 100


def test_another_text_needs_no_layout_of_the_screen() -> None:
    async def run() -> None:
        app = OnePane()
        async with app.run_test(size=(40, 10)) as pilot:
            pane = app.query_one(TextPane)
            await pilot.pause()
            with mock.patch.object(Screen, "_refresh_layout") as laid_out:
                for lines in (30, 2, 30):
                    pane.show([TextLine("x")] * lines)
                    await pilot.pause(0.05)
                    assert pane.max_scroll_y == max(0, lines - 10)
            assert not laid_out.called

    asyncio.run(run())


def test_a_text_that_depends_on_the_width_stays_where_it_was_scrolled_to() -> None:
    async def run() -> None:
        app = OnePane()
        async with app.run_test(size=(40, 10)) as pilot:
            pane = app.query_one(TextPane)
            widths = []

            def made(width: int) -> list[TextLine]:
                widths.append(width)
                return [TextLine("x")] * 30

            pane.show_folded(made)
            assert len(widths) == 1
            await pilot.pause()
            pane.scroll_to(y=12, animate=False, immediate=True)
            pane.show_folded(made, stay=True)  # as news do
            await pilot.pause()
            assert pane.scroll_offset.y == 12
            pane.show_folded(made)
            await pilot.pause()
            assert pane.scroll_offset.y == 0

    asyncio.run(run())
