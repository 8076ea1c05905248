"""Rows of the statistic ``graph`` → text that other programs draw: DOT, GraphML, Mermaid, JSON.

Names come from the wire. Each form escapes them in its own way, after invisible characters were made visible.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from kdissect.present.form import plural, size
from kdissect.present.sanitise import sanitise

Row = dict[str, Any]


class GraphNode(NamedTuple):
    """A client, a topic, a group or a broker."""

    kind: str
    name: str
    host: str
    """The host of a client; empty for others."""
    cluster: str
    """The id of its cluster if another one has a thing of that name, else empty."""

    @property
    def label(self) -> str:
        """The name for people."""
        name = f"{self.name} of {self.cluster}" if self.cluster else self.name
        return name if not self.host or self.host == self.name else f"{name}@{self.host}"


Shared = frozenset[tuple[str, str]]
"""Kinds and names of things that several clusters have."""


def shared_names(rows: Iterable[Row]) -> Shared:
    """Kinds and names that several clusters have. A client is one thing, whatever clusters it speaks to."""
    clusters: dict[tuple[str, str], set[str | None]] = {}
    for row in rows:
        for end in ("from", "to"):
            clusters.setdefault((row[f"{end}_kind"], row[end]), set()).add(row["cluster_id"])
    return frozenset(key for key, found in clusters.items() if len(found - {None}) > 1 and key[0] != "client")


def cluster_of(row: Row, end: str, shared: Shared) -> str | None:
    """The cluster of a row's start (``from``) or end (``to``), if another cluster has such a thing too."""
    return row["cluster_id"] if (row[f"{end}_kind"], row[end]) in shared else None


def _node(row: Row, end: str, shared: Shared) -> GraphNode:
    kind, cluster = row[f"{end}_kind"], cluster_of(row, end, shared)
    host = row["host"] if kind == "client" else None
    return GraphNode(kind, sanitise(row[end]), sanitise(host or ""), sanitise(cluster or ""))


class GraphDrawing:
    """What all forms draw."""

    def __init__(self, rows: list[Row]) -> None:
        shared = shared_names(rows)
        self.nodes: dict[GraphNode, int] = {}
        """The nodes of the rows, each with its number."""
        self.edges: list[tuple[int, int, Row]] = []
        """The number of the row's start, the number of its end, and the row."""
        for row in rows:
            source, target = (
                self.nodes.setdefault(_node(row, end, shared), len(self.nodes)) for end in ("from", "to")
            )
            self.edges.append((source, target, row))


def edge_text(row: Row) -> str:
    """``produces 560 records, 143.4 KiB``."""
    text: str = row["relation"]
    if row["records"] is not None:
        text += f" {plural(row['records'], 'record')}, {size(row['bytes'] or 0)}"
    return text


_SHAPES = {"client": "box", "topic": "cylinder", "group": "folder", "broker": "box3d"}


def dot(rows: list[Row]) -> Iterator[str]:
    """The graph for Graphviz."""
    drawing = GraphDrawing(rows)
    yield "digraph kafka {"
    yield "  rankdir=LR;"
    for node, number in drawing.nodes.items():
        yield f"  n{number} [label={_dot(node.label)}, shape={_SHAPES[node.kind]}];"
    for source, target, row in drawing.edges:
        yield f"  n{source} -> n{target} [label={_dot(edge_text(row))}];"
    yield "}"


def _dot(text: str) -> str:
    """A quoted string of DOT, in which a backslash begins an escape."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_NODE_KEYS = ("kind", "label", "host")
_EDGE_KEYS = {
    "relation": "string",
    "cluster_id": "string",
    "client_id": "string",
    "software": "string",
    "principal": "string",
    "connections": "long",
    "exchanges": "long",
    "records": "long",
    "bytes": "long",
    "bytes_per_s": "double",
    "first_ns": "long",
    "last_ns": "long",
    "encrypted": "boolean",
    "authenticated": "string",
}


def graphml(rows: list[Row]) -> Iterator[str]:
    """The graph as GraphML, with all columns."""
    drawing = GraphDrawing(rows)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for name in _NODE_KEYS:
        yield f'  <key id="{name}" for="node" attr.name="{name}" attr.type="string"/>'
    for name, kind in _EDGE_KEYS.items():
        yield f'  <key id="{name}" for="edge" attr.name="{name}" attr.type="{kind}"/>'
    yield '  <graph id="kafka" edgedefault="directed">'
    for node, number in drawing.nodes.items():
        values = {"kind": node.kind, "label": node.label, "host": node.host}
        yield f"    <node id={quoteattr(f'n{number}')}>{_data(values)}</node>"
    for source, target, row in drawing.edges:
        values = {name: row[name] for name in _EDGE_KEYS}
        yield f'    <edge source="n{source}" target="n{target}">{_data(values)}</edge>'
    yield "  </graph>"
    yield "</graphml>"


def _data(values: dict[str, Any]) -> str:
    return "".join(
        f'<data key="{name}">{_xml(value)}</data>'
        for name, value in values.items()
        if value not in (None, "")
    )


def _xml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else escape(sanitise(str(value)))


def mermaid(rows: list[Row]) -> Iterator[str]:
    """The graph for Mermaid, as Markdown pages draw it."""
    drawing = GraphDrawing(rows)
    ends = {"client": ("[", "]"), "topic": ("[(", ")]"), "group": ("([", "])"), "broker": ("[[", "]]")}
    yield "flowchart LR"
    for node, number in drawing.nodes.items():
        before, after = ends[node.kind]
        yield f"  n{number}{before}{_mermaid(node.label)}{after}"
    for source, target, row in drawing.edges:
        yield f"  n{source} -->|{_mermaid(edge_text(row))}| n{target}"


def _mermaid(text: str) -> str:
    """A quoted label. Characters other than letters, digits and plain signs become their numbers, because a
    quote would end the label, and Mermaid interprets tags, entities and Markdown in it."""
    return (
        '"'
        + "".join(each if each.isalnum() or each in " .,:-@/_" else f"#{ord(each)};" for each in text)
        + '"'
    )


def graph_json(rows: list[Row]) -> Iterator[str]:
    """The graph as one object: nodes and edges, with all columns of the edges."""
    drawing = GraphDrawing(rows)
    told = [
        {"id": number, "kind": node.kind, "name": node.name, "host": node.host or None}
        | ({"cluster_id": node.cluster} if node.cluster else {})
        for node, number in drawing.nodes.items()
    ]
    edges = [
        {
            "source": source,
            "target": target,
            **{name: sanitise(row[name]) if isinstance(row[name], str) else row[name] for name in _EDGE_KEYS},
        }
        for source, target, row in drawing.edges
    ]
    yield json.dumps({"nodes": told, "edges": edges}, ensure_ascii=False, allow_nan=False)


FORMS: dict[str, Callable[[list[Row]], Iterator[str]]] = {
    "dot": dot,
    "graphml": graphml,
    "mermaid": mermaid,
    "json": graph_json,
}
"""The functions by their names for ``-T``: rows → lines."""
