"""The line that shows the display filter, and in which users write it.

At every key the line says whether the text is a filter, and how many exchanges it would show. A mistake is
marked in the line and explained below it. Possible texts at the cursor are offered.
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
from kdissect.tui.widgets.adapted import LegibleInput, LegibleOptions, LegibleText
from kdissect.tui.widgets.bars import OneLine
from kdissect.tui.widgets.dialogs import Ask

COUNT_SECONDS = 0.1
"""The time without a key after which exchanges are counted."""
MOST_OFFERS = 50
LEAST_WRITTEN = 16
"""The cells that the beginning of a filter keeps beside the text about it."""
SAID_LINES = 3
"""The most lines for the explanation of a mistake."""
KEYS_TEXTS = (
    "Enter applies, Tab accepts a suggestion, ↑ shows earlier filters, Ctrl-s saves, Esc leaves",
    "Enter applies, Tab completes, ↑ earlier filters, Ctrl-s saves, Esc leaves",
    "Enter applies, Tab completes, Esc leaves",
)
"""The texts about the keys in the line; the first that has room is used."""
_CLICK_ACTIONS = {"Enter": "apply", "Tab": "take", "↑": "older", "Ctrl-s": "save", "Esc": "leave"}
"""The action in the table of actions for a click on the words of each key."""


class _WrongMark(Highlighter):
    """Marks the mistake in the filter."""

    error: FilterError | None = None

    def highlight(self, text: Text) -> None:
        if self.error is not None:
            start = min(self.error.position, len(text))
            text.stylize("bold red underline", start, max(start + self.error.length, start + 1))


class FilterInput(LegibleInput):
    """The field for writing the filter."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("filter")
    BINDING_GROUP_TITLE = PLACES["filter"]

    class Wanted(Message):
        """A key that is not about the text under the cursor; ``what`` is its name in the table of actions."""

        def __init__(self, what: str) -> None:
            self.what = what
            super().__init__()

    def on_mount(self) -> None:
        self.cursor_blink = False  # nothing is drawn while nothing changes

    def validate_value(self, value: str) -> str:
        """Escape pasted characters for display; in a string the escapes mean the same."""
        return sanitise(value, None)

    def action_want(self, what: str) -> None:
        self.post_message(self.Wanted(what))

    def action_cursor_right(self, select: bool = False) -> None:
        if self.cursor_position == len(self.value) and not select:
            self.post_message(self.Wanted("take"))
        else:
            super().action_cursor_right(select)


class FilterLine(Vertical):
    """The line, with the height that it needs: none while there is no filter."""

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
        """The function that applies a written filter."""
        self._wrong = _WrongMark()
        self._filter: Filter | None = None
        """The written text, if it is a filter."""
        self._counted: tuple[int, int] | None = None
        """The least and the greatest number of exchanges that it would show, once known."""
        self._offers: Sequence[Completion] = ()
        self._older: int | None = None
        """Which of the used filters is in the line; None for the user's own text."""
        self._written = ""
        self._back: Widget | None = None
        """The widget that had the focus before."""
        self.lists_exchanges = True
        """Whether the screen lists the counted exchanges; if not, the count names what it counts."""
        self._count: Timer | None = None
        self._keys_said = ""
        """The shown text about keys, …"""
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
        """The field for writing."""
        return self.query_one(FilterInput)

    @property
    def is_open(self) -> bool:
        """Whether a filter is being written."""
        return self.has_class("-open")

    # -- the filter that is set -----------------------------------------------------------------------

    def show(self) -> None:
        """Show the current filter, and how many exchanges it shows."""
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
        # The user who wrote the filter knows it. Notes about it are never cut for it.
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
        """Handle a click on the words of a key like the key."""
        start = 0
        for words in self._keys_said.split(", "):
            if start <= cell < start + len(words):
                what = _CLICK_ACTIONS[words.partition(" ")[0]]
                if what == "apply":
                    self._apply()
                else:
                    self.input.action_want(what)
            start += len(words) + len(", ")

    # -- writing --------------------------------------------------------------------------------------

    def open(self, text: str | None = None) -> None:
        """Begin to write: with the current filter, or with ``text``. A range of time is not in it. The
        current filter is selected, so that typed text replaces it."""
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
        """Leave the line; the current filter is kept."""
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
        """Examine the text: whether it is a filter, what may come next, and how much it would show."""
        text = self.input.value
        self._filter, self._wrong.error, self._counted = None, None, None
        try:
            self._filter = self._shown.compiled(text)
        except FilterError as error:
            self._wrong.error = error
        self._offer(text)
        self._show_mistake()
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
            self.app.call_from_thread(self._take_count, chosen, counted)

    def _take_count(self, chosen: Filter, counted: tuple[int, int]) -> None:
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

    def _show_mistake(self) -> None:
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
            self._keys_said = next((each for each in KEYS_TEXTS if len(each) < room), KEYS_TEXTS[-1])
            said.append(self._keys_said)
        self.query_one("#filter-said", Static).update(said)

    # -- keys -----------------------------------------------------------------------------------------

    @on(FilterInput.Wanted)
    def _run_action(self, event: FilterInput.Wanted) -> None:
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
        """Put an earlier filter, or the user's own text, into the line."""
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
