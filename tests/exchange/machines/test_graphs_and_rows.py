"""Links CSV, node-link JSON and GraphML: the same kinds of numbers with units, nodes and faults."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import networkx as nx
import pytest
from exchange.machines.reading import both_ways, links_of, refused, sample, text_of
from hypothesis import given
from hypothesis import strategies as st

from synth.exchange.machines.formats import read_text
from synth.exchange.machines.machine import Hints
from synth.text import amounts as units

GB = 1e9


def test_links_csv_with_units_in_header_and_cells() -> None:
    """Nodes 0 to 3, node 2 unused; 100 Gbit/s is 12.5 GB/s; what is empty is unknown."""
    machine = sample("links.csv")
    assert machine.names == ("0", "1", "2", "3")
    found = {(e.src, e.dst): (e.kind, e.bandwidth, e.latency, e.group) for e in machine.links}
    assert found == {
        (0, 1): ("NV", 25 * GB, 0.7e-6, None),
        (1, 0): ("NV", 25 * GB, 0.7e-6, None),
        (0, 3): ("NET", 12.5 * GB, 1.3e-6, "nic0"),
        (3, 0): ("NET", 12.5 * GB, 1.3e-6, "nic0"),
        (1, 3): ("NET", None, None, None),
        (3, 1): ("NET", 12.5 * GB, None, None),
    }


@pytest.mark.parametrize("sign", [";", "\t", " ; "])
def test_links_with_another_sign_between_columns(sign: str) -> None:
    """As spreadsheets write them where numbers have commas."""
    text = text_of("links.csv")
    found = read_text(text.replace(",", sign), "links.csv")
    assert (found.links, found.names) == (read_text(text, "links.csv").links, read_text(text, "links.csv").names)
    assert "line 2, bandwidth = '25,5': must be a rate" in refused("src;dst;bandwidth\na;b;25,5\n")


def test_links_csv_with_names_and_switches() -> None:
    text = "src, dst, bandwidth\nhost1, leaf, 25GB/s\nleaf, host2, 3.125e9\n"
    machine = read_text(text, "x.csv", hints=Hints(switches=("leaf",)))
    assert machine.names == ("host1", "leaf", "host2")
    assert machine.switches == {1}
    assert links_of(machine) == Counter([("host1", "leaf", 25 * GB, None), ("leaf", "host2", 3.125 * GB, None)])


def test_node_link_json() -> None:
    """Undirected: a link each way; 400 Gbit/s is 50 GB/s; two parallel edges of one group; other attributes said."""
    machine = sample("graph.json")
    expected = both_ways(("a", "sw", 50 * GB, 1e-6), ("b", "sw", 25 * GB, 1e-6), ("b", "sw", 25 * GB, None))
    assert links_of(machine) == expected
    assert machine.switches == {2}
    assert [e.group for e in machine.links] == [None, None, "nic", "nic", "nic", "nic"]
    assert machine.unknown == (
        "what these attributes of nodes mean, which are not read: vendor",
        "what these attributes of edges mean, which are not read: weight",
    )


def test_graphml() -> None:
    machine = sample("graph.graphml")
    links = [("n0", "n2", 50 * GB, 0.5e-6), ("n2", "n1", 25 * GB, 0.35e-6), ("n1", "n0", 12.5 * GB, None)]
    assert links_of(machine) == Counter(links)
    assert machine.switches == {2}


@pytest.mark.parametrize("edges", ["links", "edges"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_what_networkx_writes_comes_back(kind: type, edges: str) -> None:
    """By both ways of writing, the same links as in the graph, whatever its kind."""
    graph = kind()
    graph.add_node("s", switch=True)
    for u, v, rate in [("a", "s", 1e9), ("s", "b", 2e9), ("b", "a", 4e9), ("b", "a", 3e9)]:
        graph.add_edge(u, v, bandwidth=rate, latency=1e-6)
    links = [(u, v, data["bandwidth"], 1e-6) for u, v, data in graph.edges(data=True)]
    expected = Counter(links) if graph.is_directed() else both_ways(*links)
    from_json = read_text(json.dumps(nx.node_link_data(graph, edges=edges)), "g.json")
    from_xml = read_text("\n".join(nx.generate_graphml(graph)), "g.graphml")
    for machine in (from_json, from_xml):
        assert links_of(machine) == expected
        assert [machine.names[v] for v in machine.switches] == ["s"]


CSV = text_of("links.csv")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0,1,25,", "0,1,fast,", "line 2, bandwidth = 'fast': must be a rate such as 25GB/s"),
        ("0,1,25,", "0,1,-25,", "line 2, bandwidth = '-25GB/s': must be in 0.001..1e+18 bytes/s"),
        ("0,1,25,", "0,1,nan,", "line 2, bandwidth = 'nanGB/s': must be a rate"),
        ("0,1,25,0.7us", "0,1,25,soon", "line 2, latency = 'soon': must be a time such as 0.7us"),
        ("0,1,25,", "0,0,25,", "line 2 = '0': goes from a node to itself"),
        ("0,1,25,", "0,,25,", "line 2, dst: is missing"),
        ("0,1,25,", "0,gpu1,25,", "line 2, dst = 'gpu1': nodes are numbers or names, not both"),
        ("0,1,25,", "0,70000,25,", "line 2, dst = '70000': must be less than 65,536"),
        ("0,1,25,0.7us,,NV", "0,1,25,0.7us,NV", "line 2: has 5 cells, the header 6"),
        ("bandwidth (GB/s)", "speed", "needs a header line src,dst[,bandwidth][,latency][,group][,class]"),
        ("group,class", "group,group", "needs a header line src,dst"),
        ("0,1,25", '0,1,"25', "not valid CSV"),
    ],
)
def test_broken_csv(old: str, new: str, message: str) -> None:
    assert old in CSV
    assert message in refused(CSV.replace(old, new, 1))


def test_csv_without_links_and_unknown_switches() -> None:
    assert "at least one link" in refused("src,dst,bandwidth\n")
    assert "--switches = '9': no such node; there are 0, 1, 2, 3" in refused(CSV, hints=Hints(switches=("9",)))


GRAPH = text_of("graph.json")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"400Gbit/s"', "true", "edges[0], bandwidth = True: must be a number or a text with a unit"),
        ('"400Gbit/s"', "NaN", "edges[0], bandwidth = nan: must be a rate"),
        ('"400Gbit/s"', "1" + 400 * "0", "edges[0], bandwidth"),
        ('"1us"', "-1", "edges[0], latency = -1: must be in 0..1e+06 s"),
        ('"target": "sw"', '"target": "nowhere"', "edges[0].target = 'nowhere': is no node of the file"),
        ('"source": "a"', '"source": "sw"', "edges[0] = 'sw': goes from a node to itself"),
        ('"source": "a", ', "", "edges[0].source: is no node of the file"),
        ('{"id": "a"}', '{"id": "b"}', "nodes[1].id = 'b': stands twice"),
        ('{"id": "a"}', '{"id": [1]}', "nodes[0].id = [1]: must be a text or a number"),
        ('"kind": "gpu"', '"kind": "toaster"', "nodes[1], kind = 'toaster': must be one of rank, gpu"),
        ('"directed": false', '"directed": "no"', "directed = 'no': must be true or false"),
        ('"graph": {}', '"directed": true', "not valid JSON: the key 'directed' stands twice"),
        ('"edges": [', '"edges": [1, ', "edges = "),
        ("]\n}", "]\n", "not valid JSON: line 12"),
    ],
)
def test_broken_node_link(old: str, new: str, message: str) -> None:
    assert old in GRAPH
    assert message in refused(GRAPH.replace(old, new, 1), format_name="node-link")


XML = text_of("graph.graphml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("50000000000.0", "fast", "not valid GraphML: could not convert string to float: 'fast'"),
        ("50000000000.0", "-1.0", "edge n0-n2, bandwidth = -1.0: must be in 0.001..1e+18 bytes/s"),
        ("0.5us", "half", "edge n0-n2, latency = 'half': must be a time"),
        ('target="n2"', 'target="n0"', "goes from a node to itself"),
        ("</graph>", "", "not valid XML: mismatched tag"),
        ('<key id="d2"', '<key id="d9"', "not valid GraphML"),
        ("<graphml", '<!DOCTYPE graphml [<!ENTITY x "y">]><graphml', "holds a DTD or entities"),
        ('<edge source="n0"', '<hyperedge/><edge source="n0"', "not valid GraphML: GraphML reader doesn't support"),
    ],
)
def test_broken_graphml(old: str, new: str, message: str) -> None:
    assert old in XML
    assert message in refused(XML.replace(old, new, 1), format_name="graphml")


def test_more_nodes_or_links_than_are_supported() -> None:
    nodes = [{"id": i} for i in range(65_537)]
    edges = [{"source": 0, "target": 1}]
    message = refused(json.dumps({"directed": True, "nodes": nodes, "links": edges}))
    assert "65,537 nodes and 1 links; at most 65,536 nodes and 4,000,000 links are supported" in message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("25GB/s", 25e9), ("200Gbit/s", 25e9), ("200Gbps", 25e9), ("25 GBps", 25e9), ("1GiB/s", 2**30),
        ("12.5e9", 12.5e9), ("0.1MB/s", 1e5), ("8b/s", 1.0),
    ],
)  # fmt: skip
def test_rates(text: str, value: float) -> None:
    assert units.rate(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.7us", 7e-7), ("350ns", 3.5e-7), ("1.3µs", 1.3e-6), ("0", 0.0), ("2 ms", 0.002), ("7e-7", 7e-7)],
)
def test_durations(text: str, value: float) -> None:
    assert units.duration(text) == value


@pytest.mark.parametrize("text", ["", "GB/s", "1_0GB/s", "inf", "1e999", "0", "-1", "1e400GB/s", "25GB", "9" * 80])
def test_no_rates(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be|beyond"):
        units.rate(text)


@given(st.decimals(min_value="0.001", max_value=10**6, allow_nan=False, places=6))
def test_a_number_means_the_decimal_that_is_written(value: object) -> None:
    assert units.rate(f"{value}GB/s") == float(Fraction(str(value)) * 10**9)
    assert units.duration(f"{value}us") == float(Fraction(str(value)) / 10**6)
