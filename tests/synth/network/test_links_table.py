"""One table of links, three doors: ``links=`` of xtree and of fabric, and ``synth import``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import synth
from synth.errors import InputError
from synth.exchange.machines.completion import Supplied, completed
from synth.exchange.machines.formats import read_text
from synth_models.fabric.instance import FabricInstance
from synth_models.xtree.instance import XTreeInstance

RATES = {"25GB/s": 25e9, "200Gbit/s": 25e9, "25e9": 25e9, "1 MiB/s": 2.0**20, "": None}
WAITS = {"0.7us": 7e-7, "700ns": 7e-7, "7e-7": 7e-7, "0": 0.0, "": None}
NAMES = st.lists(st.text("abcXYZ/_-.0123 ", min_size=1, max_size=8).map(str.strip), min_size=2, max_size=6, unique=True)
Link = tuple[int, int, float, float]


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[Link], list[str], dict[str, str], dict[str, bool]]:
    """A CSV file of a ring and some more links (parallel ones too): its text, what it says by arithmetic of the test's
    own, its nodes' names, the keys that fill its gaps, and which those are."""
    named = draw(st.booleans())
    names = [f"n{name}" for name in draw(NAMES)] if named else [str(v) for v in range(draw(st.integers(2, 6)))]
    n = len(names)
    more = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=6))
    ends = [(v, (v + 1) % n) for v in range(n)] + [(u, v) for u, v in more if u != v]
    cells = [(*pair, draw(st.sampled_from(sorted(RATES))), draw(st.sampled_from(sorted(WAITS)))) for pair in ends]
    columns = draw(st.permutations(["src", "dst", "bandwidth", "latency"]))
    written = [{"src": names[u], "dst": names[v], "bandwidth": b, "latency": w} for u, v, b, w in cells]
    rows = [",".join(row[column] for column in columns) for row in written]
    gaps = {"bandwidth": any(not b for *_, b, _ in cells), "latency": any(not w for *_, w in cells)}
    keys = {key: text for key, text in (("bandwidth", "8Gbit/s"), ("latency", "2us")) if gaps[key]}
    said = [(u, v, RATES[b] if b else 1e9, WAITS[w] if w else 2e-6) for u, v, b, w in cells]
    return "\n".join([",".join(columns), *rows]) + "\n", said, names, keys, gaps  # type: ignore[return-value]


def doors(text: str, folder: Path, **keys: Any) -> Iterator[tuple[list[Link], tuple[str, ...]]]:
    """The network through each door: links, and the nodes' names."""
    file = folder / "links.csv"
    file.write_text(text)
    xtree = synth.make("xtree", links=file, chunks=1, **keys)
    assert isinstance(xtree, XTreeInstance)
    net = xtree.topology
    yield listed(net), tuple(net.name(v) for v in range(net.nodes))
    fabric = synth.make("fabric", links=file, bytes="1GB", collective="broadcast", **keys)
    assert isinstance(fabric, FabricInstance)
    yield listed(fabric.machine.network), fabric.machine.names
    supplied = Supplied(
        {"": 1e9} if "bandwidth" in keys else {}, {"": 2e-6} if "latency" in keys else {}
    )  # as --bandwidth 8Gbit/s --latency 2us
    machine = completed(read_text(text, "links.csv"), supplied)
    imported = synth.make("fabric", machine=machine, bytes="1GB", collective="broadcast")
    assert isinstance(imported, FabricInstance)
    yield listed(imported.machine.network), imported.machine.names


def listed(net: Any) -> list[Link]:
    columns = (net.src, net.dst, net.bandwidth, net.latency)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(tables())
def test_three_doors_one_network(tmp_path_factory: pytest.TempPathFactory, table: Any) -> None:
    """Through every door the links that stand there, in their order, units and gaps read alike, labels kept."""
    text, said, names, keys, _ = table
    for links, called in doors(text, tmp_path_factory.mktemp("t"), **keys):
        order = list(dict.fromkeys(node for u, v, *_ in said for node in (u, v))) if not names[0].isdigit() else None
        place = {node: i for i, node in enumerate(order)} if order else {v: v for v in range(len(names))}
        assert links == [(place[u], place[v], b, w) for u, v, b, w in said]
        assert called == tuple(names[v] for v in order) if order else called == tuple(names)


