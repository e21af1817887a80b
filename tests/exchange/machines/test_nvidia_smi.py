"""``nvidia-smi topo -m`` of several drivers: networks by hand, and what is wrong with broken matrices."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import networkx as nx
import pytest
from exchange.machines.reading import both_ways, links_of, refused, sample, text_of
from hypothesis import given
from hypothesis import strategies as st

from synth.exchange.machines.formats import read_text
from synth.exchange.machines.machine import Hints

# pairs of GPUs with two NVLinks and with one: the hybrid cube mesh of a DGX-1, six links a GPU
DOUBLE = ("01", "04", "13", "23", "26", "45", "57", "67")
SINGLE = ("02", "03", "12", "15", "37", "46", "47", "56")


def lanes(name: str, hints: Hints = Hints()) -> Counter[tuple[str, str, str, int]]:  # noqa: B008
    """Links by ends, class and number of bonded ones."""
    machine = sample(name, hints)
    return Counter((machine.names[e.src], machine.names[e.dst], e.kind, e.lanes) for e in machine.links)


def both(*links: tuple[str, str, str, int]) -> Counter[tuple[str, str, str, int]]:
    return Counter([*links, *((v, u, kind, n) for u, v, kind, n in links)])


def test_a_dgx1_has_direct_nvlinks_and_the_tree_of_its_pcie() -> None:
    """GPUs 0 and 1 share mlx5_0's switch, 2 and 3 mlx5_1's; the two switches share a host bridge; 4 to 7 likewise; two
    sockets. 16 NVLink bonds, 8+4 leaves of PIX switches, 4 up to host bridges, 2 between sockets, each both ways."""
    nv = [(f"gpu{p[0]}", f"gpu{p[1]}", "NV", n) for pairs, n in ((DOUBLE, 2), (SINGLE, 1)) for p in pairs]
    pix = [(f"gpu{g}", f"pix{g // 2}", "PIX", 1) for g in range(8)] + [
        (f"mlx5_{i}", f"pix{i}", "PIX", 1) for i in range(4)
    ]
    up = [(f"pix{i}", f"phb{i // 2}", "PHB", 1) for i in range(4)] + [(f"phb{i}", "sys0", "SYS", 1) for i in range(2)]
    assert lanes("dgx1-topo.txt") == both(*nv, *pix, *up)
    machine = sample("dgx1-topo.txt")
    assert [machine.names[v] for v in machine.ranks] == [f"gpu{i}" for i in range(8)]
    assert [port.name for port in machine.ports] == [f"mlx5_{i}" for i in range(4)]
    assert {e.bandwidth for e in machine.links} == {e.latency for e in machine.links} == {None}
    assert machine.unknown == ()


def test_an_a100_box_has_a_switch_of_its_nvlinks() -> None:
    """Every pair says NV12; 7 times 12 is more than any GPU has, so 12 lead to a switch. The header is underlined."""
    nv = [(f"gpu{g}", "nvswitch", "NV", 12) for g in range(8)]
    pcie = [(f"gpu{g}", f"pxb{g // 2}", "PXB", 1) for g in range(8)] + [
        (f"mlx5_{i}", f"pxb{i}", "PXB", 1) for i in range(4)
    ]
    assert lanes("a100-topo.txt") == both(*nv, *pcie, *((f"pxb{i}", "sys0", "SYS", 1) for i in range(4)))
    apart = "the PCIe paths of 28 pairs of GPUs with NVLinks are not in this file"
    hidden = "taken from other cells; nvidia-smi topo -mp shows them"
    assert sample("a100-topo.txt").assumed[1:] == (f"{apart}: {hidden}",)


def test_a_new_driver_prints_nics_by_number_and_pads_with_spaces() -> None:
    """A PIX switch for each GPU and its NIC, a NODE switch for each half (with NIC8 on the second), one SYS."""
    nv = [(f"gpu{g}", "nvswitch", "NV", 18) for g in range(8)]
    pix = [(f"{what}{g}", f"pix{g}", "PIX", 1) for g in range(8) for what in ("gpu", "NIC")]
    node = [(f"pix{g}", f"node{g // 4}", "NODE", 1) for g in range(8)] + [("NIC8", "node1", "NODE", 1)]
    assert lanes("h100-topo.txt") == both(*nv, *pix, *node, ("node0", "sys0", "SYS", 1), ("node1", "sys0", "SYS", 1))
    machine = sample("h100-topo.txt")
    assert [(machine.names[port.node], port.name) for port in machine.ports] == [
        (f"NIC{i}", f"mlx5_{i}") for i in range(9)
    ]


def test_an_old_driver_says_soc_and_a_machine_may_have_no_nvlinks() -> None:
    links = [("gpu0", "pix0"), ("gpu1", "pix0"), ("gpu2", "pix1"), ("gpu3", "pix1")]
    named = [(u, v, "PIX", 1) for u, v in links] + [("pix1", "phb0", "PHB", 1), ("mlx4_0", "phb0", "PHB", 1)]
    assert lanes("k80-topo.txt") == both(*named, ("pix0", "sys0", "SYS", 1), ("phb0", "sys0", "SYS", 1))
    assert sample("k80-topo.txt").unknown == (
        "whether there are NVLinks: no pair of GPUs shows any (topo -mp never does)",
    )


def four(cells: dict[tuple[int, int], str], rest: str = "NODE") -> str:
    """A matrix of four GPUs."""
    row = lambda i: [" X " if i == j else cells.get((min(i, j), max(i, j)), rest) for j in range(4)]  # noqa: E731
    rows = [f"GPU{i}\t" + "\t".join(row(i)) for i in range(4)]
    return "\n".join(["\t" + "\t".join(f"GPU{i}" for i in range(4)), *rows])


def test_direct_or_by_a_switch_where_both_may_be() -> None:
    """Four GPUs, NV4 everywhere: 12 links a GPU, direct or not; the reader says what it took, --nvlinks decides."""
    text = four(dict.fromkeys(combinations(range(4), 2), "NV4"))
    direct = read_text(text, "box.txt")
    assert links_of(direct) == both_ways(*((f"gpu{i}", f"gpu{j}", None, None) for i, j in combinations(range(4), 2)))
    assert "--nvlinks switch" in direct.assumed[0]
    assert direct.unknown == (
        "how GPU0, GPU1, GPU2, GPU3 are connected by PCIe: all their cells show NVLinks (nvidia-smi topo -mp shows it)",
    )
    switched = read_text(text, "box.txt", hints=Hints(nvlinks="switch"))
    assert links_of(switched) == both_ways(*((f"gpu{i}", "nvswitch", None, None) for i in range(4)))
    assert {link.lanes for link in switched.links} == {4}


def test_two_islands_and_a_gpu_with_fewer_links_to_its_switch() -> None:
    """GPUs 0 and 1 have a bridge of four links, 2 and 3 too: two direct bonds, no switch."""
    islands = read_text(four({(0, 1): "NV4", (2, 3): "NV4"}), "box.txt")
    assert [(e.src, e.dst) for e in islands.links if e.kind == "NV"] == [(0, 1), (1, 0), (2, 3), (3, 2)]
    cells = dict.fromkeys(combinations(range(4), 2), "NV18") | {(0, 3): "NV16", (1, 3): "NV16", (2, 3): "NV16"}
    damaged = read_text(four(cells), "box.txt")
    assert [e.lanes for e in damaged.links if e.src < 4] == [18, 18, 18, 16]


def test_cells_that_fit_no_tree_are_unknown_not_guessed() -> None:
    machine = read_text(
        four({(0, 1): "PIX", (1, 2): "PIX", (0, 2): "PHB", (0, 3): "NV2", (1, 3): "NV2", (2, 3): "NV2"}), "b"
    )
    assert {link.kind for link in machine.links} == {"NV"}
    assert any("fits no tree (GPU0-GPU2 is PHB" in word for word in machine.unknown)


LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")


@st.composite
def boxes(draw: st.DrawFn) -> tuple[list[str], dict[frozenset[str], str]]:
    """Devices in a random hierarchy, and what the matrix says of every two: the lowest level that holds both, or NV1
    for some pairs of GPUs."""
    gpus, nics = draw(st.integers(1, 6)), draw(st.integers(0, 4))
    devices = [f"GPU{i}" for i in range(gpus)] + [f"NIC{i}" for i in range(nics)]
    place = {device: [draw(st.integers(0, 2)) for _ in LEVELS[:-1]] for device in devices}
    cells = {}
    for a, b in combinations(devices, 2):
        shared = next((i for i in range(4) if place[a][i:] == place[b][i:]), 4)
        bonded = a.startswith("GPU") and b.startswith("GPU") and draw(st.booleans())
        cells[frozenset((a, b))] = "NV1" if bonded else LEVELS[shared]
    return devices, cells


@given(boxes(), st.sampled_from(["\t", "    "]))
def test_any_hierarchy_is_read_back(box: tuple[list[str], dict[frozenset[str], str]], gap: str) -> None:
    """In the tree that is read, the way between two devices goes up to the level of their cell and no higher; NVLinks
    are the pairs that say so."""
    devices, cells = box
    rows = [gap + gap.join(devices) + gap + "CPU Affinity"]
    rows += [
        a + gap + gap.join(" X " if a == b else cells[frozenset((a, b))] for b in devices) + gap + "0-7"
        for a in devices
    ]
    if len(devices) == 1:
        assert "holds no link" in refused("\n".join(rows))
        return
    machine = read_text("\n".join(rows), "box.txt")
    name = {device: device.lower() if device.startswith("GPU") else device for device in devices}
    tree: nx.Graph[str] = nx.Graph()
    for link in machine.links:
        if link.kind != "NV":
            tree.add_edge(machine.names[link.src], machine.names[link.dst], level=LEVELS.index(link.kind))
    assert not tree or nx.is_forest(tree)
    bonds = {frozenset((machine.names[e.src], machine.names[e.dst])) for e in machine.links if e.kind == "NV"}
    assert bonds == {frozenset(name[d] for d in pair) for pair, cell in cells.items() if cell == "NV1"}
    for pair, cell in cells.items():
        if cell != "NV1":
            way = nx.shortest_path(tree, *(name[device] for device in pair))
            assert max(tree.edges[edge]["level"] for edge in nx.utils.pairwise(way)) == LEVELS.index(cell)


GOOD = text_of("dgx1-topo.txt")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "GPU1\tNV2\t X ",
            "GPU1\tNV2\tNV1",
            "line 3, GPU1-GPU1 = 'NV1': X stands for a device and itself, nowhere else",
        ),
        ("GPU0\t X \tNV2\tNV1", "GPU0\t X \tNV2\tLAN", "line 2, GPU0-GPU2 = 'LAN': must be one of X, NV#, PSB, PIX,"),
        ("GPU0\t X \tNV2\tNV1", "GPU0\t X \tNV2\tNV2", "line 2: GPU2 is NV2, but GPU0 in the row GPU2 is NV1 (line 4)"),
        ("GPU7\tSYS", "GPU8\tSYS", "line 9: the row GPU8 has no column"),
        ("GPU7\tSYS", "GPU6\tSYS", "line 9: the row GPU6 stands twice, first in line 8"),
        ("\tGPU0\tGPU1", "\tGPU0\tGPU0", "line 1: GPU0 stands twice"),
        (GOOD[GOOD.index("GPU7\tSYS") : GOOD.index("mlx5_0\tPIX")], "", "line 1: the row GPU7 is missing"),
        ("PHB\tPIX\t20-39,60-79\nmlx5_0", "PHB\nmlx5_0", "line 9: the row GPU7 has 11 cells, the header 12 devices"),
    ],
)
def test_a_broken_matrix_is_refused_by_its_line(old: str, new: str, message: str) -> None:
    assert old in GOOD
    assert message in refused(GOOD.replace(old, new, 1))


def test_all_faults_at_once() -> None:
    lines = refused(
        GOOD.replace("GPU0\t X \tNV2", "GPU0\tSYS\tWAN", 1).replace("GPU7\tSYS", "GPU7\tLAN", 1)
    ).splitlines()
    assert [line.split(" = ")[0] for line in lines] == [
        "broken.txt: line 2, GPU0-GPU0", "broken.txt: line 2, GPU0-GPU1", "broken.txt: line 9, GPU7-GPU0",
    ]  # fmt: skip


def test_peer_access_is_another_matrix() -> None:
    text = "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n"
    assert "is of nvidia-smi topo -p2p" in refused(text)


def test_links_that_no_gpu_can_have_and_no_switch_explains() -> None:
    cells = dict.fromkeys(combinations(range(4), 2), "NV18") | {(0, 1): "NV2"}
    message = refused(four(cells))
    assert "the NVLinks of a GPU add up to 54, where a GPU has 18 at most" in message
    assert "GPU0-GPU1" in message
    taken = read_text(four(cells), "box.txt", hints=Hints(nvlinks="direct"))
    assert len(taken.links) == 12
