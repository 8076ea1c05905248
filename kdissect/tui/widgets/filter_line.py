"""The line that shows the display filter, and in which users write it.

At every key the line says whether the text is a filter, and how many exchanges it would show. A mistake is
marked in the line and explained below it. What may be written at the cursor is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.highlighter import Highlighter
from rich.text import Text
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from kdissect.feed.filtering import Shown
from kdissect.filter.compiled import Filter
from kdissect.filter.complete import Completion, complete
from kdissect.filter.errors import FilterError
from kdissect.filter.saved import hints_of_saved
from kdissect.filter.syntax import LONGEST
from kdissect.present.form import plural
from kdissect.present.paragraphs import fold_text
from kdissect.present.sanitise import sanitise
from kdissect.settings.places import PLACES
from kdissect.settings.remembered import Remembered
from kdissect.tui.colors import alarm_color
from kdissect.tui.keys import bindings_of
from kdissect.tui.widgets.bars import OneLine
from kdissect.tui.widgets.dialogs import Ask
from kdissect.tui.widgets.mended import LegibleInput, LegibleOptions, LegibleText

COUNT_SECONDS = 0.1
"""How long no key must come before exchanges are counted."""
MOST_OFFERS = 50
LEAST_WRITTEN = 16
"""Cells that the beginning of a filter keeps beside what is said of it."""
SAID_LINES = 3
"""Lines for what is wrong with a filter, at most."""
KEYS_SAID = (
    "Enter applies, Tab accepts a suggestion, ↑ shows earlier filters, Ctrl-s saves, Esc leaves",
    "Enter applies, Tab completes, ↑ earlier filters, Ctrl-s saves, Esc leaves",
    "Enter applies, Tab completes, Esc leaves",
)
"""What keys do in the line; the first for which there is room."""
_WANTED = {"Enter": "apply", "Tab": "take", "↑": "older", "Ctrl-s": "save", "Esc": "leave"}
"""What a click on the words of a key does, as the table of actions has it."""


class _WrongMark(Highlighter):
    """Marks what is wrong in the filter."""

    error: FilterError | None = None

    def highlight(self, text: Text) -> None:
        if self.error is not None:
            start = min(self.error.position, len(text))
            text.stylize("bold red underline", start, max(start + self.error.length, start + 1))


class FilterInput(LegibleInput):
    """Where it is written."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("filter")
    BINDING_GROUP_TITLE = PLACES["filter"]

    class Wanted(Message):
        """A key that is not about the text under the cursor; ``what`` as the table of actions has it."""

        def __init__(self, what: str) -> None:
            self.what = what
            super().__init__()

    def on_mount(self) -> None:
        self.cursor_blink = False  # nothing is drawn while nothing changes

    def validate_value(self, value: str) -> str:
        """What was pasted is shown as it is; in a string the escapes mean the same."""
        return sanitise(value, None)

    def action_want(self, what: str) -> None:
        self.post_message(self.Wanted(what))

    def action_cursor_right(self, select: bool = False) -> None:
        if self.cursor_position == len(self.value) and not select:
            self.post_message(self.Wanted("take"))
        else:
            super().action_cursor_right(select)