@given(tables())
def test_what_is_missing_is_asked_for_by_name(tmp_path_factory: pytest.TempPathFactory, table: Any) -> None:
    """Nothing is made up: a gap without its key is refused at both doors of `make` and by `import`, naming it."""
    text, _, _, keys, gaps = table
    file = tmp_path_factory.mktemp("t") / "links.csv"
    file.write_text(text)
    for key in ("bandwidth", "latency"):
        others = {one: value for one, value in keys.items() if one != key}
        for family, more in (("xtree", {}), ("fabric", {"bytes": "1GB", "collective": "broadcast"})):
            if not gaps[key]:
                with pytest.raises(InputError, match=f"{key} = .*every link has its own {key}"):
                    synth.make(family, links=file, **others, **more, **{key: "1"})
                continue
            with pytest.raises(InputError, match=f"{key}: is unknown for line [0-9]+.*give {key}="):
                synth.make(family, links=file, **others, **more)


def test_a_file_without_numbers_makes_nothing_up(tmp_path: Path) -> None:
    """Neither XTree's 128 GB/s and 20 ns nor no latency at all."""
    (tmp_path / "l.csv").write_text("src,dst\n0,1\n1,0\n")
    for family, more in (("xtree", {}), ("fabric", {"bytes": 2})):
        with pytest.raises(InputError) as caught:
            synth.make(family, links=tmp_path / "l.csv", **more)
        assert [fault.path for fault in caught.value.faults] == ["bandwidth", "latency"]


def test_from_python_as_from_a_file(tmp_path: Path) -> None:
    """A frame and a graph with the same links, texts with units among the numbers."""
    rows = [("a", "b", "1GB/s", 1e-6), ("b", "a", 1e9, "1us"), ("a", "b", 2e9, 0.0)]
    text = "src,dst,bandwidth,latency\n" + "".join(f"{u},{v},{b},{w}\n" for u, v, b, w in rows)
    wanted = next(doors(text, tmp_path))
    frame = pd.DataFrame(rows, columns=["src", "dst", "bandwidth", "latency"])
    graph = nx.MultiDiGraph()
    for u, v, b, w in rows:
        graph.add_edge(u, v, bandwidth=b, latency=w)
    made = synth.make("xtree", links=frame)
    assert isinstance(made, XTreeInstance)
    assert (listed(made.topology), made.topology.names) == wanted
    made = synth.make("xtree", links=graph)
    assert isinstance(made, XTreeInstance)
    assert sorted(listed(made.topology)) == sorted(wanted[0])
    assert made.topology.names == ("a", "b")


def test_doubled_rows_are_parallel_links_and_that_is_said(tmp_path: Path) -> None:
    text = "src,dst,bandwidth,latency\na,b,1e9,0\na,b,1e9,0\nb,a,1e9,0\n"
    assert [len(links) for links, _ in doors(text, tmp_path)] == [3, 3, 3]
    words = "rows with the same ends are parallel links: a -> b (2)"
    for family, more in (("xtree", {}), ("fabric", {"bytes": 2})):
        made = synth.make(family, links=tmp_path / "links.csv", **more)
        assert made.notes == (words,)
        assert made.source.endswith(words)
    assert words in read_text(text, "links.csv").assumed


def test_labels_are_shown(tmp_path: Path) -> None:
    """In the schedule's text and its picture, also such as a picture would take for a formula."""
    file = tmp_path / "l.csv"
    file.write_text("src,dst,bandwidth,latency\n$x,gpu1,1e9,0\ngpu1,$x,1e9,0\n")
    for family, more in (("xtree", {}), ("fabric", {"bytes": 2})):
        record = synth.solve(synth.make(family, links=file, **more), "pull")
        assert record.ok
        assert "gpu1" in record.describe()
        record.plot("labels").canvas.draw()


