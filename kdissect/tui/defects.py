"""A defect of ours ends the screens with one line."""

from __future__ import annotations

import os

from rich.text import Text
from textual.app import App

from kdissect.wording import defect


class QuietApp(App[None]):
    """An application that tells no values where it fails."""

    def _fatal_error(self) -> None:
        """Textual would print a traceback with the values of variables, which may be secrets."""
        error = self._exception
        assert error is not None
        self.panic(Text(f"kdissect: {defect(error)} (KDISSECT_DEBUG=1 shows more)"))
        if os.environ.get("KDISSECT_DEBUG"):
            super()._fatal_error()
