"""Plots as SVG, drawn here, readable without a script: lines over time, stacked bars, bars in lanes, flows.

Colours are classes of the page's style, so they follow its theme. No plot uses colour as the only difference.
Lines have dashes, bars have labels, and each part has a text under the pointer. The given texts are not yet
made safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import floor, log2, log10
from typing import NamedTuple

from kdissect.present.html.page import text

WIDE = 1072
"""The units of a plot that is as wide as the page."""
LEFT = 132
"""The room for labels beside an axis."""
SHADES = 8


def plot(drawing: Iterable[str], high: float, about: str, wide: int = WIDE) -> str:
    """A plot.

    :param about: a description, for users who do not see it.
    """
    size = f'viewBox="0 0 {wide} {high:.0f}" width="{wide}" height="{high:.0f}"'
    drawn = f'<svg {size} role="img" aria-label="{text(about, None)}">{"".join(drawing)}</svg>'
    return f'<div class="plot" tabindex="0" role="group" aria-label="Plot">{drawn}</div>'


def figure(title: str, content: str, lead: str = "", legend: Sequence[str] = (), dashes: bool = False) -> str:
    """A plot with its title and its legend.

    :param dashes: whether the legend shows lines.
    """
    if not content:
        return ""
    more = f" {text(lead, None)}" if lead else ""
    heading = f"<figcaption><b>{text(title)}</b>{more}</figcaption>"
    return f"<figure>{heading}{_legend(legend, dashes)}{content}</figure>"


def _legend(names: Sequence[str], dashes: bool) -> str:
    if not names:
        return ""
    items = []
    for at, name in enumerate(names):
        shape = (
            f'<path class="l {shade(at)}" d="M0 6H26"/>'
            if dashes
            else f'<rect class="f {shade(at)}" x="8" y="1" width="11" height="11" rx="2"/>'
        )
        items.append(f'<li><svg width="26" height="13" aria-hidden="true">{shape}</svg>{text(name)}</li>')
    return f'<ul class="legend">{"".join(items)}</ul>'


def shade(number: int) -> str:
    """The class of a colour."""
    return f"c{number % SHADES + 1}"


def middle(name: str, longest: int) -> str:
    """A name; if it is long, with ``…`` in place of its middle, because names often differ only at their
    ends."""
    if len(name) <= longest:
        return name
    start = longest // 2 - 1
    return f"{name[:start]}…{name[start + 1 - longest :]}"


def ticks(most: float, about: int = 4, unit: float = 1.0) -> list[float]:
    """Round numbers from 0 to ``most`` or above.

    :param unit: the numbers are multiples of it: ``1 << 20`` for bytes shown in MiB.
    """
    if unit != 1.0:
        return [each * unit for each in ticks(most / unit, about)]
    if most <= 0:
        return [0.0]
    rough = most / about
    power = 10.0 ** floor(log10(rough))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= rough * 0.999)
    out = [0.0]
    while out[-1] < most * 0.999:
        out.append(out[-1] + step)
    return out


# -- over time --------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line over time."""

    name: str
    points: list[tuple[float, float | None]]
    """Seconds and values, in the order of time. The line breaks at missing values."""
    is_area: bool = False


class Band(NamedTuple):
    """A span of time, or a moment, with its event."""

    from_s: float
    to_s: float
    what: str


class TimeAxis(NamedTuple):
    """The start and the end of the axis, in seconds from the first packet."""

    first: float
    last: float

    def x(self, s: float) -> float:
        """The position of a time."""
        width = self.last - self.first
        part = (min(max(s, self.first), self.last) - self.first) / width if width > 0 else 0
        return LEFT + part * (WIDE - LEFT - 8)

    def draw(self, y: float) -> Iterator[str]:
        """The axis, below a plot."""
        yield f'<path class="axis" d="M{LEFT} {y:.1f}H{WIDE - 8}"/>'
        width = self.last - self.first
        for each in ticks(width, 8):
            if each <= width * 1.001:
                x = self.x(self.first + each)
                anchor = "end" if x > WIDE - 40 else "mid"
                told = moment(self.first + each)
                yield f'<text class="soft {anchor}" x="{x:.1f}" y="{y + 16:.1f}">{told}</text>'