@pytest.mark.parametrize(
    ("family", "text", "message"),
    [
        ("xtree", "src,dst,group\n0,1,g\n1,0,\n", "line 2, group: links that take turns are no part of this family"),
        ("xtree", "src,dst,speed\n0,1,5\n", "needs a header line src,dst"),
        ("fabric", "src,dst,bandwidth\n0,1,1e400\n", "line 2, bandwidth = '1e400'"),
        ("fabric", "src,dst,bandwidth\n0,gpu,1\n", "nodes are numbers or names, not both"),
        ("fabric", "src,dst\n" + "n" * 101 + ",b\n", "is longer than 100 characters"),
        ("fabric", "src,dst\n²,b\nb,²\n", "bandwidth: is unknown"),
        ("fabric", "src,dst\na\x01,b\na\\x01,b\n", "two nodes have the same name"),
    ],
)
def test_wrong_tables(family: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        synth.make(family, links=tmp_path / "l.csv", **({"bytes": 2} if family == "fabric" else {}))
    assert message in str(caught.value)


def test_positions_of_a_graph_are_where_its_nodes_are_drawn() -> None:
    """As ``pos`` in Python, as ``x`` and ``y`` in a file; where one node has none, no position is used."""
    from synth.exchange.machines.file import as_raw

    graph = nx.cycle_graph(4)
    nx.set_edge_attributes(graph, {edge: {"bandwidth": "25GB/s", "latency": "1us"} for edge in graph.edges})
    nx.set_node_attributes(graph, {v: (2.0 * v, -v) for v in graph}, "pos")
    for family in ("fabric", "xtree"):
        keys = {"collective": "allgather", "bytes": "1MiB"} if family == "fabric" else {"chunks": "1"}
        made: Any = synth.make(family, links=graph, **keys)
        assert made.network.positions == ((0, 0), (2, -1), (4, -2), (6, -3))
    numbers = '"bandwidth": 1e9, "latency": 0'
    text = '{"directed": true, "nodes": [{"id": "a", "x": 1, "y": 2.5}, {"id": "b", "pos": "3,4"}], "links": '
    text += f'[{{"source": "a", {numbers}, "target": "b"}}, {{"source": "b", {numbers}, "target": "a"}}]}}'
    assert as_raw(read_text(text, "m.json"))["network"]["positions"] == [[1.0, 2.5], [3.0, 4.0]]
    del graph.nodes[0]["pos"]
    assert synth.make("fabric", links=graph, collective="allgather", bytes="1MiB").network.positions is None
    graph.edges[0, 1]["latency"] = "soon"
    with pytest.raises(InputError) as wrong:
        synth.make("fabric", links=graph, collective="allgather", bytes="1MiB")
    assert len(wrong.value.faults) == 1  # not also that links are missing
    graph.edges[0, 1]["latency"] = "1us"
    graph.nodes[0]["pos"] = "here"
    with pytest.raises(InputError, match=r"node 0, pos.*two numbers"):
        synth.make("fabric", links=graph, collective="allgather", bytes="1MiB")


def test_comments_before_the_header_and_cells_in_quotes(tmp_path: Path) -> None:
    """As people begin a file and as spreadsheets write it, through every door; faults keep their lines."""
    rows = [("a", "b", "25GB/s", "1us"), ("b", "a", "25GB/s", "1us")]
    plain = "\n".join(",".join(row) for row in (("src", "dst", "bandwidth", "latency"), *rows)) + "\n"
    quoted = "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in plain.splitlines()) + "\n"
    expected = list(doors(plain, tmp_path))
    for text in (f"# my links\n\n  # one way a line\n{plain}", quoted, f"\ufeff# mine\n{quoted}"):
        assert list(doors(text, tmp_path)) == expected
    with pytest.raises(InputError, match=r"line 4, bandwidth = 'fast'"):
        read_text(f"# mine\n# too\n{plain}".replace("25GB/s", "fast", 1), "links.csv")
