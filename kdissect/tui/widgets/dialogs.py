"""Small screens over the others: help, what to copy, where to save."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

KEYS = (
    ("↑ ↓ j k PgUp PgDn", "move"),
    ("g G  Home End", "first, last"),
    ("Enter", "into the exchange, connection, error"),
    ("Esc q", "one level out; q on the list ends"),
    ("Tab Shift-Tab", "next, previous pane"),
    ("1 2 6", "exchanges, connections, errors and faults"),
    ("e E", "next, previous exchange with an error or fault"),
    ("s S", "order by the next column; turn the order round"),
    ("f", "only this connection; Esc for all again"),
    ("F", "follow: stay at the last exchange"),
    ("t", "times: relative, of day, UTC, since the epoch"),
    ("x", "bytes on and off; where narrow, tree or bytes"),
    ("\\", "only this pane; again for all"),
    ("+ -", "more, less room for the list"),
    ("← → h l", "shut, open in the tree; byte before, after"),
    ("y", "copy value, path, JSON or hex"),
    ("w", "save what is shown: .pcapng, .ndjson, .csv"),
    ("Ctrl-p", "all commands, themes"),
    ("?", "this help"),
)
"""Keys and what they do."""


class Help(ModalScreen[None]):
    """The keys."""

    DEFAULT_CSS = """
    Help { align: center middle; }
    Help VerticalScroll { width: 76; max-width: 95%; height: auto; max-height: 90%;
        background: $panel; border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "Back", show=False)
    ]

    def compose(self) -> ComposeResult:
        text = Text()
        for keys, what in KEYS:
            text.append(f"{keys:<19}", "bold")
            text.append(f"{what}\n")
        text.append("\n✗ error  ! fault  ◐ cut  ∅ one side is not in the capture  … no response yet")
        with VerticalScroll():
            yield Static(text, markup=False)


class Choose(ModalScreen[str | None]):
    """One of several words."""

    DEFAULT_CSS = """
    Choose { align: center middle; }
    Choose OptionList { width: 32; height: auto; border: round $primary; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Back", show=False),
    ]

    def __init__(self, title: str, words: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._words = words

    def compose(self) -> ComposeResult:
        options = OptionList(*(Option(Text(word), id=word) for word in self._words), markup=False)
        options.border_title = self._title
        yield options

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)


class Ask(ModalScreen[str | None]):
    """A line of text."""

    DEFAULT_CSS = """
    Ask { align: center middle; }
    Ask Vertical { width: 70; max-width: 95%; height: auto; border: round $primary; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Back", show=False)]

    def __init__(self, title: str, hint: str) -> None:
        super().__init__()
        self._title = title
        self._hint = hint

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            yield Input(placeholder=self._hint)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)
