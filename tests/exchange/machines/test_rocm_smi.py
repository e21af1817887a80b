"""``rocm-smi --showtopo`` and ``amd-smi topology``: XGMI where pairs are one hop apart, PCIe, broken tables refused."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from exchange.machines.reading import both_ways, links_of, refused

from synth.exchange.machines.formats import FORMATS, read, read_text

FIELD = Path(__file__).parents[4] / "shared/data/field/04-rocm-smi-taken-for-nvidia-smi/topo.txt"
TITLES = {
    "weight": "Weight between two GPUs",
    "hops": "Hops between two GPUs",
    "type": "Link Type between two GPUs",
    "bandwidth": "Bandwidth between two GPUs",
}


def tables(gpus: int, numa: list[int] | None = None, **cells: dict[tuple[int, int], object]) -> str:
    """What rocm-smi prints of so many GPUs; ``cells`` by table and pair, the smaller first, (-1, -1) for others."""
    lines = ["============================ ROCm System Management Interface ============================"]
    for kind, by_pair in cells.items():
        lines += [f" {TITLES[kind]} ".center(90, "="), "       " + "".join(f"GPU{i}".ljust(13) for i in range(gpus))]
        for i in range(gpus):
            row = [0 if i == j else by_pair.get((min(i, j), max(i, j)), by_pair.get((-1, -1))) for j in range(gpus)]
            lines.append(f"GPU{i}   " + "".join(str(cell).ljust(13) for cell in row))
        lines.append("")
    if numa is not None:
        lines.append(" Numa Nodes ".center(90, "="))
        for i, node in enumerate(numa):
            lines += [f"GPU[{i}]\t\t: (Topology) Numa Node: {node}", f"GPU[{i}]\t\t: (Topology) Numa Affinity: {node}"]
    return "\n".join([*lines, " End of ROCm SMI Log ".center(90, "=")]) + "\n"


ALL = (-1, -1)
DIES = {(0, 1): 15, (2, 3): 15, (0, 2): 15, (1, 3): 15, ALL: 30}


def test_a_mesh_of_eight() -> None:
    text = tables(8, [0] * 4 + [1] * 4, weight={ALL: 15}, hops={ALL: 1}, type={ALL: "XGMI"})
    machine = read_text(text, "mi300x.txt")
    pairs = combinations(range(8), 2)
    assert links_of(machine) == both_ways(*((f"gpu{u}", f"gpu{v}", None, None) for u, v in pairs))
    assert machine.kinds == ["XGMI"]
    assert machine.unknown == ("how GPUs hang on PCIe: the tables name XGMI alone",)


@pytest.mark.parametrize("kinds", [("weight",), ("weight", "type"), ("weight", "hops", "type")])
def test_two_hops_are_no_link(kinds: tuple[str, ...]) -> None:
    """Weights decide where they are there: the driver counts XGMI over another die as one hop on some boxes."""
    cells: dict[str, dict[tuple[int, int], object]] = {"weight": {**DIES}, "hops": {ALL: 1}, "type": {ALL: "XGMI"}}
    machine = read_text(tables(4, **{kind: cells[kind] for kind in kinds}), "mi250.txt")
    ends = (("gpu0", "gpu1"), ("gpu2", "gpu3"), ("gpu0", "gpu2"), ("gpu1", "gpu3"))
    assert links_of(machine) == both_ways(*((u, v, None, None) for u, v in ends))
    assert machine.assumed[0].startswith("2 pairs of GPUs (weight 30) have no link of their own")


def test_hops_decide_where_there_are_no_weights() -> None:
    machine = read_text(tables(3, hops={(0, 1): 1, ALL: 2}, type={ALL: "XGMI"}), "box.txt")
    assert links_of(machine) == both_ways(("gpu0", "gpu1", None, None))


def test_pcie_hangs_on_the_numa_nodes() -> None:
    text = tables(4, [0, 0, 1, 1], weight={(0, 1): 15, ALL: 40}, type={(0, 1): "XGMI", ALL: "PCIE"})
    machine = read_text(text, "box.txt")
    found = Counter((machine.names[e.src], machine.names[e.dst], e.kind) for e in machine.links if e.src < e.dst)
    pci = [(f"gpu{i}", f"numa{i // 2}", "PCI") for i in range(4)]
    assert found == Counter([("gpu0", "gpu1", "XGMI"), *pci, ("numa0", "numa1", "SYS")])
    without = read_text(tables(2, weight={ALL: 40}, type={ALL: "PCIE"}), "box.txt")
    assert links_of(without) == both_ways(("gpu0", "host", None, None), ("gpu1", "host", None, None))
    assert any("does not name the NUMA nodes" in word for word in without.assumed)


AMD_SMI = """ACCESS TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 ENABLED      ENABLED
0000:22:00.0 ENABLED      ENABLED

