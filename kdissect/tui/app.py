"""The application: it asks the decoder ten times a second for new exchanges, and shows one of several
screens."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, ClassVar

from rich.console import RenderableType
from textual.binding import BindingType
from textual.command import Provider
from textual.events import Event, InputEvent, Key, MouseDown, Paste
from textual.screen import Screen
from textual.timer import Timer

from kdissect.analysis.catalogue import STATISTICS
from kdissect.exchange import Exchange
from kdissect.feed.batches import Feed
from kdissect.feed.stories import Subject
from kdissect.feed.targets import Destination, nothing_at, place_of, targets
from kdissect.filter.errors import FilterError
from kdissect.model import CaptureError
from kdissect.present.options import Options
from kdissect.settings.actions import ACTIONS, actions_of
from kdissect.settings.key_names import key_names
from kdissect.settings.places import PAGES, PLACES
from kdissect.settings.recent import recent_files
from kdissect.settings.remembered import Remembered
from kdissect.settings.screens import WENT_BACK, Settings
from kdissect.settings.session import LastSession
from kdissect.settings.words import ABOUT, HINT, LEFT_FILTERED, LEFT_SO, READ_SO
from kdissect.system.heap import (
    PutOff,
    give_back_holes,
    give_back_large_blocks,
    keep_what_there_is,
    look_at_all,
)
from kdissect.system.terminal import end_with_signals, end_with_terminal, suspend
from kdissect.tui.host import Host, Opener, WayStep, is_of_interfaces
from kdissect.tui.keys import Commands, bindings_of, help_of, keymap_of
from kdissect.tui.leaving import arrange, as_left
from kdissect.tui.pages.capture import CapturePage
from kdissect.tui.pages.cluster import ClusterPage
from kdissect.tui.pages.connections import ConnectionsPage
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.facts import FactsPage
from kdissect.tui.pages.findings import FindingsPage
from kdissect.tui.pages.groups import GroupsPage
from kdissect.tui.pages.ladder import LadderPage
from kdissect.tui.pages.latency import LatencyPage
from kdissect.tui.pages.page import Page
from kdissect.tui.pages.problems import ProblemsPage
from kdissect.tui.pages.records import RecordsPage
from kdissect.tui.pages.start import Looks, Start
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.pages.story import StoryPage
from kdissect.tui.pages.topics import TopicsPage
from kdissect.tui.pages.transactions import TransactionsPage
from kdissect.tui.widgets.dialogs import Ask, Help, HelpPage, Mistakes
from kdissect.tui.widgets.panes import DetailPanes

TICK_SECONDS = 0.15
"""How often the screens take in new exchanges. A live capture redraws the list each time, which takes 30 ms.
Ten times a second would be a third of a core."""
FIRST_TICK_SECONDS, FIRST_TICKS = 0.03, 100
"""The interval until the first exchanges come, and the most ticks at it: nobody need wait for the next usual
tick."""
PREPARE_SECONDS = 0.25
"""How often an unopened screen is made in advance. That takes as long as some frames, so screens are made one
at a time, while no key comes."""
FIRST_PAGE_SECONDS = 1.5
"""How long the first page has the processor for itself."""
_ELSEWHERE = ("findings", "statistics", "grouped", "story", "ladder", "panes", *PAGES)
"""Places whose keys are known everywhere: if a key does not work, a line says so."""
REST_SECONDS = 0.2
"""After this long without a key, memory is tidied up. That takes as long as one frame or a few."""


class Kdissect(Host):
    """The screens over one feed."""

    TITLE = "kdissect"
    CSS = """
    CommandPalette Input > .input--placeholder { color: $text-muted; }
    CommandPalette > .command-palette--help-text { text-style: not bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("everywhere")
    BINDING_GROUP_TITLE = PLACES["everywhere"]
    prepares_pages = True
    """Whether screens are made before somebody opens them."""
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Commands}

    def __init__(
        self,
        feed: Feed | None,
        options: Options = Options(embedded=True),  # noqa: B008 - it cannot be changed
        settings: Settings = Settings(),  # noqa: B008
        *,
        remembered: Remembered | None = None,
        opener: Opener | None = None,
        rates: Looks | None = None,
    ) -> None:
        """Prepare the screens.

        :param rates: gives the interfaces that can be captured from.
        """
        self.session = settings.before
        """The state in which the screens were left."""
        self.home = settings.page or ("exchanges" if settings.filter else settings.before.page or "findings")
        self._asking: Timer | None = None
        """The timer of the filter's second stage, while it runs."""
        self._resting: Timer | None = None
        """The timer until no key has come for a while."""
        self._collections = PutOff()
        """Collections of garbage wait from a key to its frame."""
        self._looked_at = 0.0
        """The time of the last look at news, by :func:`time.monotonic`."""
        super().__init__(feed, options, settings, remembered or Remembered())
        self.set_keymap(keymap_of(settings.keys))
        if settings.theme is not None:
            self.theme = settings.theme
        self._opener = opener
        self._rates = rates
        self.pages: dict[str, Page] = {}

    def on_load(self) -> None:
        if not self.is_headless:
            end_with_signals(lambda code: self.exit(return_code=code))

    def on_mount(self) -> None:
        give_back_large_blocks()
        keep_what_there_is()
        if self.is_open:
            self._begin()
        else:
            self.push_screen(Start(recent_files(), self._rates))
        if self.settings.mistakes:
            self.push_screen(Mistakes(self.settings.mistakes))
        # The terminal has lost the earlier contents, and Textual draws only changes.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh())
        end_with_terminal(lambda: self.call_from_thread(self.exit))

    # -- the capture ----------------------------------------------------------------------------------

    def open(self, chosen: str) -> str | None:
        assert self._opener is not None
        begin = self._opener.interfaces if is_of_interfaces(chosen) else self._opener.file
        try:
            self.take(begin(chosen))
        except CaptureError as error:
            return str(error)
        self._begin()
        return None

    def _begin(self) -> None:
        self._poll()
        self.pages = {
            "exchanges": ExchangesPage(),
            "connections": ConnectionsPage(),
            "topics": TopicsPage(),
            "groups": GroupsPage(),
            "latency": LatencyPage(),
            "problems": ProblemsPage(),
            "records": RecordsPage(),
            "ladder": LadderPage(),
            "story": StoryPage(),
            "capture": CapturePage(),
            "findings": FindingsPage(),
            "transactions": TransactionsPage(),
            "cluster": ClusterPage(),
        }
        figures = (page for page in self.pages.values() if isinstance(page, StatisticsPage))
        self.pages["facts"] = FactsPage(frozenset(name for page in figures for name in page.names))
        arrange(self.pages, self.settings.before)
        for name, page in self.pages.items():
            self.install_screen(page, name)  # so that it stays when another is shown
        self.push_screen("exchanges")  # made in any case: other screens lead to it
        if self.home != "exchanges":
            self.switch_screen(self.home)
        if self.settings.filter:
            self.shown.push(self.settings.filter)
        elif not self.settings.compared_as:
            self._restore_from(self.settings.before)
        if self.ended is None:
            self._timer = self.set_interval(TICK_SECONDS, self._tick)
            self._first_news = self.set_interval(FIRST_TICK_SECONDS, self._await_first, repeat=FIRST_TICKS)
        if self.prepares_pages:
            self.set_timer(FIRST_PAGE_SECONDS, self._begin_to_prepare)

    def _begin_to_prepare(self) -> None:
        self._preparing = self.set_interval(PREPARE_SECONDS, self._prepare)

    def _prepare(self) -> None:
        """Make the next unmade screen, unless the user is busy. Opening it takes less time then."""
        is_busy = time.monotonic() < self.touched_at + REST_SECONDS
        if is_busy or not self.screen_stack or self._here() is None:  # at the end there is no screen
            return
        page = next((each for each in self.pages.values() if not each.is_running), None)
        if page is None:
            self._preparing.stop()
            keep_what_there_is()
        elif page.is_ready:
            self._get_screen(page)  # as Textual does before it shows one
        else:
            page.make_ready()

    def _restore_from(self, before: LastSession) -> None:
        """Restore the state in which the screens were left, and say so."""
        if before.filter:
            with suppress(FilterError):  # of another version
                self.shown.restore(before.filter)
        if self.shown.text:
            self.first_words = LEFT_FILTERED
        elif self._shows_otherwise(before):
            self.first_words = LEFT_SO
        elif self.settings.is_first:
            self.first_words = HINT

    def _shows_otherwise(self, before: LastSession) -> bool:
        """Whether the first screen is not the usual one, or its list has other columns, another order or
        grouping."""
        of_list = self.home == "exchanges" and (before.sort or before.columns)
        lists = [name for name, *_ in (*before.orders, *before.groupings)]
        return self.home != (self.settings.page or "findings") or bool(of_list) or self.home in lists

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        if not self._exit:  # a second signal may come when the panes are gone
            self.session = as_left(self) if self.pages else self.settings.before
        super().exit(result, return_code, message)

    def _poll(self) -> bool:
        """Take in new exchanges; return whether there were any."""
        before = len(self.index)
        has_news = self.take_in()
        if len(self.index) != before:
            self.shown.index_grew()
            self._watch_filter()
            self._look_at_new()
        if has_news and self.ended is not None:
            self.shown.index_is_complete()
        return has_news

    def _look_at_new(self) -> None:
        """Let the list of exchanges take in new ones, whichever page is shown. Otherwise its page would open
        late: taking in a large file at once takes as long as some frames."""
        exchanges = self.pages.get("exchanges")
        if isinstance(exchanges, ExchangesPage):
            exchanges.look_at_new()

    async def on_event(self, event: Event) -> None:
        if isinstance(event, InputEvent):
            if not self.screen_stack:  # one more key, at the end
                return
            self.touched_at = time.monotonic()
            self._collections.begin()
            self._tidy_at_rest()
        await super().on_event(event)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        if self._collections.wait:  # until this frame is on its way to the terminal
            self.call_later(self._collections.end)

    def _tidy_at_rest(self) -> None:
        """Tidy memory up as soon as no key has come for a while."""
        if self._resting is None and self._running:
            wait = max(0.01, self.touched_at + REST_SECONDS - time.monotonic())
            self._resting = self.set_timer(wait, self._rested)

    def _rested(self) -> None:
        self._resting = None
        if time.monotonic() < self.touched_at + REST_SECONDS:
            self._tidy_at_rest()
            return
        self._collections.end()
        if look_at_all() and self.screen_stack and self._here() is not None:
            # The remaining objects are lines of screens. They stay, and each collection would take longer
            # than the last. Objects of a dialog disappear with it.
            keep_what_there_is()

    def _await_first(self) -> None:
        """Take in the first exchanges as soon as they exist."""
        if not len(self.index) and self.ended is None:
            self._take_events()
        else:
            self._first_news.stop()

    def _take_events(self) -> None:
        if self._poll():
            for page in self._pages_shown():
                page.index_grew()

    def _tick(self) -> None:
        self._tidy_at_rest()
        if self.is_answering(self._looked_at):
            return
        self._looked_at = time.monotonic()
        self._take_events()
        if self.ended is not None:
            self._timer.stop()
            give_back_holes()

    def on_unmount(self) -> None:
        self._collections.end()
        if self.is_open:
            self.shown.close()
            self.statistics.close()
            self.judging.close()

    def _pages_shown(self) -> list[Page]:
        """The complete pages: a timer may go off while some are being made, or at the end."""
        if not self._running:
            return []
        return [each for each in self.screen_stack if isinstance(each, Page) and each.is_mounted]

    # -- the filter -----------------------------------------------------------------------------------

    def filter_by(self, text: str, near: int | None = None, note: str = "") -> None:
        before, page = self.shown.depth, self.pages["exchanges"]
        assert isinstance(page, ExchangesPage)
        self.shown.write(text)
        page.seek(near)
        order = page.order_of_list
        if self._jump("exchanges", before, order=order):
            page.order_as_usual()
        if note:
            page.note(note)

    def _filter_changed(self) -> None:
        for page in self._pages_shown():
            page.filter_changed()
        self._watch_filter()

    def _watch_filter(self) -> None:
        """Ask for results of the filter's second stage until it has finished."""
        if self._asking is None and self.shown.progress is not None:
            self._asking = self.set_interval(TICK_SECONDS, self._poll_filter)

    def _poll_filter(self) -> None:
        found = self.shown.poll()
        if self.shown.progress is None and self._asking is not None:
            self._asking.stop()
            self._asking = None
        for page in self._pages_shown():
            page.note_filter_progress(found)

    def action_page(self, name: str) -> None:
        here = self._here()
        if name in self.pages and here is not None and here != name:
            before = self.pages[here]
            self.pages[name].open_from(before.chosen_place(), before.chosen_time())
            self.way.turn(here, name)
            self.switch_screen(name)

    def _here(self) -> str | None:
        """The name of the shown screen; None while a dialog covers it."""
        return next((name for name, page in self.pages.items() if page is self.screen), None)

    def _jump(
        self, name: str, filters: int, to_tree: bool = False, order: tuple[str, bool] | None = None
    ) -> bool:
        """Follow a link on this screen to another one; return whether it is a different screen.

        :param filters: the number of filters before.
        :param order: the order of the list of exchanges before; the way back restores it.
        """
        here = self._here()
        if here is None or here == name:
            return False
        place = self.pages[here].chosen_place()
        self.way.jump(WayStep(here, True, place, filters, self.shown.depth, to_tree, order))
        self.switch_screen(name)
        return True

    def go_back(self) -> bool:
        step = self.way.back()
        if step is None:
            return self._back_to_differences()
        self.switch_screen(step.page)
        if step.order is not None:
            exchanges = self.pages["exchanges"]
            assert isinstance(exchanges, ExchangesPage)
            exchanges.order_by(*step.order)
        if step.is_jump:
            self.shown.pop_to(step.filters)
            page = self.pages[step.page]
            if isinstance(page, ExchangesPage) and step.place is not None:
                page.go_to(step.place)
        return True

    def _back_to_differences(self) -> bool:
        """End, if this is the first screen that the screen of differences opened; return whether it is."""
        if not self.settings.compared_as or self._here() != self.home:
            return False
        self.end_or_ask(WENT_BACK)
        return True

    # -- the end --------------------------------------------------------------------------------------

    def end_or_ask(self, code: int = 0) -> None:
        lost = self.unsaved()
        if not lost or self.is_asking:
            self.exit(return_code=code)
        elif isinstance(self.screen, Page):
            self.screen.show_message(
                f"{', '.join(lost)}: w saves, q {'goes back' if code else 'quits'} without saving"
            )
            self.is_asking = True

    def interrupt(self) -> None:
        lost = self.unsaved()
        if not lost or self.is_asking:
            super().interrupt()
        else:
            self.notify(f"{', '.join(lost)}: w saves, Ctrl-C ends without saving")
            self.is_asking = True

    def _before_other_input(self, event: Key | MouseDown | Paste) -> None:
        super()._before_other_input(event)
        if self.is_asking:
            found = self.screen.active_bindings.get(event.key) if isinstance(event, Key) else None
            self.is_asking = found is not None and found.binding.id in self._ending

    @property
    def _ending(self) -> tuple[str, ...]:
        """Actions that end the screens if there is nothing to go back to."""
        return ("out-or-end", "out") if self.settings.compared_as else ("out-or-end",)

    def on_key(self, event: Key) -> None:
        """A key that no pane used. If it works only on other screens, a line says so."""
        found = self.screen.active_bindings.get(event.key)
        if found is None or found.binding.id not in self._ending:
            self.is_asking = False
        if found is None and isinstance(self.screen, Page):
            label = self._labels.get(event.key)
            key = event.character if event.is_printable else event.key.replace("_", "-")
            nothing = f"{key} does nothing here; ? shows the keys"
            if label is None:
                self.screen.show_message(nothing)
            elif event.key in self._pane_keys and self.screen.query(DetailPanes):
                self.screen.show_message(f"{label}: only in the tree and the bytes; Enter goes there")
            else:
                self.screen.show_message(f"{label}: not on this screen")

    def on_mouse_down(self) -> None:
        self.is_asking = False

    @cached_property
    def _labels(self) -> dict[str, str]:
        """The labels of all keys."""
        return {key: label for place in _ELSEWHERE for key, label in self._labels_of(place).items()}

    @cached_property
    def _pane_keys(self) -> frozenset[str]:
        """Keys that work where the tree or the bytes have the focus."""
        return frozenset(self._labels_of("panes"))

    def _labels_of(self, place: str) -> dict[str, str]:
        """The labels of the keys in a place."""
        keys = dict(self.settings.keys)
        return {
            key: each.label for each in actions_of(place) for key in key_names(keys.get(each.id, each.keys))
        }

    def action_suspend_process(self) -> None:
        """Back to the shell, with all of the pipeline."""
        can = self._driver is not None and self._driver.can_suspend
        if can:
            self.app_suspend_signal.publish(self)
        if not (can and suspend()) and isinstance(self.screen, Page | Start):
            self.screen.show_message("there is no shell to go back to")

    def action_turn_page(self, step: int) -> None:
        names = [name for name in PAGES if name in self.pages]
        way = [self._here(), *(each.page for each in self.way.steps())]
        here = next((name for name in way if name in names), None)  # a story has no place among them
        self.action_page(names[(names.index(here) + step) % len(names)] if here else names[0])

    def titles(self) -> list[tuple[str, str, str]]:
        keys = {action.id: action.keys for action in ACTIONS} | dict(self.settings.keys)
        return [(name, keys[name].split()[0], title) for name, title in PAGES.items() if name in self.pages]

    def name_of(self, page: Screen[Any]) -> str:
        return next(name for name, each in self.pages.items() if each is page)

    def action_ladder(self) -> None:
        """Draw the story of this screen, or else the marked exchanges, or those of the client of the exchange
        under the cursor. On the ladder: draw the next of these."""
        ladder, here = self.pages["ladder"], self.screen
        assert isinstance(ladder, LadderPage)
        if isinstance(here, LadderPage):
            here.draw_next()
            return
        place = here.chosen_place() if isinstance(here, Page) else None
        ladder.draw(place, here.drawn() if isinstance(here, StoryPage) else None)
        self._jump("ladder", self.shown.depth)

    def action_story(self) -> None:
        """Show the story of the row under the cursor, or of its exchange: its causes and its effects."""
        story, here = self.pages["story"], self.screen
        assert isinstance(story, StoryPage)
        if not isinstance(here, Page):
            return
        subject = here.chosen_subject()
        exchange = self.chosen_exchange() if subject is None else None
        if subject is not None or exchange is not None:
            story.show_story_of(exchange, subject, here.chosen_time())
            self._jump("story", self.shown.depth)

    def chosen_exchange(self) -> Exchange | None:
        """The exchange under the cursor. Without one, return None, and say so in a line."""
        here = self.screen
        assert isinstance(here, Page)
        place = here.chosen_place()
        if place is None:
            here.show_message("there is no exchange under the cursor")
            return None
        return self.exchange_at(place)

    def exchange_at(self, place: int) -> Exchange | None:
        try:
            exchange = self.feed.exchange(self.index.value("place", place), self.index.value("length", place))
        except OSError as error:
            if isinstance(self.screen, Page):
                self.screen.show_message(f"the exchange cannot be read: {error.strerror or error}")
            return None
        exchange.topic_names = self.index.all_names()
        return exchange

    def open_story(self, subject: Subject) -> None:
        story = self.pages["story"]
        assert isinstance(story, StoryPage)
        story.show_story_of(None, subject)
        self._jump("story", self.shown.depth)

    def show_exchange(self, place: int, *, to_tree: bool = False) -> None:
        page, before = self.pages["exchanges"], self.shown.depth
        assert isinstance(page, ExchangesPage)
        page.uncover(place)
        self._jump("exchanges", before, to_tree)
        page.go_to(place)

    def go_to(self, target: Destination) -> None:
        place = place_of(target, self.index)
        if place is not None:
            self.show_exchange(place)
        elif isinstance(self.screen, Page):
            self.screen.show_message(nothing_at(target))

    @property
    def tables(self) -> Sequence[str]:
        return tuple(STATISTICS) if self.pages else ()

    def show_table(self, name: str) -> None:
        """The screen that shows the table, if that is not the screen of facts."""
        pages = ((key, each) for key, each in self.pages.items() if isinstance(each, StatisticsPage))
        page = next((key for key, each in pages if key != "facts" and name in each.names), "facts")
        self.action_page(page)
        shown = self.pages[page]
        assert isinstance(shown, StatisticsPage)
        shown.show_table(name)

    def show_help(self, topic: str) -> None:
        self.push_screen(HelpPage(topic))

    def act_on(self, page: str, action: str) -> None:
        self.action_page(page)
        shown = self.pages[page]

        async def act() -> None:
            for node in (shown, *shown.query("*")):
                for key in node._bindings.key_to_bindings.values():
                    for binding in key:
                        if binding.id == action:
                            if node.can_focus:
                                shown.set_focus(node)
                            await self.run_action(binding.action, node)
                            return

        shown.call_after_refresh(act)

    def action_ask_where(self) -> None:
        """Ask for a number, a packet or a time, and go there."""

        def given(text: str | None) -> None:
            if text is None:
                return
            target = next(targets(text), None)
            if target is not None:
                self.go_to(target)
            elif isinstance(self.screen, Page):
                self.screen.show_message("this is neither a number nor a time: 43, p43, 2.5s")

        self.push_screen(
            Ask("Go to", "43: exchange or packet, p43: packet, 2.5s: time since the start"), given
        )

    def action_save_exchanges(self) -> None:
        """Go to the list of exchanges, and ask which of them to save."""
        page = self.pages["exchanges"]
        assert isinstance(page, ExchangesPage)
        self.action_page("exchanges")
        page.call_after_refresh(page.action_save)

    def action_compare(self) -> None:
        """Copy the command that compares this capture with another. The screens cannot open two captures
        otherwise."""
        if isinstance(self.screen, Page):
            paths = self.feed.source.paths
            if self.feed.source.is_live or len(paths) != 1 or not os.path.exists(paths[0]):
                self.screen.show_message(
                    "kdissect diff BEFORE AFTER compares two files: save this capture first (w)"
                )
                return
            text = f"{shlex.join(['kdissect', 'diff', os.path.abspath(paths[0])])} AFTER"
            self.copy_to_clipboard(text)
            self.screen.show_message(f"copied: {text}")

    def action_help(self) -> None:
        here = self._here() or ""
        self.push_screen(Help(help_of(self.screen), ABOUT.get(here, ()), READ_SO.get(here, ())))
