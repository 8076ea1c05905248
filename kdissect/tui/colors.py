"""Themes, and legible colours: the contrast of a text with its background, as WCAG 2.2 measures it.

A theme gives colours for errors, warnings and muted text. Not every theme has checked them on every
background. A colour too close to its background is made darker or lighter until the text is legible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache, partial
from typing import Any

from rich.color import Color, ColorType
from rich.color_triplet import ColorTriplet
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.app import App
from textual.color import Color as ThemeColor
from textual.strip import Strip
from textual.theme import BUILTIN_THEMES
from textual.widget import Widget

LEAST = 4.5
"""The least contrast of text (WCAG 2.2, success criterion 1.4.3)."""
LEAST_OF_BARS = 3.0
"""The least contrast of a part that is no text (WCAG 2.2, success criterion 1.4.11)."""
_STEPS = 20
"""The number of steps from a colour to black or white."""
_BARS = "scrollbar", "scrollbar-hover", "scrollbar-active"
_BEHIND_BARS = "surface", "scrollbar-background"
"""The names of the colours of scroll bars, and of those behind them."""


def luminance(color: ColorTriplet) -> float:
    """The relative luminance, from 0 for black to 1 for white."""
    parts = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in color.normalized
    )
    return sum(part * share for part, share in zip(parts, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(one: ColorTriplet, other: ColorTriplet) -> float:
    """The contrast, from 1 for equal colours to 21 for black on white."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@lru_cache(maxsize=1024)
def legible(style: Style) -> Style:
    """The style, with a text colour that is legible on its background. Colours of the terminal itself are not
    changed, because they are unknown."""
    text, behind = style.color, style.bgcolor
    if text is None or behind is None or ColorType.TRUECOLOR not in (text.type, behind.type):
        return style
    if text.triplet is None or behind.triplet is None:
        return style
    return style + Style(color=Color.from_triplet(_legible(text.triplet, behind.triplet)))


def with_visible_bars(colors: Mapping[str, str]) -> dict[str, str]:
    """The colours of a theme by their names, with scroll bars that can be seen. Colours of the terminal
    itself are not changed, because they are unknown."""
    parsed = {name: ThemeColor.parse(colors[name]) for name in (*_BARS, *_BEHIND_BARS)}
    if any(each.ansi is not None for each in parsed.values()):
        return dict(colors)
    found = {name: ColorTriplet(*each.rgb) for name, each in parsed.items()}
    out = dict(colors)
    for name in _BARS:
        nearest = min((found[each] for each in _BEHIND_BARS), key=partial(contrast, found[name]))
        out[name] = _legible(found[name], nearest, LEAST_OF_BARS).hex
    return out


def _legible(text: ColorTriplet, behind: ColorTriplet, least: float = LEAST) -> ColorTriplet:
    """The first legible colour on the way to black or white, whichever is further from the background."""
    end = max(ColorTriplet(0, 0, 0), ColorTriplet(255, 255, 255), key=lambda each: contrast(each, behind))
    for step in range(_STEPS + 1):
        part = step / _STEPS
        mixed = ColorTriplet(*(round(a + (b - a) * part) for a, b in zip(text, end, strict=True)))
        if contrast(mixed, behind) >= least:
            return mixed
    return end


def legible_strip(strip: Strip, app: App[Any]) -> Strip:
    """A line with legible texts only. The terminal's own colours, by name, are taken as Textual draws them,
    unless it leaves them to the terminal."""
    if app.ansi_color:
        return strip
    theme = app.ansi_theme
    return Strip([each._replace(style=_named(each.style, theme)) for each in strip], strip.cell_length)


@lru_cache(maxsize=4096)
def _named(style: Style | None, theme: TerminalTheme) -> Style | None:
    if style is None or style.color is None or style.bgcolor is None:
        return style
    text, behind = (each.get_truecolor(theme) for each in (style.color, style.bgcolor))
    if style.dim:
        text = ColorTriplet(*((2 * a + b) // 3 for a, b in zip(text, behind, strict=True)))
    plain = Style(color=Color.from_triplet(text), bgcolor=Color.from_triplet(behind), dim=False)
    return legible(style + plain)


def alarm_color(app: App[Any]) -> str:
    """The colour of errors in rich's notation: red, as far from the background as the theme needs."""
    if app.ansi_color:
        return "red"
    return "#ff8a8a" if app.current_theme.dark else "#8b0000"


class Legible(Widget):
    """A widget whose own styles are legible in every theme. Put it after the other base class."""

    def get_component_rich_style(
        self, *names: str, partial: bool = False, default: Style | None = None
    ) -> Style:
        return legible(super().get_component_rich_style(*names, partial=partial, default=default))


def themes() -> Collection[str]:
    """The names of the themes."""
    return BUILTIN_THEMES
