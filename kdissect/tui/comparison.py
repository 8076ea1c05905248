"""Two captures side by side: their differences, and links to the exchanges of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import BindingType
from textual.command import Provider

from kdissect.analysis.fold import Row
from kdissect.insight.context import JudgingContext
from kdissect.insight.difference import FINDING, Difference
from kdissect.insight.judge import NotJudged
from kdissect.present.diffs import DIFF, summary
from kdissect.present.form import duration, plural
from kdissect.present.options import PLAIN, Options
from kdissect.present.sanitise import sanitise
from kdissect.present.whole_record import TextLine
from kdissect.settings.places import DIFF_VIEWS, PLACES
from kdissect.settings.words import ABOUT
from kdissect.system.terminal import end_with_signals, end_with_terminal
from kdissect.tui.defects import QuietApp
from kdissect.tui.keys import Commands, bindings_of, help_of, keymap_of
from kdissect.tui.lists.differences import (
    ARROW,
    CHANGES,
    FINDINGS,
    VIEWS,
    Compared,
    columns_of,
    compared_of,
    difference_of,
    figures_of,
    rows_of,
    subject_lines,
    subjects,
)
from kdissect.tui.lists.findings import text_of
from kdissect.tui.pages.listed import COPIED_CELLS, Copies, OrderedScreen, Saved, no_row
from kdissect.tui.widgets.bars import Foot, SaidLine, StatusLine, Tabs
from kdissect.tui.widgets.dialogs import Choose, Help, Mistakes
from kdissect.tui.widgets.split_panes import LEAST_LINES
from kdissect.tui.widgets.table import VirtualTable, cut_apart
from kdissect.tui.widgets.text_pane import TextPane

BEFORE, AFTER = 0, 1
WORDS = "BEFORE", "AFTER"
NAME, SHORT_NAME = 30, 22
"""The widths of a capture's name, in cells."""


class ShownOutcome(NamedTuple):
    """The result of showing exchanges."""

    why_not: str = ""
    """The reason if they could not be shown; otherwise empty."""
    ends_with: int | None = None
    """The exit code, if the user ended kdissect there; None if the user came back."""


class ComparedCapture(NamedTuple):
    """One of the two captures."""

    name: str
    context: JudgingContext
    show: Callable[[str], ShownOutcome] | None = None
    """Shows the exchanges that match a filter. None if there are no packets, because the file is a report or
    a state."""
    not_judged: Sequence[NotJudged] = ()
    """Rules that could not judge this capture, so that missing findings of theirs mean nothing."""


