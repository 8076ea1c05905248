"""Parts that the screens share: the status line at the top, names of screens, a line of messages, keys at the
bottom."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import ClassVar, cast

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import ActiveBinding, BindingType
from textual.events import ScreenResume, ScreenSuspend
from textual.screen import Screen
from textual.widgets import Static

from kdissect.feed.stories import Subject
from kdissect.present.form import plural
from kdissect.present.sanitise import sanitise
from kdissect.settings.places import PLACES
from kdissect.system.heap import keep_what_there_is
from kdissect.tui.colors import alarm_color
from kdissect.tui.drawing import SparingCompositor
from kdissect.tui.host import Host
from kdissect.tui.keys import bindings_of
from kdissect.tui.widgets import status
from kdissect.tui.widgets.bars import Foot, OneLine, SaidLine, StatusLine, Tabs
from kdissect.tui.widgets.dialogs import Choose
from kdissect.tui.widgets.filter_line import FilterLine
from kdissect.tui.widgets.status import Item, status_line
from kdissect.tui.widgets.table import VirtualTable

LOW, BARS, TINY, LEAST = 30, 24, 20, 14
"""With fewer lines than these: drawings are lower; panes have no bars between them; no screen is named;
drawings are as low as possible."""

TEXTUALS_OWN = (
    "_repaint_required",
    "_layout_required",
    "_scroll_required",
    "_dirty_widgets",
    "_compositor",
)
"""The attributes in which a screen of Textual keeps its pending drawing. No public name has it."""

STORY = "Story"
"""The word for the story of the subject under the cursor."""
OF_A_ROW = (
    *("open", "only-this", "not-this", "and-this", "or-this", "color", "connection", "story", "mark"),
    *("comment", "copy", "save", "order", "columns"),
)
"""Actions that a right click on a row offers, by name."""
MOST_USED = 20
"""The most recent filters that are offered."""
BACK, FILTER_BACK, QUIT = "Back", "Undo filter", "Quit"
"""The words for one level out from a page: the page or pane before, the filter or range before, the end."""
NAMED_BACK = 100
"""From this number of columns on, the footer names the page before."""


def share_of(part: int, whole: int) -> str:
    """A share in words: ``40 % of all``. A part that exists is never 0 %, and only the whole is 100 %."""
    percent = round(100 * part / whole) if whole else 0
    if 0 < part < whole:
        percent = min(99, percent)
    return f"{'<1' if part and not percent else percent} % of all"


class Page(Screen[None]):
    """One of the numbered screens. A page gives its :meth:`body`, and is notified of changes by
    :meth:`index_grew` and :meth:`filter_changed`."""

    DEFAULT_CSS = """
    Page #status { background: $panel; color: $foreground; }
    Page #where { background: $panel; color: $text-muted; }
    Page #no-kafka { height: auto; display: none; padding: 0 1; color: $text-warning; }
    Page.-no-kafka #no-kafka { display: block; }
    Page.-tiny Tabs { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("page")
    BINDING_GROUP_TITLE = "On this screen"
    AUTO_FOCUS = "VirtualTable"
    """By default the first widget of all gets the focus at first: the filter line, which is not shown."""

    _why: Text | None = None
    """The reason for an empty or stopped list."""
    _looks: object = None
    """The look of the application when this page was last shown."""
    _quit_word = BACK
    """The word in the footer for q."""
    _has_note = False
    """Whether it shows a note about its filter."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor = SparingCompositor()

    @property
    def way_out(self) -> str:
        """The word in the footer for one level out from here."""
        return FILTER_BACK if self._can_take_back else self._page_before()

    def _page_before(self) -> str:
        app, step = self.kdissect, self.kdissect.way.last
        name = app.home if step is None else step.page
        if step is None and app.is_home(self) and app.settings.compared_as:
            name = "diff"
        if self.app.size.width < NAMED_BACK or app.pages.get(name) is self:
            return BACK
        return f"{BACK} to {PLACES[name]}"

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """The keys, with the word for their effect here."""
        found = super().active_bindings
        if not self.is_mounted:
            return found
        words = self.words
        for key, active in found.items():
            word, binding = words.get(active.binding.id or ""), active.binding
            if word is not None and word != binding.description and self._has_words_for(active):
                binding = replace(binding, description=word or binding.description, show=bool(word))
                found[key] = active._replace(binding=binding)
        return found

    @property
    def words(self) -> dict[str, str]:
        """The effects of keys here, in words of the footer, by the names of their actions. The footer has no
        key whose word is empty."""
        story = STORY if self.has_story else ""
        return {"open": self.opens, "out-or-end": self.way_out, "story": story}

    def _has_words_for(self, active: ActiveBinding) -> bool:
        """Whether a key belongs to a list or to the page, for which the page has words."""
        return active.node is self or isinstance(active.node, VirtualTable)

    @property
    def has_story(self) -> bool:
        """Whether the subject under the cursor may have a story. If not, the footer has no key for it."""
        return True

    @property
    def opens(self) -> str:
        """The word in the footer for the view that Enter opens on a row; empty without one."""
        return "Exchanges"

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._theme_changed())
        self.call_after_refresh(keep_what_there_is)  # a page that was made stays
        self._looks = self._looks_now()
        words = self.kdissect.first_words
        if words is not None and self.kdissect.is_home(self):
            self.kdissect.first_words = None
            self.query_one(Foot).show_message_first(words)

    def _theme_changed(self) -> None:
        """Recompute the colour of errors after a change of the theme."""
        if self.is_current and self.kdissect.is_open:
            self.index_grew()

    def compose(self) -> ComposeResult:
        yield StatusLine()
        yield Tabs(self.kdissect.titles(), self.kdissect.name_of(self))
        yield FilterLine(self.kdissect.shown, self.kdissect.remembered)
        yield Static(id="no-kafka", markup=False)
        yield from self.body()
        yield Foot()

    @property
    def has_panes(self) -> bool:
        """Whether its panes exist. At the end they are removed one by one, and a timer may go off
        meanwhile."""
        table = self.query_one_optional(VirtualTable)
        return table is not None and table.is_attached

    @property
    def is_ready(self) -> bool:
        """Whether all parts that take long to make exist."""
        return True

    def make_ready(self) -> None:
        """Begin to make the parts that take long, beside the screens."""

    def body(self) -> ComposeResult:
        """The page's contents between the lines that all pages have."""
        yield from ()

    @property
    def kdissect(self) -> Host:
        """The application."""
        return cast(Host, self.app)

    def index_grew(self) -> None:
        """Handle new exchanges in the index, or the end of the decoder."""
        self._show_status()
        self._show_why_nothing()
        if self.way_out != self._quit_word:
            self._quit_word = self.way_out
            self.refresh_bindings()
        self.query_one(FilterLine).show()

    def _show_why_nothing(self) -> None:
        """Show why reading stopped, and which other protocols there are if there is no Kafka. Every screen
        shows it, as a whole."""
        stopped, why = self.kdissect.why_stopped(), self.kdissect.why_nothing()
        self.set_class(bool(stopped or why), "-no-kafka")
        if stopped or why:
            text = Text("\n").join(
                (
                    *(Text(f"! {each}", self.alarm) for each in stopped),
                    *(Text(sanitise(each, None)) for each in why),
                )
            )
            if text != self._why:
                self._why = text
                self.query_one("#no-kafka", Static).update(text)

    def update_status(self) -> None:
        """Write the line at the top again."""
        self._show_status()

    def _show_status(self) -> None:
        self.query_one("#status", OneLine).show(status_line(self.status(), self.app.size.width))

    def filter_changed(self) -> None:
        """Handle a change of the shown exchanges (:attr:`Kdissect.shown`)."""
        if not self.kdissect.shown.text:  # which the words at the beginning may be about
            self.query_one(Foot).forget_first()
        self.index_grew()

    def note_filter_progress(self, found: bool) -> None:
        """Handle progress of the filter's second stage; ``found``: there are more exchanges to show."""
        shown = self.kdissect.shown
        if found or (shown.progress is None and not len(shown.places)):  # it is known now that there is none
            self.filter_changed()
        else:
            self.query_one(FilterLine).show()

    def marks_changed(self) -> None:
        """Handle a new mark or comment (:attr:`Kdissect.marks`)."""

    def chosen_place(self) -> int | None:
        """The place in the index of the exchange under the cursor; None without an exchange."""
        return None

    def chosen_time(self) -> int | None:
        """The time under the cursor, ns since the epoch; None if only an exchange has it, or nothing."""
        return None

    def chosen_subject(self) -> Subject | None:
        """The subject of the story that a key opens from here; None for that of the exchange under the
        cursor."""
        return None

    def open_from(self, place: int | None, ns: int | None) -> None:
        """Handle the page's key on another screen, with that screen's exchange, or else time, under its
        cursor."""

    def on_screen_resume(self) -> None:
        self.index_grew()

    @on(ScreenResume)
    def _keep_styles(self, event: ScreenResume) -> None:
        """Keep the styles of the widgets. Textual would look up all of them, a third of the time for opening
        a page. They are the same unless the application looks different now."""
        looks, self._looks = self._looks, self._looks_now()
        event.refresh_styles = event.refresh_styles and looks != self._looks

    def _looks_now(self) -> object:
        """The state of the application on which the styles of a page depend."""
        return self.app.theme, frozenset(self.app.get_pseudo_classes()), frozenset(self.app.classes)

    def _on_timer_update(self) -> None:
        """Draw the changes. If a layout and the whole screen are due, Textual 8 draws the screen twice. Here
        the layout takes over that drawing, and draws the screen once. Without :data:`TEXTUALS_OWN`, Textual
        draws in its own way."""
        knows = all(hasattr(self, name) for name in TEXTUALS_OWN)
        if knows and self._repaint_required and (self._layout_required or self._scroll_required):
            self._dirty_widgets.add(self)
            self._repaint_required = self not in self._compositor.visible_widgets
        super()._on_timer_update()

    def on_resize(self) -> None:
        self.set_class(self.app.size.height < LOW, "-low")
        self.set_class(self.app.size.height < BARS, "-no-bars")
        self.set_class(self.app.size.height < TINY, "-tiny")
        self.set_class(self.app.size.height < LEAST, "-least")
        if self.kdissect.is_open:
            self._show_status()

    @on(Tabs.Chosen)
    def _tab_chosen(self, event: Tabs.Chosen) -> None:
        self.kdissect.action_page(event.name)

    def shown(self) -> int:
        """The number of exchanges in the list."""
        return len(self.kdissect.index)

    def status(self) -> list[Item]:
        """The facts for the status line."""
        app, index = self.kdissect, self.kdissect.index
        names = [os.path.basename(path) for path in app.feed.source.paths]
        name = sanitise(names[0], 30) + (f" +{len(names) - 1}" if len(names) > 1 else "")
        name = sanitise(app.settings.compared_as, None) or name
        out = [Item(name, status.NAME, "bold")]
        if app.ended is None:
            out.append(Item(f" {app.share()} ", status.READ, "reverse"))
        elif app.ended.reason is not None:
            out.append(Item(" stopped ", status.STOPPED, f"{self.alarm} reverse"))
        if app.feed.capture is not None:
            out += status.capture_items(app.feed.capture, index.packets, self.alarm)
        out.append(Item(plural(index.packets, "packet"), status.PACKETS))
        out.append(Item(plural(len(index), "exchange"), status.COUNT))
        if self.shown() != len(index):
            out.append(Item(f"{self.shown():,} shown", status.SHOWN, "bold"))
            out.append(Item(share_of(self.shown(), len(index)), status.SHARE))
        out += status.error_items(index.graded, self.alarm)
        faults = index.fault_count()
        out.append(Item(f"! {plural(faults, 'fault')}", status.FAULTS, self.alarm if faults else ""))
        return out

    @property
    def alarm(self) -> str:
        """The style of errors; without colours, red would be a dim grey."""
        return "bold" if self.app.no_color else f"bold {alarm_color(self.app)}"

    def show_message(self, text: str) -> None:
        """Write into the line above the keys, unless there is a question."""
        if not self.kdissect.is_asking:
            line = self.query_one_optional("#where", SaidLine)
            if line is not None and line.is_attached:  # at the end, panes go one by one
                line.say(sanitise(text, None))

    def note(self, text: str) -> None:
        """Write a note about the filter, above all other lines, until it was read or the page is left."""
        self._has_note = True
        self.query_one(Foot).show_message_first(text)

    def restore_message(self) -> None:
        """Write the text about the shown data there, in place of a message about a key."""
        self.show_message("")

    @on(ScreenSuspend)
    def _clear_messages(self) -> None:
        """Forget older messages. A user who comes back from another screen wants to know what is shown, not
        what was done before. New messages, such as one that a file was saved, stay."""
        here = self.app.screen_stack[-1:]
        if self.has_panes and here != [self] and isinstance(here[0], Page):
            self.restore_message()
            if self._has_note:
                self._has_note = False
                self.query_one(Foot).forget_first()

    def action_filter(self) -> None:
        self.query_one(FilterLine).open()

    def action_filter_off(self) -> None:
        self.kdissect.shown.toggle()

    @on(VirtualTable.Menu, "#list")
    def _list_what_can_be_done(self) -> None:
        """Handle a right click: offer the actions on the row."""
        found = {each.binding.id: each for each in self.active_bindings.values() if each.enabled}
        offered = {
            f"{each.binding.description}: {each.binding.tooltip}": each
            for each in map(found.get, OF_A_ROW)
            if each is not None and each.binding.description
        }

        def chosen(words: str | None) -> None:
            if words is not None:
                active = offered[words]
                self.app.call_later(self.app.run_action, active.binding.action, active.node)

        if offered:
            self.app.push_screen(Choose("This row", list(offered)), chosen)

    def action_filters_used(self) -> None:
        """Choose one of the last filters, and write it into the filter line."""
        used = {sanitise(text, None): text for text in reversed(self.kdissect.remembered.used[-MOST_USED:])}

        def chosen(words: str | None) -> None:
            if words is not None:
                self.query_one(FilterLine).open(used[words])

        if used:
            self.app.push_screen(Choose("Filters that were used", list(used)), chosen)
        else:
            self.show_message("no filter was used yet")

    def take_back(self) -> bool:
        """Undo the last range of time or filter; return whether there was one. The filters of a jump to this
        screen are undone with the jump."""
        return self._can_take_back and self.kdissect.shown.pop()

    @property
    def _can_take_back(self) -> bool:
        step = self.kdissect.way.last
        floor = step.filters_there if step is not None and step.is_jump else self.kdissect.first_filters
        return self.kdissect.shown.depth > floor

    def action_out(self) -> None:
        if self.take_back():
            return
        if not self.kdissect.go_back():
            self.kdissect.action_page(self.kdissect.home)
        if self.app.screen is self:  # there is nothing to undo but the message
            self.restore_message()

    def action_out_or_end(self) -> None:
        self.action_out()
