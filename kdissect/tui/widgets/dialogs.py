"""Small screens over the others: questions, the keys of a screen, and the pages of ``kdissect help``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeVar

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Click, Key
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from kdissect.help import TOPICS, page, title
from kdissect.present.compared import FIRST, LEFT_OUT, SAME, SECOND, ComparedLine
from kdissect.present.form import plural
from kdissect.present.help_tables import HELP_TABLES
from kdissect.present.sanitise import sanitise
from kdissect.tui.widgets.adapted import LegibleInput, LegibleOptions, LegibleText

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer]):
    """A small screen that is left only once: the next key may come before it has closed. A click beside it
    leaves it without an answer."""

    def on_click(self, event: Click) -> None:
        if self.get_widget_at(event.screen_x, event.screen_y)[0] is self:
            self.dismiss()

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        if self.is_current:
            return super().dismiss(result)
        return AwaitComplete()


class HelpTopics(Dialog[None]):
    """The list of pages. Enter opens one."""

    DEFAULT_CSS = """
    HelpTopics { align: center middle; }
    HelpTopics OptionList { width: 60; max-width: 95%; height: auto; max-height: 90%; border: round $primary;
        background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Back", show=False),
        Binding("j", "move('down')", show=False),
        Binding("k", "move('up')", show=False),
    ]

    def compose(self) -> ComposeResult:
        width = max(map(len, TOPICS))
        options = LegibleOptions(
            *(Option(Text(f"{each:<{width}}  {title(each)}"), id=each) for each in TOPICS)
        )
        options.border_title = "Help"
        yield options

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.app.push_screen(HelpPage(str(event.option.id)))

    def action_move(self, where: str) -> None:
        getattr(self.query_one(OptionList), f"action_cursor_{where}")()


class HelpPage(Dialog[None]):
    """One page.

    :param topic: one of :data:`kdissect.help.TOPICS`.
    """

    DEFAULT_CSS = """
    HelpPage { align: center middle; }
    HelpPage VerticalScroll { width: 116; max-width: 98%; height: 95%; background: $panel;
        border: round $primary; border-title-color: $foreground; padding: 0 1; }
    HelpPage LegibleText { min-width: 24; }
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
        from rich.markdown import Markdown  # with its parsers, which the first screen should not wait for

        with VerticalScroll() as scroll:
            scroll.border_title = f"kdissect help {self._topic}"
            yield LegibleText(Markdown(page(self._topic, HELP_TABLES)))

    def action_scroll(self, where: str) -> None:
        getattr(self.query_one(VerticalScroll), f"scroll_{where}")(animate=False)


SIGNS = (
    "✗ error  ! fault  ◐ cut  ∅ one side is not in the capture  … no response yet  ◷ slow  ★ marked  "
    "✎ comment  ▪ on the scroll bar: errors or faults there"
)

KEYS_CELLS = 18
"""The cells for the keys of an action, with its effect beside them."""


def _aligned(rows: Sequence[tuple[str, str]]) -> Table:
    """Keys with their effects; further lines of an effect are indented like its first."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(style="bold", width=KEYS_CELLS)
    table.add_column(ratio=1)
    for keys, what in rows:
        table.add_row(Text(keys), Text(what))
    return table


_DOCUMENTATION = (
    "Documentation",
    [("d", "the pages of kdissect help (or a click here)"), ("/", "search for a command, and run it")],
)


