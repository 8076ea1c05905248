"""The pages of ``kdissect help`` on the screen: a list of them, and one to scroll through."""

from __future__ import annotations

from typing import ClassVar

from rich.markdown import Markdown
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from kdissect.help import TOPICS, page, title


class Topics(ModalScreen[None]):
    """The list of pages. Enter opens one."""

    DEFAULT_CSS = """
    Topics { align: center middle; }
    Topics OptionList { width: 60; max-width: 95%; height: auto; max-height: 90%; border: round $primary;
        background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Back", show=False),
        Binding("j", "move('down')", show=False),
        Binding("k", "move('up')", show=False),
    ]

    def compose(self) -> ComposeResult:
        width = max(map(len, TOPICS))
        options = OptionList(*(Option(Text(f"{each:<{width}}  {title(each)}"), id=each) for each in TOPICS))
        options.border_title = "Help"
        yield options

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.app.push_screen(HelpPage(str(event.option.id)))

    def action_move(self, where: str) -> None:
        getattr(self.query_one(OptionList), f"action_cursor_{where}")()


class HelpPage(ModalScreen[None]):
    """One page.

    :param topic: one of :data:`kdissect.help.TOPICS`.
    """

    DEFAULT_CSS = """
    HelpPage { align: center middle; }
    HelpPage VerticalScroll { width: 116; max-width: 98%; height: 95%; background: $panel;
        border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "Back", show=False),
        Binding("j", "scroll('down')", show=False),
        Binding("k", "scroll('up')", show=False),
        Binding("space", "scroll('page_down')", show=False),
        Binding("g", "scroll('home')", show=False),
        Binding("G", "scroll('end')", show=False),
    ]

    def __init__(self, topic: str) -> None:
        super().__init__()
        self._topic = topic

    def compose(self) -> ComposeResult:
        with VerticalScroll() as scroll:
            scroll.border_title = f"kdissect help {self._topic}"
            yield Static(Markdown(page(self._topic)))

    def action_scroll(self, where: str) -> None:
        getattr(self.query_one(VerticalScroll), f"scroll_{where}")(animate=False)
