"""The end of the screens: with one line after a defect of ours, and after Ctrl-C."""

from __future__ import annotations

import os
import signal
from typing import ClassVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.css.query import NoMatches
from textual.events import Event, Key, MouseDown, Paste
from textual.widgets import Input

from kdissect.present.sanitise import valid_text
from kdissect.system.terminal import SIGNALLED
from kdissect.tui.colors import with_visible_bars
from kdissect.tui.widgets.adapted import Palette
from kdissect.wording import defect


class QuietApp(App[None]):
    """An application that shows no values when it fails, and that Ctrl-C ends."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # Before all others, because it must work in dialogs too.
        Binding("ctrl+c", "copy_or_interrupt", show=False, priority=True, system=True)
    ]
    _copied: Input | None = None
    """The field whose whole text Ctrl-C has just copied; None after any other input."""

    def get_css_variables(self) -> dict[str, str]:
        return with_visible_bars(super().get_css_variables())

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text, with bytes that were no UTF-8 as ``\\xff``: a terminal takes only text."""
        super().copy_to_clipboard(valid_text(text))

    async def on_event(self, event: Event) -> None:
        # Not in ``on_key``: a field keeps the keys that it writes to itself.
        if isinstance(event, Key | MouseDown | Paste) and not event.is_forwarded:
            is_ctrl_c = isinstance(event, Key) and event.key == "ctrl+c"
            if not is_ctrl_c:
                self._before_other_input(event)
        await super().on_event(event)

    def _before_other_input(self, event: Key | MouseDown | Paste) -> None:
        """Handle input other than Ctrl-C."""
        self._copied = None

    def _handle_exception(self, error: Exception) -> None:
        """Ignore errors at the end. Panes disappear one by one then. A timer, or a callback after a frame,
        may still look for one of them. That is no defect."""
        if not (self._exit and isinstance(error, NoMatches)):
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Print no traceback. Textual's would contain the values of variables, which may be secrets."""
        error = self._exception
        assert error is not None
        self.panic(Text(f"kdissect: {defect(error)} (KDISSECT_DEBUG=1 shows more)"))
        if os.environ.get("KDISSECT_DEBUG"):
            super()._fatal_error()

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(id="--command-palette"))

    def action_copy_or_interrupt(self) -> None:
        """Ctrl-C: copy the selected text, or else end. Textual would name another key for ending.

        A field selects all of its text when it opens. If Ctrl-C copied it every time, it would never end.
        """
        field = self.focused
        if not isinstance(field, Input):
            selected = self.screen.get_selected_text()
        elif field is self._copied:
            selected = None
        else:
            selected = field.selected_text
            self._copied = field if selected == field.value else None
        if selected:
            self.copy_to_clipboard(selected)
        else:
            self.interrupt()

    def interrupt(self) -> None:
        """End as SIGINT does."""
        self.exit(return_code=SIGNALLED + signal.SIGINT)