class Help(Dialog[None]):
    """The keys of the focused widget, in parts.

    :param parts: heading, and keys with their effects.
    :param about: the purpose of the screen, in some lines.
    :param read_so: how to read its figures.
    """

    DEFAULT_CSS = """
    Help { align: center middle; }
    Help VerticalScroll { width: 76; max-width: 95%; height: auto; max-height: 90%;
        background: $panel; border: round $primary; padding: 0 1; }
    Help .heading { margin-top: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter,f1", "dismiss", "Back", show=False),
        Binding("j", "scroll('down')", show=False),
        Binding("k", "scroll('up')", show=False),
        Binding("g", "scroll('home')", show=False),
        Binding("G", "scroll('end')", show=False),
        Binding("d", "topics", show=False),
        Binding("slash,colon", "commands", show=False),
    ]

    def __init__(
        self,
        parts: Sequence[tuple[str, Sequence[tuple[str, str]]]],
        about: Sequence[str] = (),
        read_so: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._about, self._read_so = about, read_so
        self._parts = parts

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            if self._about:
                yield LegibleText("\n".join(self._about), markup=False)
            for heading, rows in (_DOCUMENTATION, *self._parts):
                name = "documentation" if heading == _DOCUMENTATION[0] else None
                yield LegibleText(Text(heading, "bold underline"), markup=False, classes="heading")
                yield LegibleText(_aligned(rows), id=name)
            for text in (*self._read_so, SIGNS):
                yield LegibleText(text, markup=False, classes="heading")

    def action_scroll(self, where: str) -> None:
        getattr(self.query_one(VerticalScroll), f"scroll_{where}")(animate=False)

    def on_click(self, event: Click) -> None:
        if self.get_widget_at(event.screen_x, event.screen_y)[0].id == "documentation":
            self.action_topics()

    def action_topics(self) -> None:
        self.app.push_screen(HelpTopics())

    async def action_commands(self) -> None:
        """Search all commands in place of this list."""
        await self.dismiss()
        self.app.action_command_palette()


class Mistakes(Dialog[None]):
    """The errors in the configuration, with their places and remedies.

    :param mistakes: each in some lines.
    """

    DEFAULT_CSS = """
    Mistakes { align: center middle; }
    Mistakes VerticalScroll { width: 100; max-width: 95%; height: auto; max-height: 90%; background: $panel;
        border: round $warning; border-title-color: $foreground; padding: 0 1; }
    Mistakes LegibleText { margin-bottom: 1; }
    Mistakes .last { margin-bottom: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "Back", show=False)]

    def __init__(self, mistakes: Sequence[Sequence[str]]) -> None:
        super().__init__()
        self._mistakes = mistakes

    def compose(self) -> ComposeResult:
        count = len(self._mistakes)
        with VerticalScroll() as scroll:
            scroll.border_title = (
                f"! Configuration: {plural(count, 'setting')} {'is' if count == 1 else 'are'} not used"
            )
            for first, *more in self._mistakes:
                text = Text(sanitise(first, None))
                for line in more:
                    text.append(f"\n  {line}")
                yield LegibleText(text)
            what = "Its default is" if count == 1 else "Their defaults are"
            yield LegibleText(
                f"{what} used instead. Correct this, and start kdissect again. Enter closes this.",
                classes="last",
            )


class ComparedExchanges(Dialog[None]):
    """Two exchanges line by line."""

    DEFAULT_CSS = """
    ComparedExchanges { align: center middle; }
    ComparedExchanges VerticalScroll { width: 98%; height: 95%; background: $panel; border: round $primary;
        border-title-color: $foreground; border-subtitle-color: $foreground; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = HelpPage.BINDINGS

    def __init__(self, title: str, lines: Iterable[ComparedLine], alarm: str) -> None:
        """Prepare the dialog.

        :param alarm: the colour of lines that only the first exchange has.
        """
        super().__init__()
        self._title, self._lines, self._alarm = title, tuple(lines), alarm

    def compose(self) -> ComposeResult:
        looks = {FIRST: self._alarm, SECOND: "bold", LEFT_OUT: "italic", SAME: ""}
        with VerticalScroll() as scroll:
            scroll.border_title = self._title
            scroll.border_subtitle = "Space, j, k, g, G scroll, Esc closes"
            text = Text("\n").join(
                Text(f"{sign} {line}", looks[sign], no_wrap=False) for sign, line in self._lines
            )
            yield LegibleText(text)

    def action_scroll(self, where: str) -> None:
        getattr(self.query_one(VerticalScroll), f"scroll_{where}")(animate=False)


CHOICES = "1234567890abcdefhilmnoprstuvwxyz"
"""The keys for choosing words, in their order. Letters that move the cursor elsewhere, or lead back, are not
among them."""


class Choose(Dialog[str | None]):
    """One of several words, by its number or letter or with the cursor."""

    DEFAULT_CSS = """
    Choose { align: center middle; }
    Choose OptionList { min-width: 32; max-width: 95%; height: auto; border: round $primary;
        background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Back", show=False),
    ]

    def __init__(self, title: str, words: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._words = words

    def compose(self) -> ComposeResult:
        keys = CHOICES.ljust(len(self._words))
        options = LegibleOptions(
            *(Option(Text(f"{key} {word}")) for key, word in zip(keys, self._words, strict=False)),
            markup=False,
        )
        options.border_title = Text(self._title)
        options.styles.width = max(map(cell_len, (self._title, *self._words))) + 8
        yield options

    def on_key(self, event: Key) -> None:
        at = CHOICES.find(event.key) if len(event.key) == 1 else -1
        if 0 <= at < len(self._words):
            event.stop()
            self.dismiss(self._words[at])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._words[event.option_index])


