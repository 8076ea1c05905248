"""The keys at the foot of a screen."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Footer
from textual.widgets._footer import FooterKey


class KeysFooter(Footer):
    """The keys that mean something here, without that of the palette.

    Textual makes each key compact first and wide then, and computes its style anew both times. This footer
    makes each key in its final form at once.
    """

    DEFAULT_CSS = """
    KeysFooter:light FooterKey .footer-key--key { color: $foreground; }
    """

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)

    def compose(self) -> ComposeResult:
        for each in super().compose():
            if isinstance(each, FooterKey):
                each.set_reactive(FooterKey.compact, self.compact)
            yield each