def moment(s: float) -> str:
    """A time on an axis."""
    if abs(s) < 120:
        return f"{s:.3g} s"
    hours, rest = divmod(round(s), 3_600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def lines(
    series: Sequence[Line],
    axis: TimeAxis,
    shown: Callable[[float], str],
    about: str,
    bands: Sequence[Band] = (),
    high: int = 130,
    first_shade: int = 0,
    binary: bool = False,
) -> str:
    """Lines over time.

    :param shown: makes the text of a value.
    :param binary: whether values are bytes, which have powers of 1024 as units.
    :param first_shade: the colour of the first line.
    """
    values = [value for line in series for _, value in line.points if value is not None]
    if not values or max(values) <= 0:
        return ""
    unit = 1024.0 ** floor(log2(max(1.0, *values)) / 10) if binary else 1.0
    steps = ticks(max(values), 3, unit)
    most, base = steps[-1], high + 8.0

    def y(value: float) -> float:
        return base - value / most * high

    out = []
    for band in bands:
        x, wide = axis.x(band.from_s), axis.x(band.to_s) - axis.x(band.from_s)
        out.append(
            f'<rect class="band" x="{x:.1f}" y="8" width="{max(wide, 2):.1f}" height="{high}"/>'
            f'<path class="mark" d="M{x:.1f} 8V{base:.1f}"/>'
        )
    for step in steps[1:]:
        out.append(f'<path class="grid" d="M{LEFT} {y(step):.1f}H{WIDE - 8}"/>')
        out.append(f'<text class="soft end" x="{LEFT - 8}" y="{y(step) + 4:.1f}">{text(shown(step))}</text>')
    for at, line in enumerate(series):
        pieces = list(_pieces(line.points))
        for piece in pieces:
            path = "L".join(f"{axis.x(s):.1f} {y(value):.1f}" for s, value in piece)
            if line.is_area:
                start, end = axis.x(piece[0][0]), axis.x(piece[-1][0])
                out.append(
                    f'<path class="tint {shade(at + first_shade)}" '
                    f'd="M{start:.1f} {base:.1f}L{path}L{end:.1f} {base:.1f}Z"/>'
                )
            path = path if len(piece) > 1 else f"{path}h2"
            out.append(f'<path class="l {shade(at + first_shade)}" d="M{path}"/>')
    out += axis.draw(base)
    out += _hits(series, axis, shown, bands, base)
    return plot(out, base + 24, about)


def _pieces(points: Sequence[tuple[float, float | None]]) -> Iterator[list[tuple[float, float]]]:
    piece: list[tuple[float, float]] = []
    for s, value in points:
        if value is not None:
            piece.append((s, value))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


_MOST_HITS = 150


def _hits(
    series: Sequence[Line],
    axis: TimeAxis,
    shown: Callable[[float], str],
    bands: Sequence[Band],
    base: float,
) -> Iterator[str]:
    """Areas with a text for the pointer."""
    times = sorted({s for line in series for s, _ in line.points})
    step = max(1, -(-len(times) // _MOST_HITS))
    for at in range(0, len(times), step):
        s, end = times[at], times[at + step] if at + step < len(times) else axis.last
        told = [moment(s)]
        for line in series:
            inside = [value for when, value in line.points if s <= when < end or when == s]
            known = [value for value in inside if value is not None]
            if known:
                told.append(f"{line.name}: {shown(max(known))}")
        told += [band.what for band in bands if band.from_s <= max(end, s) and band.to_s >= s][:4]
        x, wide = axis.x(s), max(axis.x(end) - axis.x(s), 3)
        tip = "&#10;".join(text(each) for each in told)
        place = f'x="{x:.1f}" y="8" width="{wide:.1f}" height="{base - 8:.1f}"'
        yield f'<rect class="hit" {place} data-tip="{tip}"/>'


# -- bars -------------------------------------------------------------------------------------------


class Bar(NamedTuple):
    """A bar of parts, one after the other."""

    name: str
    parts: list[float]
    note: str = ""
    """The text after it."""


def bars(rows: Sequence[Bar], parts: Sequence[str], shown: Callable[[float], str], about: str) -> str:
    """Bars of parts, as long as their sums."""
    most = max((sum(row.parts) for row in rows), default=0)
    if most <= 0:
        return ""
    left, note, out = 210, 150, []
    room = WIDE - left - note - 8
    for at, row in enumerate(rows):
        y = at * 24 + 4
        out.append(f'<text class="end" x="{left - 10}" y="{y + 13}">{text(middle(row.name, 28))}</text>')
        x = float(left)
        for number, part in enumerate(row.parts):
            wide = part / most * room
            if part > 0:
                tip = text(f"{row.name}: {parts[number]} {shown(part)}")
                out.append(
                    f'<rect class="f {shade(number)}" x="{x:.1f}" y="{y}" width="{max(wide, 1):.1f}" '
                    f'height="17" data-tip="{tip}"/>'
                )
                if wide > 64:
                    out.append(_inside(x + 5, y + 13, shown(part)))
            x += wide
        out.append(f'<text class="soft" x="{x + 8:.1f}" y="{y + 13}">{text(row.note)}</text>')
    return plot(out, len(rows) * 24 + 6, about)


def _inside(x: float, y: float, label: str) -> str:
    return f'<text class="on" x="{x:.1f}" y="{y}">{text(label)}</text>'


# -- lanes ------------------------------------------------------------------------------------------


class LaneSpan(NamedTuple):
    """A span of time in a lane."""

    from_s: float
    to_s: float
    shade: int
    what: str
    label: str = ""
    is_stop: bool = False
    tone: str = ""
    """A class of the style that colours it instead of its shade: a severity."""


class TimeLane(NamedTuple):
    """The events of one thing over time."""

    name: str
    spans: list[LaneSpan]


def lanes(
    rows: Sequence[TimeLane],
    axis: TimeAxis,
    about: str,
    bands: Sequence[Band] = (),
    labels_beside: bool = False,
) -> str:
    """Bars in lanes over time (Gantt).

    :param labels_beside: whether a label is put beside its bar if the bar has no room for it.
    """
    if not any(row.spans for row in rows):
        return ""
    base = len(rows) * 24 + 6.0
    out = []
    for band in bands:
        x, wide = axis.x(band.from_s), axis.x(band.to_s) - axis.x(band.from_s)
        out.append(
            f'<rect class="band" x="{x:.1f}" y="0" width="{max(wide, 1.5):.1f}" height="{base:.1f}" '
            f'data-tip="{text(band.what)}"/><path class="mark" d="M{x:.1f} 0V{base:.1f}"/>'
        )
    for at, row in enumerate(rows):
        y = at * 24 + 4
        out.append(
            f'<text class="end" x="{LEFT - 8}" y="{y + 13}">{text(middle(row.name, 18))}'
            f"<title>{text(row.name)}</title></text>"
        )
        for span in row.spans:
            x, wide = axis.x(span.from_s), axis.x(span.to_s) - axis.x(span.from_s)
            kind = "stop" if span.is_stop else f"f {span.tone or shade(span.shade)}"
            top, tall = (y + 5, 7) if span.is_stop else (y, 17)
            out.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{top}" width="{max(wide, 1.5):.1f}" height="{tall}" '
                f'rx="2" data-tip="{text(span.what)}"/>'
            )
            if span.label and not span.is_stop and wide > 12 + 7 * len(span.label):
                out.append(_inside(x + 5, y + 13, span.label))
            elif span.label and labels_beside:
                is_left = x > WIDE / 2
                place = (
                    f'class="soft end" x="{x - 6:.1f}"' if is_left else f'class="soft" x="{x + wide + 6:.1f}"'
                )
                out.append(f'<text {place} y="{y + 13}">{text(span.label)}</text>')
    out += axis.draw(base)
    return plot(out, base + 24, about)


# -- flows ------------------------------------------------------------------------------------------


class FlowBand(NamedTuple):
    """A flow from a name in one column to a name in another."""

    source: tuple[int, str]
    """Column and name."""
    target: tuple[int, str]
    size: float
    shade: int
    what: str


def flows(found: Sequence[FlowBand], headings: Sequence[str], about: str) -> str:
    """Names in columns, and curves between them, whose thickness is the size of the flow."""
    if not found:
        return ""
    columns: list[dict[str, float]] = [{} for _ in headings]
    for flow in found:
        for column, name in (flow.source, flow.target):
            columns[column].setdefault(name, 0.0)
    tallest = max(map(len, columns))
    high, out = tallest * 26 + 34, []
    used = [at for at, names in enumerate(columns) if names]
    room = (WIDE - 200) / max(1, len(used) - 1)
    at_x = {column: 4 + place * room for place, column in enumerate(used)}
    places = {
        (column, name): 42 + (number + (tallest - len(columns[column])) / 2) * 26
        for column in used
        for number, name in enumerate(columns[column])
    }
    most = max(flow.size for flow in found) or 1.0
    for flow in found:
        (a, b), wide = (flow.source, flow.target), 1.5 + 10.5 * (flow.size / most) ** 0.5
        forward = at_x[a[0]] < at_x[b[0]]
        x1, x2 = at_x[a[0]] + (150 if forward else 0), at_x[b[0]] + (0 if forward else 150)
        y1, y2, half = places[a] - 4, places[b] - 4, (x1 + x2) / 2
        out.append(
            f'<path class="edge {shade(flow.shade)}" stroke-width="{wide:.1f}" '
            f'd="M{x1:.1f} {y1:.1f}C{half:.1f} {y1:.1f} {half:.1f} {y2:.1f} {x2:.1f} {y2:.1f}" '
            f'data-tip="{text(flow.what)}"/>'
        )
    for column in used:
        x = at_x[column]
        out.append(f'<text class="soft" x="{x:.1f}" y="14">{text(headings[column])}</text>')
        for name in columns[column]:
            y = places[(column, name)]
            out.append(
                f'<rect class="node" x="{x:.1f}" y="{y - 15:.1f}" width="150" height="21" rx="3"/>'
                f'<text x="{x + 7:.1f}" y="{y:.1f}">{text(middle(name, 18))}'
                f"<title>{text(name)}</title></text>"
            )
    return plot(out, high, about)