class FilterLine(Vertical):
    """The line, as high as it needs to be: nothing while there is no filter."""

    DEFAULT_CSS = """
    FilterLine { height: auto; display: none; }
    FilterLine.-set, FilterLine.-open { display: block; }
    FilterLine #filter-set { background: $surface; }
    FilterLine.-open #filter-set { display: none; }
    FilterLine Horizontal, FilterLine #filter-said, FilterLine OptionList { display: none; }
    FilterLine.-open Horizontal, FilterLine.-open #filter-said { display: block; }
    FilterLine Horizontal { height: 1; background: $boost; }
    FilterLine #filter-slash { width: 2; color: $text-muted; }
    FilterLine FilterInput { width: 1fr; }
    FilterLine #filter-count { width: auto; padding: 0 1; }
    FilterLine #filter-said { height: auto; max-height: 3; background: $panel; color: $text-muted; }
    FilterLine.-open.-offers OptionList { display: block; }
    FilterLine OptionList { height: auto; max-height: 8; border: none; background: $panel; padding: 0 1;
        overlay: screen; constrain: inside; width: 100%; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, shown: Shown, remembered: Remembered) -> None:
        super().__init__()
        self._shown, self._remembered = shown, remembered
        self.apply: Callable[[str], object] = shown.write
        """What is done with a filter that was written."""
        self._wrong = _WrongMark()
        self._filter: Filter | None = None
        """What is written, if it is a filter."""
        self._counted: tuple[int, int] | None = None
        """How many exchanges it would show at least and at most, once that is known."""
        self._offers: Sequence[Completion] = ()
        self._older: int | None = None
        """Which filter of those used is in the line; None for what was written."""
        self._written = ""
        self._back: Widget | None = None
        """What had the focus before."""
        self.lists_exchanges = True
        """Whether what the screen lists is what is counted; if not, the count says what it is of."""
        self._count: Timer | None = None
        self._keys_said = ""
        """What is said of keys, if that is said now, …"""
        self._keys_at = 0
        """… and the cell where it begins."""

    def compose(self) -> ComposeResult:
        yield OneLine(id="filter-set")
        with Horizontal():
            yield LegibleText("/ ", id="filter-slash", markup=False)
            yield FilterInput(
                id="filter-input",
                compact=True,
                highlighter=self._wrong,
                max_length=LONGEST,
                placeholder="api == Fetch and latency > 50ms",
                select_on_focus=False,
            )
            yield LegibleText(id="filter-count", markup=False)
        yield LegibleText(id="filter-said", markup=False)
        offers = LegibleOptions(id="filter-offers", markup=False, compact=True)
        offers.can_focus = False
        yield offers

    @property
    def input(self) -> FilterInput:
        """Where it is written."""
        return self.query_one(FilterInput)

    @property
    def is_open(self) -> bool:
        """Whether a filter is being written."""
        return self.has_class("-open")

    # -- the filter that is set -----------------------------------------------------------------------

    def show(self) -> None:
        """Show the filter that is set, and how many exchanges it shows."""
        shown = self._shown
        self.set_class(bool(shown.text), "-set")
        if not shown.text:
            return
        said, first = Text(), Text()
        if not shown.is_on:
            first.append("  off; Ctrl-t turns it on", "dim")
        else:
            count = len(shown.places)
            text = f"{count:,}" if self.lists_exchanges else plural(count, "exchange")
            first.append(f"  ✓ {text}", "green")
            if shown.progress is not None:
                first.append(f"  {shown.progress:.0%} checked", "reverse")
            hints = [*shown.hints, *hints_of_saved(shown.text, self._remembered.named)]
            for at, hint in enumerate(hints):
                (said if at else first).append(f"  {sanitise(hint, None)}", "yellow")
        line = Text(" / ", "dim", no_wrap=True, overflow="ellipsis")
        written = Text(sanitise(shown.text, None), "bold" if shown.is_on else "dim strike")
        # Whoever wrote the filter knows it. What is to be known of it is never cut for its sake.
        room = self.app.size.width - line.cell_len - first.cell_len
        written.truncate(max(LEAST_WRITTEN, room), overflow="ellipsis")
        line.append_text(written).append_text(first).append_text(said)
        self.query_one("#filter-set", OneLine).show(line)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        if not self.is_open:
            self.open()
            return
        clicked = self.screen.get_widget_at(event.screen_x, event.screen_y)[0].id
        if clicked == "filter-count":
            self._apply()
        elif clicked == "filter-said":
            self._words_clicked(event.screen_x - self.region.x - self._keys_at)

    def _apply(self) -> None:
        self.input.post_message(Input.Submitted(self.input, self.input.value))

    def _words_clicked(self, cell: int) -> None:
        """A click on what is said of a key is as good as the key."""
        start = 0
        for words in self._keys_said.split(", "):
            if start <= cell < start + len(words):
                what = _WANTED[words.partition(" ")[0]]
                if what == "apply":
                    self._apply()
                else:
                    self.input.action_want(what)
            start += len(words) + len(", ")

    # -- writing --------------------------------------------------------------------------------------

    def open(self, text: str | None = None) -> None:
        """Begin to write: with the filter that is set, or with ``text``. A range of time is not in it. What
        is set is selected, so that what is typed replaces it."""
        if not self.is_open:
            self._back = self.screen.focused
        self.add_class("-open")
        self._older = None
        self._shown.prepare()
        self.input.value = self._shown.written if text is None else text
        self.input.cursor_position = len(self.input.value)
        if text is None:
            self.input.select_all()
        self.input.focus()
        self._look()

    def close(self) -> None:
        """Leave the line; the filter stays as it is set."""
        if self._count is not None:
            self._count.stop()
        self.remove_class("-open", "-offers")
        self.show()
        if self._back is not None and self._back.is_attached:
            self._back.focus()
        else:
            self.screen.set_focus(None)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            self._look()

    def _look(self) -> None:
        """See what is written: is it a filter, what may come next, how much would it show?"""
        text = self.input.value
        self._filter, self._wrong.error, self._counted = None, None, None
        try:
            self._filter = self._shown.compiled(text)
        except FilterError as error:
            self._wrong.error = error
        self._offer(text)
        self._say()
        self.input.refresh()
        if self._count is not None:
            self._count.stop()
        self.query_one("#filter-count", Static).update("")
        if self._filter is not None:
            self._count = self.set_timer(COUNT_SECONDS, self._count_shown)

    def _count_shown(self) -> None:
        if self._filter is not None and self.is_open:
            self._count_beside(self._filter)

    @work(thread=True, exclusive=True, group="count")
    def _count_beside(self, chosen: Filter) -> None:
        within = self._shown.compiled(self._shown.within_span(chosen.text))
        counted = self._shown.count(chosen if within is None else within)
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self._count_came, chosen, counted)

    def _count_came(self, chosen: Filter, counted: tuple[int, int]) -> None:
        if chosen is self._filter and self.is_open:
            self._counted = counted
            least, most = counted
            text = f"✓ {most:,}" if least == most else f"✓ {least:,} to {most:,}"
            self.query_one("#filter-count", Static).update(Text(text, "bold green"))

    def _offer(self, text: str) -> None:
        named = [
            Completion(each, 0, len(text), f"saved: {name}")
            for name, each in sorted(self._remembered.named.items())
            if text != each and name.lower().startswith(text.strip().lower())
        ]
        found = complete(text, self.input.cursor_position)
        self._offers = [*named, *found][:MOST_OFFERS]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(Option(_offer_text(each)) for each in self._offers)
        options.highlighted = 0 if self._offers else None
        self.set_class(bool(self._offers), "-offers")

    def _say(self) -> None:
        error, said = self._wrong.error, Text(" ", no_wrap=True, overflow="ellipsis")
        room = self.app.size.width - 2
        self._keys_said = ""
        hints: tuple[str, ...] = ()
        if self._filter is not None:
            saved = hints_of_saved(self.input.value, self._remembered.named)
            hints = (*saved, *self._filter.hints)
        if error is not None:
            lines = fold_text(sanitise(str(error), None), room)[:SAID_LINES]
            said.append("\n ".join(lines), alarm_color(self.app) if self.input.value else "")
        elif hints:
            said.append(sanitise("; ".join(hints), None), "bold")
        else:
            if self._shown.span is not None:
                said.append("only in the chosen range of time; ", "bold")
            room = self.app.size.width - said.cell_len
            self._keys_at = said.cell_len
            self._keys_said = next((each for each in KEYS_SAID if len(each) < room), KEYS_SAID[-1])
            said.append(self._keys_said)
        self.query_one("#filter-said", Static).update(said)

    # -- keys -----------------------------------------------------------------------------------------

    @on(FilterInput.Wanted)
    def _wanted(self, event: FilterInput.Wanted) -> None:
        event.stop()
        options = self.query_one(OptionList)
        match event.what:
            case "leave":
                self.close()
            case "take":
                self._take(options.highlighted)
            case "older" if self._older is None and options.highlighted:
                options.action_cursor_up()
            case "newer" if self._older is None:
                options.action_cursor_down()
            case "older":
                self._go_through(-1)
            case "newer":
                self._go_through(1)
            case "save":
                self._ask_name()

    def _take(self, at: int | None) -> None:
        if at is not None and at < len(self._offers):
            offer, text = self._offers[at], self.input.value
            self.input.value = text[: offer.start] + offer.text + text[offer.end :]
            self.input.cursor_position = offer.start + len(offer.text)
            self.input.focus()

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._take(event.option_index)

    def _go_through(self, step: int) -> None:
        """Put a filter into the line that was used before, or what was written."""
        used = self._remembered.used
        if self._older is None:
            self._written = self.input.value
        at = (len(used) if self._older is None else self._older) + step
        if at < 0:
            return
        self._older = at if at < len(used) else None
        self.input.value = used[at] if at < len(used) else self._written
        self.input.cursor_position = len(self.input.value)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._filter is None and self.input.value.strip():
            self.app.bell()
            return
        if self._filter is not None:
            self._remembered.use(self._filter)
        self.close()
        self.apply(self.input.value)

    def _ask_name(self) -> None:
        if self._filter is None:
            self.app.bell()
            return
        chosen = self._filter

        def save(name: str | None) -> None:
            if name is None:
                return
            try:
                self._remembered.save(name, chosen)
                said = f"saved as {name}"
            except OSError as error:
                said = f"it cannot be saved: {error.filename or ''} {error.strerror or error}"
            self.query_one("#filter-said", Static).update(Text(f" {sanitise(said, None)}", no_wrap=True))

        of = "" if self._counted is None else f" of {plural(self._counted[1], 'exchange')}"
        self.app.push_screen(Ask(f"Save the filter{of}", "name"), save)


def _offer_text(offer: Completion) -> Text:
    text = Text(f"{sanitise(offer.text, 60):<34} ", no_wrap=True, overflow="ellipsis")
    text.append(sanitise(offer.meaning, None), "dim")
    return text
