"""The application as screens see it: the capture, the filter, the marks, the ways to other screens.

:class:`~kdissect.tui.app.Kdissect` is the one application. Screens and widgets use it as a :class:`Host`, so
    that they need not import their importers.

There are two kinds of steps on the way through the screens. A *turn* goes to a screen by its number or name.
The way back leads to the screen before, and the filter is not changed. A *jump* follows a link: to a row's
exchanges, a record's exchange, the ladder of an exchange. The way back leads to the screen before with its
filter and its exchange. A turn to a screen that is already on the way goes back to it, so that repeated turns
make no long way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from textual.screen import Screen

from kdissect.exchange import Exchange
from kdissect.faults import KINDS, fault, is_unread
from kdissect.feed.batches import CountedFault, Ended, Feed, FeedBatch
from kdissect.feed.coloring import Coloring
from kdissect.feed.field_values import FieldValues
from kdissect.feed.filtering import Shown
from kdissect.feed.frame_time import MOST_BYTES, FrameTime
from kdissect.feed.index import Index
from kdissect.feed.statistics import Statistics
from kdissect.feed.stories import Subject
from kdissect.feed.targets import Destination, numbered, place_of
from kdissect.present.form import plural
from kdissect.present.no_kafka import NoKafka
from kdissect.present.options import Options
from kdissect.present.sanitise import sanitise
from kdissect.settings.remembered import Remembered
from kdissect.settings.screens import Settings
from kdissect.tui.defects import QuietApp
from kdissect.tui.marks import Marks

ANSWER_SECONDS = 0.05
"""How long after a key news wait, so that the frame with its effect comes first."""
MOST_WAIT_SECONDS = 0.5
"""How long news wait at most, if one key follows the other."""
MOST_STEPS = 100
"""The most steps that are kept. The oldest are forgotten first."""


class WayStep(NamedTuple):
    """A screen that the user left."""

    page: str
    """The screen's name."""
    is_jump: bool
    place: int | None = None
    """The place of the exchange that was under its cursor."""
    filters: int = 0
    """The number of filters below the current one before a jump."""
    filters_there: int = 0
    """The same number after the jump."""
    to_tree: bool = False
    """Whether the jump led to a line of a tree, not of a list."""
    order: tuple[str, bool] | None = None
    """The order of the list of exchanges before the jump, if the jump gave it its usual one."""


class WayBack:
    """The steps, in their order."""

    def __init__(self) -> None:
        self._steps: list[WayStep] = []

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def last(self) -> WayStep | None:
        """The step that led to the shown screen."""
        return self._steps[-1] if self._steps else None

    def steps(self) -> Iterator[WayStep]:
        """The steps, the last one first."""
        return reversed(self._steps)

    def turn(self, here: str, there: str) -> None:
        """Note a turn from one screen to another, by their names."""
        names = [step.page for step in self._steps]
        if there in names:
            del self._steps[names.index(there) :]
        else:
            self._add(WayStep(here, is_jump=False))

    def jump(self, step: WayStep) -> None:
        """Note a jump from a screen."""
        self._add(step)

    def _add(self, step: WayStep) -> None:
        self._steps = [*self._steps, step][-MOST_STEPS:]

    def back(self) -> WayStep | None:
        """Take the last step back; None if no step was taken."""
        return self._steps.pop() if self._steps else None


CAPTURE = "-i"
"""The beginning of the text for interfaces instead of a path: ``-i eth0``, ``-i eth0 -f 'tcp port 9092'``."""


def is_of_interfaces(typed: str) -> bool:
    """Whether the typed text means interfaces, not a path."""
    return typed.split(maxsplit=1)[:1] == [CAPTURE]


class Opener(Protocol):
    """Begins to decode the chosen input. The program that starts the screens decides how."""

    def file(self, path: str) -> Feed:
        """Open a capture in a file.

        :raises CaptureError: it cannot be read.
        """

    def interfaces(self, words: str) -> Feed:
        """Capture packets of interfaces from now on.

        :param words: options as on the command line, ``-i`` first.
        :raises CaptureError: capturing there is not possible; the text has one line.
        """


_STOPPED = "file", "unreadable"
"""Layer and kind of the fault that means that reading stopped before the end of the files."""


OF_FILES = "not-a-capture", "unreadable"
"""Kinds of faults that leave a file unread."""


def _faults_text(found: CountedFault) -> str:
    """Faults of one kind in a line."""
    first, more = found.first, found.number - 1
    place = "" if first.offset is None else f" (at byte {first.offset:,})"
    return f"{sanitise(first.message, None)}{place}{f'; and {more:,} more' if more else ''}"


