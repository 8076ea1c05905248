"""The lines at the edges of a screen: the names of pages or panes, and the keys at its foot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import ActiveBinding
from textual.containers import Vertical
from textual.keys import key_to_character
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer

from kdissect.present.paragraphs import fold_text
from kdissect.settings.places import SHORT_TITLES
from kdissect.tui.colors import Legible
from kdissect.tui.widgets.adapted import LegibleText
from kdissect.tui.widgets.table import VirtualTable


class Tabs(Legible):
    """The line.

    :param titles: name, key and title of each screen, in their order.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tabs--here", "tabs--other"}
    DEFAULT_CSS = """
    Tabs { height: 1; background: $surface; }
    Tabs .tabs--here { background: $surface; color: $foreground; text-style: bold reverse; }
    Tabs .tabs--other { background: $surface; color: $text-muted; }
    """

    class Chosen(Message):
        """A title was clicked."""

        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__()

    def __init__(self, titles: Sequence[tuple[str, str, str]], here: str) -> None:
        super().__init__()
        self._titles = titles
        self._here = here

    def turn(self, here: str) -> None:
        """Show another title as chosen."""
        self._here = here
        self.refresh()

    def _texts(self) -> list[tuple[str, str]]:
        """The name and the text of each title. If there is not room for all, some are shortened. If that is
        not enough, only the title of the shown screen remains."""
        for apart in ("  ", " "):
            texts = [(name, f" {key} {title}{apart[1:]}") for name, key, title in self._titles]
            if sum(len(text) for _, text in texts) <= self.size.width:
                return texts
        texts = [(name, f" {key} {SHORT_TITLES.get(title, title)}") for name, key, title in self._titles]
        if sum(len(text) for _, text in texts) <= self.size.width:
            return texts
        return [
            (name, f" {key} {title} " if name == self._here else f" {key} ")
            for name, key, title in self._titles
        ]

    def render_line(self, y: int) -> Strip:
        here = self.get_component_rich_style("tabs--here")
        other = self.get_component_rich_style("tabs--other")
        segments = [Segment(text, here if name == self._here else other) for name, text in self._texts()]
        return Strip(segments).adjust_cell_length(self.size.width, other)

    def on_click(self, event: events.Click) -> None:
        left = event.x
        for name, text in self._texts():
            if left < len(text):
                self.post_message(self.Chosen(name))
                return
            left -= len(text)


class OneLine(LegibleText):
    """A line of text with a fixed place, whatever its text: otherwise Textual would lay out the whole screen
    again for each text."""

    DEFAULT_CSS = """
    OneLine { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, markup=False)
        self._text = Text()

    def show(self, text: Text) -> None:
        """Write a text, if it has changed."""
        if text != self._text or text.style != self._text.style:
            self._text = text
            self.update(text, layout=False)


class StatusLine(OneLine):
    """The line at the top. A click on it shows all commands, as the key ``:`` does."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self.tooltip = "a click shows all commands"

    def on_click(self) -> None:
        self.app.action_command_palette()


class SaidLine(OneLine):
    """Messages about actions, or about the object under the cursor. If one line has no room for all, there
    are more."""

    DEFAULT_CSS = """
    SaidLine { height: auto; max-height: 3; }
    """
    MOST_LINES = 3

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._said, self._lines = "", 1

    def say(self, text: str) -> None:
        """Write a text; sanitised."""
        self._said = text
        room = self.app.size.width - 1
        lines = [text] if cell_len(text) <= room else fold_text(text, room)
        if len(lines) > self.MOST_LINES:
            lines = [*lines[: self.MOST_LINES - 1], " ".join(lines[self.MOST_LINES - 1 :])]
        if len(lines) != self._lines:  # Textual lays out the whole screen again
            self.styles.height = self._lines = len(lines)
        self.show(Text("\n".join(f" {line}" for line in lines)))

    def on_resize(self) -> None:
        self.say(self._said)


class PaneLine(Legible):
    """The line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"pane-line--here", "pane-line--other"}
    DEFAULT_CSS = """
    PaneLine { height: 1; background: $panel; }
    PaneLine .pane-line--here { background: $panel; color: $foreground; text-style: bold reverse; }
    PaneLine .pane-line--other { background: $panel; color: $text-muted; }
    """

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__()

    def __init__(self) -> None:
        super().__init__()
        self._tabs: Sequence[tuple[str, str]] = ()
        self._here = ""
        self._bytes = ""

    def show(self, tabs: Sequence[tuple[str, str]], here: str, data: str) -> None:
        """Show names and titles of tabs, one of them highlighted, and the kind of the bytes; sanitised."""
        self._tabs, self._here, self._bytes = tabs, here, data
        self.refresh()

    def render_line(self, y: int) -> Strip:
        here = self.get_component_rich_style("pane-line--here")
        other = self.get_component_rich_style("pane-line--other")
        segments = [
            Segment(f" {title} ", here if name == self._here else other) for name, title in self._tabs
        ]
        left = self.size.width - sum(cell_len(segment.text) for segment in segments)
        if left > 1 and self._bytes:
            text = set_cell_size(self._bytes, min(cell_len(self._bytes), left - 1))
            segments.append(Segment(" " * (left - cell_len(text)) + text, other))
        return Strip(segments).adjust_cell_length(self.size.width, other)

    def on_click(self, event: events.Click) -> None:
        left = event.x
        for name, title in self._tabs:
            width = cell_len(title) + 2
            if left < width:
                self.post_message(self.Chosen(name))
                return
            left -= width


COMMON = "save", "app.story", "filter"
"""Actions of most screens. If there is no room, the footer leaves them out in this order."""


ALL_KEYS = "All keys"
"""The text of the help key if the footer leaves keys out."""


class FooterKey(NamedTuple):
    """A key of the footer."""

    key: str
    """The key's name in Textual."""
    text: str
    """The key's text in the footer."""
    what: str
    """The word for its effect."""
    action: str
    help: str
    enabled: bool

    @property
    def cells(self) -> int:
        """The cells of the key with its word, and the blanks around them."""
        return cell_len(self.text) + cell_len(self.what) + 3


