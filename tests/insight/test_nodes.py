"""Nodes of several clusters: at which address, and what findings call them."""

from __future__ import annotations

from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.fold import Row
from kdissect.insight.nodes import NodeNames, are_several_clusters, names_of_several, nodes_by_address
from tests.insight.made import row


def at(cluster: str | None, node: int, host: str) -> Row:
    return row(ClusterBrokers, cluster_id=cluster, node_id=node, host=host, port=9092)


TWO = [at("a", 1, "h1"), at("b", 1, "h2"), at("b", 2, "h3")]


def test_a_node_is_named_by_its_number_unless_another_cluster_has_that_too() -> None:
    names = NodeNames(TWO)
    assert [names.of(1, "a"), names.of(1, "b"), names.of(2, "b")] == ["h1:9092", "h2:9092", "2"]
    assert names.of(1, None) == "1"  # nobody knows which of them
    assert [names.are_several(node) for node in (1, 2)] == [True, False]
    assert NodeNames(TWO[:1]).of(1, "a") == "1"
    assert NodeNames([at("a", 1, "h1"), at(None, 1, "h2")]).of(1, "a") == "1"


def test_the_node_at_an_address_that_two_clusters_tell_of_is_named_by_that_address() -> None:
    both = [at("a", 1, "h1"), at("b", 1, "h1")]
    assert NodeNames(both).at(nodes_by_address(both)["h1:9092"], "h1:9092") == "h1:9092"
    assert NodeNames(TWO).at(nodes_by_address(TWO)["h3:9092"], "h3:9092") == "2"


def test_what_does_not_name_its_cluster_is_of_the_one_that_does() -> None:
    nodes = nodes_by_address([*TWO, at(None, 1, "h1"), at(None, 1, "h2"), at(None, 7, "h9")])
    assert nodes["h1:9092"].named_clusters == {"a"}
    assert nodes["h9:9092"].named_clusters == {None}
    assert not nodes["h1:9092"].is_also(nodes["h2:9092"])
    assert nodes["h1:9092"].is_source_of(at(None, 1, "h1"))
    assert NodeNames([*TWO, at(None, 1, "h1")]).at(nodes["h1:9092"], "h1:9092") == "h1:9092"


def test_nodes_may_meet_unless_both_are_known_to_be_of_other_clusters() -> None:
    nodes = nodes_by_address([*TWO, at(None, 7, "h9")])
    one, other, third, unknown = (nodes[f"h{each}:9092"] for each in (1, 2, 3, 9))
    assert not one.may_meet(other)
    assert other.may_meet(third)
    assert one.may_meet(unknown)
    assert unknown.may_meet(one)
    assert one.may_meet(None)


def test_names_that_brokers_of_two_clusters_know() -> None:
    nodes = nodes_by_address([*TWO, at(None, 7, "h9")])

    def asked(*places: tuple[str | None, str]) -> frozenset[str]:
        rows: list[Row] = [{"group": group, "broker": f"{host}:9092"} for group, host in places]
        return names_of_several(rows, "group", nodes)

    assert asked(("g", "h1"), ("g", "h2"), ("other", "h1")) == {"g"}
    assert asked(("g", "h9"), ("g", "h1"), ("g", "h2")) == {"g"}
    assert asked(("g", "h2"), ("g", "h3"), (None, "h1"), ("g", "h8")) == frozenset()


def test_one_cluster_of_which_some_do_not_tell_the_id_is_one() -> None:
    assert are_several_clusters(TWO)
    assert not are_several_clusters([TWO[0], at(None, 2, "h2")])
