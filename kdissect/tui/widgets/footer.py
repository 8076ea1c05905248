"""The keys at the foot of a screen."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey


class KeysFooter(Footer):
    """The keys that mean something here, without that of the palette.

    Textual makes each key compact first and wide then, and computes its style anew both times. It makes all
    keys anew whenever something might have changed. Without both a screen comes up in two thirds of the time.
    """

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)
        self._shown: list[tuple[Any, ...]] = []
        """What is told of each key."""

    def compose(self) -> ComposeResult:
        for each in super().compose():
            if isinstance(each, FooterKey):
                each.set_reactive(FooterKey.compact, self.compact)
            yield each

    def bindings_changed(self, screen: Screen[Any]) -> None:
        """Make the keys anew if they changed."""
        shown = [
            (binding.key, binding.description, binding.action, enabled, tooltip)
            for _, binding, enabled, tooltip in screen.active_bindings.values()
            if binding.show
        ]
        if shown == self._shown:
            return
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self._shown = shown
        super().bindings_changed(screen)