class Foot(Vertical):
    """Messages, and the keys: always at the bottom, however little room there is for the rest."""

    DEFAULT_CSS = """
    Foot { dock: bottom; height: auto; }
    Foot #first { background: $panel; color: $foreground; text-style: bold; }
    """
    FIRST_SECONDS = 15
    """How long the message at the beginning can be read."""

    _until: Timer | None = None
    """The timer until the message of :meth:`show_message_first` goes."""

    def compose(self) -> ComposeResult:
        yield SaidLine(id="where")
        yield KeysFooter()

    def show_message_first(self, text: str) -> None:
        """Write a message above all other lines, for long enough to read it."""
        found = self.query("#first")
        line = found.first(SaidLine) if found else SaidLine(id="first")
        if not found:
            self.mount(line, before=0)
        line.say(text)
        if self._until is not None:
            self._until.stop()
        self._until = self.set_timer(self.FIRST_SECONDS, line.remove)

    def forget_first(self) -> None:
        """Remove that message: it is not true any more."""
        self.query("#first").remove()


def _character_of(key: str) -> str | None:
    """The character that a key writes, if any. Textual does not know the slash, which Unicode calls
    solidus."""
    return "/" if key == "slash" else key_to_character(key)


def _is_of_empty(active: ActiveBinding) -> bool:
    """Whether a key opens a row, and the list has none."""
    is_open = active.binding.id == "open"
    return is_open and isinstance(active.node, VirtualTable) and not len(active.node.rows)


class KeysFooter(Legible):
    """The keys that work here; a click on one is the same as the key. If there is no room for all, keys that
    most screens have are left out first. Then the last ones are left out, except the very last, which opens
    the help. That one then says that there are more.

    Textual's own footer has a widget for each key, and makes all of them again when one changes. That was
    half of the time to another screen.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key", "keys--what"}
    DEFAULT_CSS = """
    KeysFooter { height: 1; background: $footer-background; }
    KeysFooter .keys--key { background: $footer-background; color: $footer-key-foreground; text-style: bold; }
    KeysFooter .keys--what { background: $footer-background; color: $footer-description-foreground; }
    KeysFooter:light .keys--key { color: $foreground; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[FooterKey, ...] = ()
        self._under_mouse: FooterKey | None = None

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[Any]) -> None:
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self.call_after_refresh(self._look)

    def on_resize(self) -> None:
        if self._keys:  # before, no keys are known
            self._look()  # with more room, the words may be others

    def _look(self) -> None:
        """Update the keys."""
        if not self.is_attached:
            return
        found: dict[str, FooterKey] = {}
        field = self.screen.focused
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if field is not None and field.check_consume_key(binding.key, _character_of(binding.key)):
                continue  # the field takes it as text
            if _is_of_empty(active):
                continue
            if binding.show and binding.action not in found:
                text = self.app.get_key_display(binding)
                what, help_text = binding.description, active.tooltip
                key = FooterKey(binding.key, text, what, binding.action, help_text, active.enabled)
                found[binding.action] = key
        keys = tuple(found.values())
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    @property
    def keys(self) -> Sequence[FooterKey]:
        """The keys for which there is room."""
        kept = list(self._keys)
        while len(kept) > 2 and sum(each.cells for each in kept) > self.size.width:
            known = (each for action in COMMON for each in kept if each.action == action)
            kept.remove(next(known, kept[-2]))
            if kept[-1].action == "help":
                kept[-1] = kept[-1]._replace(what=ALL_KEYS)
        return kept

    def render_line(self, y: int) -> Strip:
        key, what = (self.get_component_rich_style(f"keys--{each}") for each in ("key", "what"))
        segments: list[Segment] = []
        for each in self.keys:
            more = Style(dim=not each.enabled or None, underline=each == self._under_mouse or None)
            segments += (
                Segment(f" {each.text} ", key + Style(dim=more.dim)),
                Segment(each.what, what + more),
                Segment(" ", what),
            )
        return Strip(segments).adjust_cell_length(self.size.width, what)

    # -- the mouse ------------------------------------------------------------------------------------

    def _at(self, x: int) -> FooterKey | None:
        for each in self.keys:
            if x < each.cells:
                return each
            x -= each.cells
        return None

    def _points_at(self, key: FooterKey | None) -> None:
        if key != self._under_mouse:
            self._under_mouse = key
            self.tooltip = key.help if key is not None else None
            self.refresh()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._points_at(self._at(event.x))

    def on_leave(self) -> None:
        self._points_at(None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        key = self._at(event.x)
        if key is not None and key.enabled:
            self.app.simulate_key(key.key)