class Host(QuietApp):
    """The application, as its screens see it."""

    feed: Feed
    shown: Shown
    """The display filter."""
    coloring: Coloring
    """The rules that colour rows."""
    field_values: FieldValues
    """The values of fields that the list of exchanges has as columns."""
    frame_time: FrameTime
    """The time that both may take while rows are drawn."""
    statistics: Statistics
    """Statistics of the shown exchanges."""
    judging: Statistics
    """Findings of the whole capture: a filter would hide their causes."""

    pages: Mapping[str, Screen[None]]
    """The numbered screens, by name."""
    home: str
    """The first screen."""

    def __init__(
        self, feed: Feed | None, options: Options, settings: Settings, remembered: Remembered
    ) -> None:
        super().__init__()
        self.settings, self.options, self.remembered = settings, options, remembered
        """Settings, options, and what is remembered: the used and the saved filters."""
        self.columns = settings.columns or settings.before.columns
        """The columns of the list of exchanges. If empty, the list has as many as there is room for."""
        self.marks = Marks()
        self.way = WayBack()
        self.index = Index()
        self.ended: Ended | None = None
        self._saved = 0
        """The number of exchanges that were saved with their packets."""
        self.touched_at = 0.0
        """The time of the last key or mouse event, by :func:`time.monotonic`."""
        self.is_asking = False
        """Whether the screen warned of unsaved data after the last key. Until the next key, other messages
        are not shown."""
        self.is_open = False
        """Whether a capture is shown."""
        self.first_words: str | None = None
        """The message of the first page in the first seconds, in its own line, so that it covers nothing."""
        if feed is not None:
            self.take(feed)

    # -- the capture ----------------------------------------------------------------------------------

    def take(self, feed: Feed) -> None:
        """Show the exchanges of a feed."""
        self.feed = feed
        self.shown = Shown(self.index, feed, self.options, self._filter_changed, self.settings.slow_ms)
        self.frame_time = FrameTime()
        self.coloring = Coloring(
            *(self.index, self._read, self.shown.compiled, self.settings.coloring), frame_time=self.frame_time
        )
        self.field_values = FieldValues(
            self._read, self.options, self.frame_time, lambda: len(self.index.topic_names)
        )
        self.statistics = Statistics(self.index, feed, self.shown)
        self.judging = Statistics(self.index, feed, None, self.settings.rules)
        self.is_open = True

    def _read(self, place: int) -> Exchange | None:
        """The exchange at a place of the index, for drawing a row; None if it is so large that keys would
        wait.

        :raises OSError: it cannot be read.
        """
        length = self.index.value("length", place)
        if length > MOST_BYTES:
            return None
        exchange = self.feed.exchange(self.index.value("place", place), length)
        exchange.topic_names = self.index.all_names()
        return exchange

    def _filter_changed(self) -> None:
        """Tell the pages that other exchanges are shown."""
        raise NotImplementedError

    def take_in(self) -> bool:
        """Take in new exchanges; returns whether there were any."""
        messages = self.feed.poll()
        for message in messages:
            if isinstance(message, FeedBatch):
                self.index.add(message)
                self.marks.note_found(message.comments)
            else:
                self.ended = message
                if message.reason is not None:  # for the judging process, as damage of the file is
                    self.index.add_faults({_STOPPED: CountedFault(1, fault(_STOPPED[1], message.reason))})
        return bool(messages)

    def key_logs_of(self, exchange: Exchange) -> Sequence[str] | None:
        """The given key logs, if the connection of an exchange is TLS; else None."""
        index, number = self.index, exchange.connection
        row = index.going_on.get(number) or index.connections.get(number)
        return None if row is None or row.tls is None else self.feed.source.key_log_paths

    def why_nothing(self) -> list[str]:
        """The reasons for having no exchange in the capture, in some lines. Empty if there is one, or if that
        is not known yet. A live capture itself shows why nothing comes."""
        index = self.index
        dark = [each for each in index.going_on.values() if (each.tls or {}).get("dark")]
        if len(index):
            return []
        if self.ended is None and not dark:
            return [] if self.feed.silence is None else [self.feed.silence]
        if self.ended is not None and self.ended.reason is not None:
            return []  # it was not read to its end, which is shown: the rest may hold Kafka
        if not index.packets and self.unread():
            return []
        found = NoKafka()
        for each in (*index.connections.values(), *dark):
            found.add(each)
        return found.lines(index.packets)

    def unread(self, kinds: Container[str] = KINDS) -> list[str]:
        """The unreadable parts of the files, a line for each kind of fault; sanitised.

        :param kinds: the kinds of faults.
        """
        found = (each for each in self.index.faults.values() if each.first.kind in kinds)
        return [_faults_text(each) for each in found if is_unread(each.first)]

    def why_stopped(self) -> list[str]:
        """The reasons for having nothing, or nothing more, to show from a file, in some lines; sanitised.
        Empty if all files were read to their end, or only a part of one is damaged."""
        index, ended = self.index, self.ended
        if ended is not None and ended.reason is not None:
            return [f"stopped: {sanitise(ended.reason, None)}"]
        if ended is None or len(index):
            return self.unread(OF_FILES)
        unread = self.unread()
        if unread and not index.packets:
            unread[0] = f"nothing could be read: {unread[0]}"
        return unread

    def is_answering(self, waiting_since: float) -> bool:
        """Whether news should wait, because a key came just now.

        :param waiting_since: the time of the news before, by :func:`time.monotonic`. News do not wait for
            longer than :data:`MOST_WAIT_SECONDS`.
        """
        now = time.monotonic()
        return now < self.touched_at + ANSWER_SECONDS and now < waiting_since + MOST_WAIT_SECONDS

    def share(self) -> str:
        """The share that is read; unknown for compressed files."""
        if self.feed.source.is_live:
            return "live"
        total = self.feed.source.bytes_in_all
        read = self.index.bytes_read
        return f"{100 * read // total} %" if 0 < read <= total else "reading"

    def unsaved(self) -> list[str]:
        """The data that is lost at the end."""
        lost, comments = [], len(self.marks.unsaved)
        if self.is_open and self.feed.source.is_live and self._saved < len(self.index):
            lost.append("the live capture is not saved")
        if comments:
            lost.append(f"{plural(comments, 'comment')} {'is' if comments == 1 else 'are'} not saved")
        return lost

    def note_saved(self, comments: Mapping[int, str], numbers: Sequence[int]) -> None:
        """Note that the packets of exchanges were saved, with these comments."""
        self._saved = max(self._saved, len(numbers))
        self.marks.note_saved(comments, numbers)

    def call_from_thread(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that shows a worker's result, unless the screens end: then the panes that it needs
        may be gone."""

        def unless_at_end() -> Any:
            return callback(*args, **kwargs) if self._running else None

        return super().call_from_thread(unless_at_end)

    # -- the ways to other screens --------------------------------------------------------------------

    def open(self, chosen: str) -> str | None:
        """Show a capture, or packets of interfaces (``-i …``); return the reason if that is not possible."""
        raise NotImplementedError

    def titles(self) -> list[tuple[str, str, str]]:
        """Name, key and title of all screens."""
        raise NotImplementedError

    def name_of(self, page: Screen[Any]) -> str:
        """The name of one of the screens."""
        raise NotImplementedError

    def is_home(self, page: Screen[Any]) -> bool:
        """Whether a screen is the one that is shown first."""
        return self.pages.get(self.home) is page

    def action_page(self, name: str) -> None:
        """Show one of the screens."""
        raise NotImplementedError

    def action_turn_page(self, step: int) -> None:
        """Show the screen after this one (1), or before it (-1)."""
        raise NotImplementedError

    @property
    def is_outermost(self) -> bool:
        """Whether there is no screen to go back to, not even the screen of differences."""
        return not len(self.way) and not self.settings.compared_as

    @property
    def first_filters(self) -> int:
        """The number of filters that the screen of differences set when it opened the exchanges."""
        return int(bool(self.settings.compared_as and self.settings.filter))

    def go_back(self) -> bool:
        """Show the screen before this one; return whether there was one."""
        raise NotImplementedError

    def filter_by(self, text: str, near: int | None = None, note: str = "") -> None:
        """Set a filter and show the exchanges that match it; Escape there goes back to the filter before. If
        another screen leads there, the list is in the order of time.

        :param near: the place in the index of the exchange to which the cursor goes, or to the next one.
        :param note: what the user must know about the filter; empty for nothing.
        :raises FilterError: the text is no filter.
        """
        raise NotImplementedError

    def show_exchange(self, place: int, *, to_tree: bool = False) -> None:
        """Show the exchange at a place of the index.

        :param to_tree: whether to show a line of its tree.
        """
        raise NotImplementedError

    def go_to(self, target: Destination) -> None:
        """Show the requested exchange, or say that it does not exist."""
        raise NotImplementedError

    def go_to_number(self, number: int) -> None:
        """Show the exchange with a number."""
        self.go_to(numbered(number))

    def place_of(self, number: int) -> int | None:
        """The place in the index of the exchange with a number; None if no exchange has it."""
        return place_of(numbered(number), self.index)

    def chosen_exchange(self) -> Exchange | None:
        """The exchange under the cursor. Without one, return None, and say so in a line."""
        raise NotImplementedError

    def exchange_at(self, place: int) -> Exchange | None:
        """The exchange at a place of the index; None, and a message, if it cannot be read."""
        raise NotImplementedError

    @property
    def tables(self) -> Sequence[str]:
        """The names of the statistics that a screen shows."""
        raise NotImplementedError

    def show_table(self, name: str) -> None:
        """Show the rows of one of :attr:`tables`."""
        raise NotImplementedError

    def show_help(self, topic: str) -> None:
        """Show a page of the help."""
        raise NotImplementedError

    def act_on(self, page: str, action: str) -> None:
        """Show a screen, and run an action of it there.

        :param action: its name in the table of actions.
        """
        raise NotImplementedError

    def open_story(self, subject: Subject) -> None:
        """Show the story of a subject."""
        raise NotImplementedError

    def end_or_ask(self, code: int = 0) -> None:
        """End with this exit code, if nothing is lost or the previous key already warned of the loss."""
        raise NotImplementedError