WEIGHT TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 0            15
0000:22:00.0 15           0

LINK TYPE TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 SELF         XGMI
0000:22:00.0 XGMI         SELF

NUMA BW TABLE:
             0000:0c:00.0 0000:22:00.0
0000:0c:00.0 N/A          50000-200000
0000:22:00.0 50000-200000 N/A
"""


def test_amd_smi_names_gpus_by_their_address_and_states_a_bandwidth() -> None:
    machine = read_text(AMD_SMI, "box.txt")
    assert links_of(machine) == both_ways(("gpu0", "gpu1", 200e9, None))
    assert {link.lanes for link in machine.links} == {4}


def test_tables_in_markdown() -> None:
    """As pages show them: titles in bold or with a sign before, bars between cells, names of rows in bold."""
    rows = ["| **GPU0** | 0 | {} |", "| **GPU1** | {} | 0 |"]
    head = ["|  | GPU0 | GPU1 |", "| :--- | :--: | :--: |"]
    text = "\n".join(
        "\n".join([title, "", *head, *(row.format(cell) for row in rows), ""])
        for title, cell in (("\u2696 **Weight Between Two GPUs**", 15), ("**Hops Between Two GPUs**", 1))
    )
    assert links_of(read_text(text, "page.md")) == both_ways(("gpu0", "gpu1", None, None))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (tables(2, type={ALL: "XGMI"}), "does not say which pairs are one hop apart: rocm-smi --showtopo prints"),
        (tables(2, hops={ALL: 1}), "does not say which pairs XGMI joins"),
        (tables(2, weight={ALL: 15}).replace("15 ", "xv ", 1), "line 4, GPU0-GPU1 = 'xv': must be a whole number"),
        (tables(2, weight={ALL: 15}).replace("15 ", "40 ", 1), "line 4, GPU0-GPU1: 40 one way, 15 back (line 5)"),
        (tables(2, weight={ALL: 15}).replace("GPU1   15", "GPU2   15"), "line 5: the row GPU2 has no column"),
        (tables(2, weight={ALL: 15}).replace("GPU1   15", "GPU1"), "line 5: the row GPU1 has 1 cells, the header 2"),
        (tables(2, weight={ALL: 15}, type={ALL: "LAN"}), "line 9, GPU0-GPU1 = 'LAN': must be one of XGMI, PCIE"),
        (tables(2, weight={ALL: 15}) + tables(3, weight={ALL: 15}), "other GPUs than in the tables before"),
        (tables(2, weight={ALL: 15}) * 2, "line 10: a second table of weight begins: one machine a file"),
        (tables(2, weight={ALL: 10**30}), "must be a whole number"),
        (tables(600, weight={}).partition("\nGPU0   ")[0], "600 GPUs; at most 512 are supported"),
        (" Weight between two GPUs ", "holds no table of pairs of GPUs"),
        (" Link accessibility between two GPUs \n  GPU0 GPU1\nGPU0 True True\n", "holds no table of pairs of GPUs"),
        (
            tables(3, weight={ALL: 15}).replace("\nGPU2", "\nX"),
            "line 3: of the table of weight the rows GPU2 are missing",
        ),
    ],
)
def test_broken_tables_are_refused_by_their_line(text: str, message: str) -> None:
    assert [one.name for one in FORMATS if one.looks_like(text)] == ["rocm-smi"]
    assert message in refused(text)


@pytest.mark.skipif(not FIELD.is_file(), reason="needs ../shared/data/field")
def test_the_file_of_the_field() -> None:
    machine = read(FIELD)
    assert links_of(machine) == both_ways(("gpu0", "gpu1", None, None))
    assert machine.kinds == ["XGMI"]
