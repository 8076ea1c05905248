"""Graphs as text: whatever is in a name stays a name."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from kdissect.present.graphs import FORMS

NAMES = (
    *("orders", 'a"b', "a\\", '"];n9 [label="x', "</data><data>", "]]>&amp;<script>", "|x|", "#quot;"),
    *("a\nb", "\x1b[31mred", "-->", "`x`", "名前", "\ud800"),
)


def row(name: str) -> dict[str, Any]:
    return {
        "from": name,
        "from_kind": "client",
        "to": name,
        "to_kind": "topic",
        "relation": "produces",
        "cluster_id": None,
        "client_id": name,
        "software": name,
        "principal": name,
        "host": "10.0.0.1",
        "connections": 1,
        "exchanges": 1,
        "records": 3,
        "bytes": 2048,
        "bytes_per_s": 1.5,
        "first_ns": 1,
        "last_ns": 2,
        "encrypted": False,
        "authenticated": None,
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_a_name_is_one_node_in_every_form(form: str, name: str) -> None:
    lines = list(FORMS[form]([row(name)]))
    assert not any(set(line) & set("\n\r\x1b") for line in lines)
    text = "\n".join(lines)
    text.encode()
    if form == "json":
        found = json.loads(text)
        assert (len(found["nodes"]), len(found["edges"])) == (2, 1)
    elif form == "graphml":
        graph = ElementTree.fromstring(text)
        space = "{http://graphml.graphdrawing.org/xmlns}"
        assert len(list(graph.iter(f"{space}node"))) == 2
        assert len(list(graph.iter(f"{space}edge"))) == 1
    else:
        strings = re.compile(r'"(?:[^"\\]|\\.)*"') if form == "dot" else re.compile(r'"[^"]*"')
        bare = strings.sub('""', text)
        assert re.findall(r"n\d+", bare) == ["n0", "n1", "n0", "n1"]
        assert '"' not in bare.replace('""', "")


def test_what_flows_is_told() -> None:
    assert '  n0 -> n1 [label="produces 3 records, 2.0 KiB"];' in list(FORMS["dot"]([row("orders")]))
    one = {**row("orders"), "records": 1}
    assert '  n0 -> n1 [label="produces 1 record, 2.0 KiB"];' in list(FORMS["dot"]([one]))


def test_things_of_one_name_in_two_clusters_are_nodes_of_their_own() -> None:
    flows = [("client", "app", "topic"), ("group", "jobs", "topic"), ("broker", "1", "topic")]
    rows = [
        {**row("orders"), "from_kind": kind, "from": source, "to_kind": target, "cluster_id": cluster}
        for cluster in ("EAST", "WEST", None)
        for kind, source, target in flows
    ]
    rows += [{**row("orders"), "from": "app", "to": name, "cluster_id": "EAST"} for name in ("one", "two")]
    rows.append({**row("orders"), "from": "app", "to": "two"})
    (text,) = FORMS["json"](rows)
    nodes = [(each["kind"], each["name"], each.get("cluster_id")) for each in json.loads(text)["nodes"]]
    of_all = [("topic", "orders"), ("group", "jobs"), ("broker", "1")]
    assert sorted(nodes, key=str) == sorted(
        [
            ("client", "app", None),  # whatever clusters it speaks to
            *((*each, cluster) for cluster in ("EAST", "WEST", None) for each in of_all),
            ("topic", "one", None),
            ("topic", "two", None),  # what is unknown splits nothing
        ],
        key=str,
    )
    assert '  n1 [label="orders of EAST", shape=cylinder];' in list(FORMS["dot"](rows))
