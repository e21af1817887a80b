"""hwloc's XML of a box: GPUs and NICs on their bridges at the rates that it states, matrices of NVLinks and XGMI."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from exchange.machines.reading import both_ways, links_of, refused

from synth.exchange.machines.formats import FORMATS, read, read_text

FIELD = Path(__file__).parents[4] / "shared/data/field/12-fabric-files-not-read/hwloc.xml"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">\n'


def device(bus: str, kind: str, speed: str, number: int, *inner: str) -> str:
    """A PCI device with devices of the operating system, numbered on."""
    own = "".join(
        f'<object type="OSDev" gp_index="{number + 1 + i}" name="{name}" osdev_type="{3 if "mlx" in name else 2}"/>'
        for i, name in enumerate(inner)
    )
    return (
        f'<object type="PCIDev" gp_index="{number}" pci_busid="{bus}" pci_type="{kind} [10de:2330] a1" '
        f'pci_link_speed="{speed}">{own}</object>'
    )


def bridge(bus: str, speed: str, *inner: str) -> str:
    return (
        f'<object type="Bridge" bridge_type="1-1" gp_index="{int(bus[5:7], 16) + 500}" pci_busid="{bus}" '
        f'pci_type="0604 [1000:c010]" pci_link_speed="{speed}">{"".join(inner)}</object>'
    )


def package(number: int, *inner: str) -> str:
    host = f'<object type="Bridge" bridge_type="0-1" depth="0">{"".join(inner)}</object>'
    return f'<object type="Package" os_index="{number}"><object type="Core" os_index="0"/>{host}</object>'


def box(*packages: str, rest: str = "") -> str:
    return f'{HEAD}<object type="Machine" os_index="0">{"".join(packages)}</object>{rest}\n</topology>\n'


def matrix(name: str, ends: list[int], rows: list[list[int]]) -> str:
    cells = " ".join(str(cell) for row in rows for cell in row)
    indexes = " ".join(map(str, ends))
    return (
        f'<distances2 type="OSDev" nbobjs="{len(ends)}" kind="10" name="{name}" indexing="gp">'
        f'<indexes length="9">{indexes}</indexes><u64values length="9">{cells}</u64values></distances2>'
    )


GPU0 = device("0000:03:00.0", "0302", "63.015385", 20, "nvml0", "cuda0")
GPU1 = device("0000:04:00.0", "0302", "63.015385", 30, "nvml1")
GPU2 = device("0000:83:00.0", "0302", "31.5", 40, "nvml2")
NIC = device("0000:05:00.0", "0207", "0.000000", 50, "mlx5_0", "ib0")
VGA = device("0000:07:00.0", "0300", "0.5", 60, "card0")
SPREAD = box(package(0, bridge("0000:01:00.0", "31.5", GPU1, NIC, GPU0), VGA), package(1, GPU2))


def test_devices_hang_on_their_bridges() -> None:
    machine = read_text(SPREAD, "box.xml")
    near = [("gpu0", 63.015385e9), ("gpu1", 63.015385e9), ("0000:05:00.0", None)]
    assert links_of(machine) == both_ways(
        *((name, "0000:01:00.0", rate, None) for name, rate in near),
        ("0000:01:00.0", "package0", 31.5e9, None),
        ("gpu2", "package1", 31.5e9, None),
        ("package0", "package1", None, None),
    )
    assert machine.boxes == ((0, 1, 2),)
    assert [(machine.names[port.node], port.name) for port in machine.ports] == [("0000:05:00.0", "mlx5_0")]
    assert any(word.startswith("links between GPUs: the file has no matrix") for word in machine.unknown)


@pytest.mark.parametrize(
    ("name", "kind"), [("NVLinkBandwidth", "NV"), ("XGMIBandwidth", "XGMI"), ("XeLinkBandwidth", "XL")]
)
def test_a_matrix_is_links_of_a_class(name: str, kind: str) -> None:
    rows = [[1000000, 50000, 0], [50000, 1000000, 25000], [0, 25000, 1000000]]
    machine = read_text(SPREAD.replace("\n</topology>", matrix(name, [21, 31, 41], rows) + "\n</topology>"), "box.xml")
    found = {(e.src, e.dst): e.bandwidth for e in machine.links if e.kind == kind}
    assert found == {(0, 1): 50e9, (1, 0): 50e9, (1, 2): 25e9, (2, 1): 25e9}


def test_ports_of_nvswitches_are_one_switch() -> None:
    rows = [[0, 0, 200_000, 100_000], [0, 0, 200_000, 100_000], [200_000, 200_000, 0, 0], [100_000, 100_000, 0, 0]]
    rest = matrix("NVLinkBandwidth", [21, 31, 900, 901], rows)
    machine = read_text(box(package(0, GPU0, GPU1), rest=rest), "box.xml")
    nv = {(machine.names[e.src], machine.names[e.dst]): e.bandwidth for e in machine.links if e.kind == "NV"}
    ends = [pair for gpu in ("gpu0", "gpu1") for pair in permutations((gpu, "nvswitch"))]
    assert nv == dict.fromkeys(ends, 300e9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (box(package(0, NIC)), "holds no GPU"),
        (SPREAD.replace("0000:03:00.0", "three"), "object@pci_busid = 'three': must be a PCI address"),
        (SPREAD.replace("0000:04:00.0", "0000:03:00.0"), "object[0000:03:00.0]: stands twice"),
        (SPREAD.replace("63.015385", "fast", 1), "@pci_link_speed = 'fast': must be a number of GB/s"),
        (
            box(package(0, GPU0), rest=matrix("NVLinkBandwidth", [21], [[1, 2]])),
            "must hold 1 whole indexes and 1 whole",
        ),
        (box(package(0, GPU0), rest=matrix("XGMIBandwidth", [21], [[-1]])), "= '-1': must hold 1 whole"),
        (
            box(package(0, GPU0), rest=matrix("XGMIBandwidth", [21], [[1]]).replace('"1"', '"999999999"', 1)),
            "nbobjs: must be in 1..1024",
        ),
        (SPREAD.replace('"hwloc2.dtd"', '"hwloc2.dtd" [<!ENTITY a "aa">]'), "holds a DTD or entities"),
        (SPREAD.replace("</object>", "", 1), "not valid XML"),
    ],
)
def test_a_broken_file_is_refused(text: str, message: str) -> None:
    assert [one.name for one in FORMATS if one.looks_like(text)] == ["hwloc"]
    assert message in refused(text)


@pytest.mark.skipif(not FIELD.is_file(), reason="needs ../shared/data/field")
def test_the_file_of_the_field() -> None:
    assert links_of(read(FIELD)) == both_ways(("gpu0", "machine", 63.015385e9, None))
