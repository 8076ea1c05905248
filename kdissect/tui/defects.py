"""How the screens end: with one line at a defect of ours, and at Ctrl-C."""

from __future__ import annotations

import os
import signal
from typing import ClassVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.widgets import Input

from kdissect.system.terminal import SIGNALLED
from kdissect.tui.widgets.legible import Palette
from kdissect.wording import defect


class QuietApp(App[None]):
    """An application that tells no values where it fails, and that Ctrl-C ends."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # Before all others, for it is to work in dialogs too.
        Binding("ctrl+c", "copy_or_interrupt", show=False, priority=True, system=True)
    ]

    def _fatal_error(self) -> None:
        """Textual would print a traceback with the values of variables, which may be secrets."""
        error = self._exception
        assert error is not None
        self.panic(Text(f"kdissect: {defect(error)} (KDISSECT_DEBUG=1 shows more)"))
        if os.environ.get("KDISSECT_DEBUG"):
            super()._fatal_error()

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(id="--command-palette"))

    def action_copy_or_interrupt(self) -> None:
        """Ctrl-C: copy what is selected, or else end. Textual would tell another key that ends."""
        field = self.focused
        selected = field.selected_text if isinstance(field, Input) else self.screen.get_selected_text()
        if selected:
            self.copy_to_clipboard(selected)
        else:
            self.interrupt()

    def interrupt(self) -> None:
        """End as SIGINT does."""
        self.exit(return_code=SIGNALLED + signal.SIGINT)
