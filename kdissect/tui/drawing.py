"""Drawing the screen: widgets make only lines that are drawn and that no other widget covers.

Textual makes all lines of all widgets between the first and the last change of a frame. A key that moves a
cursor changes two lines, and perhaps the line at the top. Then Textual would make the whole screen again,
even the containers behind all panes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from textual._compositor import ChopsUpdate, Compositor
from textual._styles_cache import StylesCache
from textual.color import Color
from textual.css.styles import StylesBase
from textual.geometry import Region, Size, Spacing
from textual.strip import Strip
from textual.widget import Widget

_Line = dict[int, Strip | None]
"""The pieces of a line by their first cells; None for a piece that is not made."""


class SparingCompositor(Compositor):
    """Puts the widgets of a screen together."""

    _changed: Mapping[int, tuple[int, int]] | None = None
    """The first changed cell of each line and the first one after its changes, while changes are drawn."""

    def render_partial_update(self) -> ChopsUpdate | None:
        changed: dict[int, tuple[int, int]] = {}
        for y, start, end in self._regions_to_spans(self._dirty_regions):
            before = changed.get(y, (start, end))
            changed[y] = min(before[0], start), max(before[1], end)
        self._changed = changed
        try:
            return super().render_partial_update()
        finally:
            self._changed = None

    def _render_chops(
        self, crop: Region, is_rendered_line: Callable[[int], bool]
    ) -> Sequence[Mapping[int, Strip]]:
        cuts = self.cuts
        lines: list[_Line] = [dict.fromkeys(each[:-1]) for each in cuts]
        missing = {
            y: self._pieces(y) for y in range(*crop.line_span) if y < len(cuts) and is_rendered_line(y)
        }
        for widget, (region, clip) in self.visible_widgets.items():  # those in front come first
            part = region.intersection(clip)
            start, end = part.column_span
            wanted = [y for y in part.line_range if any(start <= cut < end for cut in missing.get(y, ()))]
            for first, last in _runs(wanted):
                made = Region(start - region.x, first - region.y, end - start, last - first + 1)
                for y, strip in enumerate(widget.render_lines(made), first):
                    here = [cut for cut in cuts[y] if start <= cut <= end]
                    for cut, piece in zip(
                        here, strip.divide([cut - start for cut in here[1:]]), strict=False
                    ):
                        if cut in missing[y]:
                            missing[y].discard(cut)
                            lines[y][cut] = piece
        return cast(Sequence[Mapping[int, Strip]], lines)

    def _pieces(self, y: int) -> set[int]:
        """The first cells of the pieces of a line that are drawn."""
        cuts = self.cuts[y]
        start, end = (0, self.size.width) if self._changed is None else self._changed.get(y, (0, 0))
        return {cut for cut, after in pairwise(cuts) if cut < end and after > start}


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last number of each row of consecutive numbers."""
    first = last = None
    for number in numbers:
        if first is None or last is None:
            first = number
        elif number != last + 1:
            yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last


class ContentLines(StylesCache):
    """The lines of a widget with its borders. Where nothing is beside the contents, their line is the line.
    Textual would look up a dozen styles for each and make it again, without what it remembers of it."""

    _top: int | None = None
    """The lines above the contents; None if something is beside these."""

    def render_widget(self, widget: Widget, crop: Region) -> list[Strip]:
        self._top = _lines_above(widget)
        return super().render_widget(widget, crop)

    def render_line(
        self,
        styles: StylesBase,
        y: int,
        size: Size,
        content_size: Size,
        padding: Spacing,
        base_background: Color,
        background: Color,
        render_content_line: Callable[[int], Strip],
        *others: Any,
    ) -> Strip:
        line = -1 if self._top is None else y - self._top
        if not 0 <= line < content_size.height:
            given = styles, y, size, content_size, padding, base_background, background, render_content_line
            return super().render_line(*given, *others)
        inner, _ = self.get_inner_outer(base_background, background)
        return render_content_line(line).adjust_cell_length(content_size.width, inner.rich_style)


def _lines_above(widget: Widget) -> int | None:
    """The lines above the contents of a widget; None if its lines have something beside or on top of the
    contents."""
    styles = widget.styles
    _, right, _, left = styles.border
    has_effect = styles.tint.a or widget.opacity != 1 or styles.text_opacity != 1 or styles.has_rule("hatch")
    if has_effect or any(styles.padding) or any(kind for kind, _ in (left, right, *styles.outline)):
        return None
    return styles.gutter.top