class ComparisonScreen(OrderedScreen):
    """All differences, the findings, and the subjects of each area; below, the whole text of the row under
    the cursor. Enter shows its exchanges, in the capture that has them."""

    DEFAULT_CSS = """
    ComparisonScreen #status { height: 1; background: $panel; color: $foreground; }
    ComparisonScreen #where { background: $panel; color: $text-muted; }
    ComparisonScreen #list { height: 3fr; max-height: 60%; }
    ComparisonScreen #said { height: 2fr; border-top: hkey $panel; }
    ComparisonScreen.-whole #list { display: none; }
    ComparisonScreen.-whole #said { border-top: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("diff")
    BINDING_GROUP_TITLE = PLACES["diff"]

    def __init__(
        self, captures: tuple[ComparedCapture, ComparedCapture], found: Sequence[Difference]
    ) -> None:
        super().__init__()
        self._captures, self._found = captures, found
        self._view = CHANGES
        self._subjects: dict[str, list[Compared]] = {}
        self.rows = figures_of(CHANGES)
        self._tables = {CHANGES: self.rows}

    def compose(self) -> ComposeResult:
        yield StatusLine()
        yield self._tabs()
        yield VirtualTable(self.rows, id="list")
        yield TextPane(id="said")
        yield Foot()

    def _tabs(self) -> Tabs:
        return Tabs(
            [(name, str(key), title) for key, (name, title) in enumerate(VIEWS.items(), 1)], self._view
        )

    def on_mount(self) -> None:
        self.rows.show(rows_of(self._found, CHANGES))
        self.list_pane.focus()
        self.rows_changed(None)
        self._share_room()
        self.update_message()

    def _share_room(self) -> None:
        """Give the list as many lines as it needs, up to its share, and the rest to the text."""
        self.wish(self.list_pane, max(LEAST_LINES, len(self.rows)) + 1)

    def on_resize(self) -> None:
        self.query_one(StatusLine).show(self._status())
        self.call_after_refresh(self.update_message)

    def _status(self) -> Text:
        """The two captures, and as much of the result as there is room for."""
        room = self.app.size.width
        whole, more, names, short = (
            ARROW.join(self._about(side, *given) for side in (BEFORE, AFTER))
            for given in ((True, room), (True,), (), (False, SHORT_NAME))
        )
        result = f"   {summary(self._found)}"
        texts = [f" {text}" for text in (whole + result, more + result, whole, more, names, short)]
        fits = (text for text in texts if cell_len(text) <= room)
        return Text(next(fits, texts[-1]), no_wrap=True, overflow="ellipsis")

    def _about(self, side: int, is_whole: bool = False, cells: int = NAME) -> str:
        name, context = self._called(side, cells), self._captures[side].context
        took = f" ({duration(context.span_ns)}, {plural(context.exchanges, 'exchange')})" if is_whole else ""
        return f"{WORDS[side]} {name}{took}"

    def _called(self, side: int, cells: int) -> str:
        """The name of a capture; a long one is cut, and still differs from the other."""
        return cut_apart([sanitise(each.name, None) for each in self._captures], cells)[side]

    # -- the lists ------------------------------------------------------------------------------------

    @property
    def options(self) -> Options:
        return PLAIN

    def saved(self) -> list[Saved]:
        rows = [row for at in range(len(self.rows)) for row in self._differences(self.rows.row(at))]
        return [Saved("diff", DIFF, rows)]

    def _differences(self, row: Row) -> Sequence[Difference]:
        return (difference_of(row),) if self._view in (CHANGES, FINDINGS) else compared_of(row).measures

    def action_view(self, name: str) -> None:
        """Show another list."""
        if name == self._view:
            return
        self._view = name
        known = self._tables.get(name)
        if known is None:
            known = self._tables[name] = figures_of(name)
            known.show(rows_of(self._found, name), columns_of(name))
        self.rows = self.list_pane.rows = known
        tabs = self.query_one(Tabs)
        tabs.turn(name)
        self.list_pane.rows_look_different()
        self.rows_changed(None)
        self._share_room()
        self.list_pane.focus()
        self.update_message()

    def action_turn_view(self, step: int) -> None:
        names = list(VIEWS)
        self.action_view(names[(names.index(self._view) + step) % len(names)])

    @on(Tabs.Chosen)
    def _tab_chosen(self, event: Tabs.Chosen) -> None:
        self.action_view(event.name)

    def update_message(self) -> None:
        count = len(self.rows)
        if self._view == CHANGES:
            what = plural(count, "significant difference")
        else:
            many = DIFF_VIEWS[self._view].removesuffix("s")
            what = plural(count, many if many.isupper() else many.lower())
        self.show_notes([what])

    def show_message(self, text: str) -> None:
        self.query_one("#where", SaidLine).say(sanitise(text, None))

    # -- the text of a row ----------------------------------------------------------------------------

    @property
    def text_pane(self) -> TextPane:
        """The whole text of a row."""
        return self.query_one("#said", TextPane)

    def cursor_moved(self) -> None:
        row = self.chosen_row()
        self.text_pane.show_folded(self._nothing_lines if row is None else partial(self._lines, row))

    def _nothing_lines(self, room: int) -> list[TextLine]:
        if self.rows.is_narrow:
            return [TextLine(no_row(self.rows), "heading")]
        if self._view != CHANGES:
            return [TextLine("Neither capture has any.", "heading")]
        return [
            TextLine("No significant difference.", "heading"),
            TextLine(""),
            TextLine("A difference is significant if it is more than chance and large enough to matter."),
            TextLine("The other lists show all that was measured, side by side."),
        ]

    def _lines(self, row: Row, room: int) -> list[TextLine]:
        if self._view not in (CHANGES, FINDINGS):
            return self._subject_lines(self._view, compared_of(row), room)
        each = difference_of(row)
        if each.area == FINDING:
            return self._finding_lines(each, room)
        if each.area not in self._subjects:
            self._subjects[each.area] = subjects(self._found, each.area)
        of_it = next(known for known in self._subjects[each.area] if known.subject == each.subject)
        return self._subject_lines(each.area, of_it, room)

    def _subject_lines(self, area: str, compared: Compared, room: int) -> list[TextLine]:
        before, after = (f"{WORDS[side]} {self._called(side, SHORT_NAME)}" for side in (BEFORE, AFTER))
        return subject_lines(compared, area, (before, after), room)

    def _finding_lines(self, each: Difference, room: int) -> list[TextLine]:
        out: list[TextLine] = []
        for side, finding in enumerate(each.findings):
            name = f"{WORDS[side]} {self._called(side, NAME)}"
            if finding is None:
                silent = {one.rule: one.why for one in self._captures[side].not_judged}
                rules = {one.id for one in each.findings if one is not None}
                why = next((f"not judged ({silent[rule]})" for rule in rules if rule in silent), "not found")
                out.append(TextLine(f"{name}: {why}", "fact"))
            else:
                out.append(TextLine(f"{name}:", "fact"))
                out += text_of(finding, None, self._captures[side].context.first_ns, room)
            out.append(TextLine(""))
        return out

    # -- keys -----------------------------------------------------------------------------------------

    def open(self, row: Row) -> None:
        filters = self._filters(row)
        sides = [side for side in (BEFORE, AFTER) if filters[side] is not None]
        if len(sides) < 2:
            self._show(row, sides[0] if sides else AFTER)
            return
        words = {f"{WORDS[side]}: {self._called(side, 50)}": side for side in sides}

        def chosen(word: str | None) -> None:
            if word is not None:
                self._show(row, words[word])

        self.app.push_screen(Choose("Exchanges of", list(words)), chosen)

    def copies(self, row: Row) -> Copies:
        def text() -> str:
            return "\n".join(line.text for line in self._lines(row, COPIED_CELLS))

        return {"whole text": text, **super().copies(row)}

    def action_side(self, side: int) -> None:
        """Show the exchanges of the row under the cursor in one of the captures."""
        row = self.chosen_row()
        if row is not None:
            self._show(row, side)

    def _filters(self, row: Row) -> tuple[str | None, str | None]:
        if self._view in (CHANGES, FINDINGS):
            return difference_of(row).filters
        measures = compared_of(row).measures
        plain = min(measures, key=lambda each: len((each.filters[0] or "") + (each.filters[1] or "")))
        return plain.filters

    def _show(self, row: Row, side: int) -> None:
        capture, text = self._captures[side], self._filters(row)[side]
        if text is None:
            self.show_message(f"{WORDS[side]} has no such exchanges")
        elif capture.show is None:
            self.show_message(
                f"{WORDS[side]} {self._called(side, NAME)} has no packets: it is a report or a state"
            )
        else:
            try:
                with self.app.suspend():
                    outcome = capture.show(text)
            except SuspendNotSupported:
                outcome = ShownOutcome("other screens cannot be opened in this terminal")
            if outcome.ends_with is not None:
                self.app.exit(return_code=outcome.ends_with)
            elif outcome.why_not:
                self.show_message(outcome.why_not)

    @on(TextPane.Chosen)
    def _text_chosen(self) -> None:
        row = self.chosen_row()
        if row is not None:
            self.open(row)

    def action_explain(self) -> None:
        self.toggle_class("-whole")
        (self.text_pane if self.has_class("-whole") else self.list_pane).focus()

    def action_out(self) -> None:
        if not self._leave():
            self.show_message("q ends kdissect")

    def action_out_or_end(self) -> None:
        if not self._leave():
            self.app.exit()

    def _leave(self) -> bool:
        """Undo one thing: the whole text, or another list than the first; return whether there was any."""
        if self.has_class("-whole"):
            self.action_explain()
        elif self.show_all_rows():
            pass
        elif self._view != CHANGES:
            self.action_view(CHANGES)
        else:
            return False
        return True


class Comparison(QuietApp):
    """The screens of ``kdissect diff``."""

    TITLE = "kdissect diff"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("everywhere")
    BINDING_GROUP_TITLE = PLACES["everywhere"]
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Commands}

    def __init__(
        self,
        captures: tuple[ComparedCapture, ComparedCapture],
        found: Sequence[Difference],
        theme: str | None = None,
        keys: Mapping[str, str] | None = None,
        mistakes: Sequence[Sequence[str]] = (),
    ) -> None:
        """Prepare the screens.

        :param mistakes: the errors in the configuration.
        """
        super().__init__()
        self._given, self._mistakes = (captures, found), mistakes
        self.set_keymap(keymap_of(keys or {}))
        if theme is not None:
            self.theme = theme

    def on_load(self) -> None:
        if not self.is_headless:
            end_with_signals(lambda code: self.exit(return_code=code))

    def on_mount(self) -> None:
        self.push_screen(ComparisonScreen(*self._given))
        if self._mistakes:
            self.push_screen(Mistakes(self._mistakes))
        end_with_terminal(lambda: self.call_from_thread(self.exit))

    def action_help(self) -> None:
        self.push_screen(Help(help_of(self.screen), ABOUT["diff"]))