class Ask(Dialog[str | None]):
    """A line of text; Escape gives None.

    :param value: the initial text.
    :param may_be_empty: whether the empty text is an answer too.
    :param note: a text to read before answering.
    :param why_not: returns the error in an answer, which can then be corrected; empty without one.
    """

    DEFAULT_CSS = """
    Ask { align: center middle; }
    Ask Vertical { width: 70; max-width: 95%; height: auto; border: round $primary; background: $panel;
        border-title-color: $foreground; border-subtitle-color: $foreground; }
    Ask #confirm { width: 100%; color: $text-muted; text-align: right; padding: 0 1; }
    Ask #confirm.-wrong { color: $text-error; text-align: left; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Back", show=False)]

    def __init__(
        self,
        title: str,
        hint: str,
        value: str = "",
        *,
        may_be_empty: bool = False,
        note: str = "",
        why_not: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__()
        self._note, self._why_not = note, why_not
        self._title, self._hint, self._value = title, hint, value
        self._may_be_empty = may_be_empty

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Text(self._title)
            box.border_subtitle = Text(self._note)
            line = LegibleInput(self._value, placeholder=self._hint)
            line.cursor_blink = False  # nothing is drawn while nothing changes
            yield line
            yield LegibleText("Enter confirms", id="confirm", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._take(event.value)

    def on_click(self, event: Click) -> None:
        """Handle a click on the line about Enter like Enter."""
        if self.get_widget_at(event.screen_x, event.screen_y)[0].id == "confirm":
            self._take(self.query_one(Input).value)

    def _take(self, value: str) -> None:
        text = value.strip()
        wrong = self._why_not(text) if text and self._why_not is not None else ""
        if wrong:
            said = self.query_one("#confirm", LegibleText)
            said.add_class("-wrong")
            said.update(sanitise(wrong, None))
        else:
            self.dismiss(text if text or self._may_be_empty else None)


class Pick(Dialog[list[str] | None]):
    """Some of several words, each of which can be ticked; Escape gives None.

    :param words: name, text and whether it is ticked.
    """

    DEFAULT_CSS = """
    Pick { align: center middle; }
    Pick OptionList { width: 50; max-width: 95%; height: auto; max-height: 90%;
        border: round $primary; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", "Tick", show=False),
        Binding("enter", "take", "Take", priority=True, show=False),
        Binding("escape,q", "dismiss", "Back", show=False),
    ]

    def __init__(self, title: str, words: Sequence[tuple[str, str, bool]]) -> None:
        super().__init__()
        self._title, self._words = title, words
        self._ticked = {name for name, _, ticked in words if ticked}

    def compose(self) -> ComposeResult:
        options = LegibleOptions(*map(self._line, range(len(self._words))), markup=False)
        options.border_title = Text(self._title)
        options.border_subtitle = "Space selects, Enter confirms"
        yield options

    def _line(self, at: int) -> Text:
        name, text, _ = self._words[at]
        return Text(f"{'✓' if name in self._ticked else ' '} {text}", no_wrap=True)

    def action_tick(self) -> None:
        for options in self.query(OptionList):  # none yet if keys come before it is shown
            if options.highlighted is not None:
                self._ticked ^= {self._words[options.highlighted][0]}
                options.replace_option_prompt_at_index(options.highlighted, self._line(options.highlighted))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_tick()  # a click

    def on_click(self, event: Click) -> None:
        """Handle a click on the bottom line, which says that Enter confirms, like Enter."""
        region = self.query_one(OptionList).region
        if event.screen_y == region.bottom - 1 and region.contains(event.screen_x, event.screen_y):
            self.action_take()

    def action_take(self) -> None:
        self.dismiss([name for name, _, _ in self._words if name in self._ticked])
