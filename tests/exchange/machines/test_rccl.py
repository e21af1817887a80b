"""RCCL's topology files: every xgmi element is a link of RCCL's rate, and no other link joins two GPUs."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from itertools import combinations, permutations
from pathlib import Path

import pytest
from exchange.machines.reading import links_of, refused

from synth.exchange.machines.formats import read, read_text
from synth.exchange.machines.machine import Machine

DATA = Path(__file__).parents[4] / "shared/data"
FIELD = DATA / "field/03-rccl-xgmi-not-read/two.xml"
MODELS = sorted((DATA / "rccl").glob("*.xml"))  # ROCm/rccl tools/topo_expl/models
PUBLISHED_GBPS = {"906": 24, "908": 24, "910": 36, "940": 48, "gfx942": 48}  # src/graph/topo.h by gcn of these files


def bus(gpu: int) -> str:
    return f"0000:{gpu + 16:02x}:00.0"


def box(gpus: int, links: dict[tuple[int, int], int], gcn: str | None, tclass: str = "0x120000") -> str:
    """A file of so many GPUs under one CPU; ``links``: how many lead from the first to the second."""
    lines = []
    for gpu in range(gpus):
        arch = "" if gcn is None else f' gcn="{gcn}"'
        bonds = "".join(
            f'<xgmi target="{bus(v)}" count="{count}" tclass="{tclass}"/>'
            for (u, v), count in links.items()
            if u == gpu
        )
        lines.append(
            f'<pci busid="{bus(gpu)}" class="{tclass}" link_speed="32.0 GT/s PCIe" link_width="16">'
            f'<gpu dev="{gpu}" sm="304" rank="{gpu}" gdr="1"{arch}>{bonds}</gpu></pci>'
        )
    return f'<system version="2"><cpu numaid="0" arch="x86_64">{"".join(lines)}</cpu></system>'


def between_gpus(machine: Machine) -> Counter[tuple[int, int, str, int, float | None]]:
    """Links whose ends are both ranks."""
    ranks = set(machine.ranks)
    links = (link for link in machine.links if {link.src, link.dst} <= ranks)
    return Counter((link.src, link.dst, link.kind, link.lanes, link.bandwidth) for link in links)


PAIR = {(0, 1): 1, (1, 0): 1}
DIES = {(u, v): 4 if u // 2 == v // 2 else 1 for u, v in permutations(range(4), 2)}
MESH = dict.fromkeys(permutations(range(8), 2), 1)


@pytest.mark.parametrize(
    ("gpus", "links", "gcn", "tclass", "rate"),
    [
        (2, PAIR, "gfx942", "0x120000", 48e9),
        (4, DIES, "910", "0x038000", 36e9),
        (8, MESH, "gfx941:sramecc+:xnack-", "0x120000", 48e9),
        (3, {(0, 1): 2, (1, 0): 2}, "906", "0x038000", 24e9),
        (2, PAIR, "gfx1250", "0x120000", None),
    ],
)
def test_links_are_those_of_the_elements(
    gpus: int, links: dict[tuple[int, int], int], gcn: str, tclass: str, rate: float | None
) -> None:
    machine = read_text(box(gpus, links, gcn, tclass), "box.xml")
    assert between_gpus(machine) == Counter(
        (u, v, "XGMI", count, None if rate is None else count * rate) for (u, v), count in links.items()
    )
    said = any("what RCCL reckons with, not the data sheet" in word for word in machine.assumed)
    assert said is (rate is not None)
    joined = {u for u, _ in links}
    bare = [word for word in machine.unknown if word.startswith("XGMI links of ")]
    assert bool(bare) is (len(joined) < gpus)


def test_links_that_lead_nowhere_are_said_and_not_made_up() -> None:
    machine = read_text(box(2, {(0, 1): 1, (1, 1): 3, (1, 7): 2}, "gfx942"), "box.xml")
    assert between_gpus(machine) == Counter([(0, 1, "XGMI", 1, 48e9)])
    for words in (
        "XGMI links of gpu1 (3) lead",
        f"{bus(7)} is, to which 2 XGMI links of gpu1",
        "XGMI links back of gpu0",
    ):
        assert any(words in unknown for unknown in machine.unknown), machine.unknown


def test_broken_files_are_refused_by_their_path() -> None:
    text = box(2, PAIR, "gfx942")
    path = f"cpu[0]/pci[{bus(0)}]/gpu/xgmi"
    for old, new, message in [
        ('count="1"', 'count="1000000000"', f"{path}@count = '1000000000': must be in 1..1000"),
        ('count="1"', "", f"{path}@count: is missing"),
        ('count="1" tclass="0x120000"', 'count="1" tclass="0x05"', f"{path}@tclass = '0x05': must be 0x03…, 0x12…"),
    ]:
        assert old in text
        assert message in refused(text.replace(old, new, 1))


@pytest.mark.skipif(not FIELD.is_file(), reason="needs ../shared/data/field")
def test_the_file_of_the_field() -> None:
    machine = read(FIELD)
    assert between_gpus(machine) == Counter([(0, 1, "XGMI", 1, 48e9), (1, 0, "XGMI", 1, 48e9)])
    assert machine.unknown == ()


@pytest.mark.skipif(not MODELS, reason="needs ../shared/data/rccl: ROCm/rccl tools/topo_expl/models")
def test_rccls_own_files() -> None:
    """Links between GPUs are those of the elements, counted here from the XML alone."""
    for path in MODELS:
        ranks: dict[str, int] = {}
        bonds = []
        for pci in ET.parse(path).iter("pci"):
            for gpu in pci.findall("gpu"):
                ranks[pci.attrib["busid"]] = int(gpu.attrib["rank"])
                bonds += [(pci.attrib["busid"], gpu.attrib["gcn"], bond.attrib) for bond in gpu.findall("xgmi")]
        wanted = Counter(
            (
                ranks[own],
                ranks[bond["target"]],
                "XGMI",
                int(bond["count"]),
                int(bond["count"]) * PUBLISHED_GBPS[gcn] * 1e9,
            )
            for own, gcn, bond in bonds
        )
        machine = read(path)
        assert between_gpus(machine) == wanted, path.name
        assert len(machine.ranks) == len(ranks)


def test_devices_of_one_address_are_devices_of_their_own() -> None:
    """A bridge that stands once for every GPU below it, as in RCCL's topo_4p4h.xml."""
    bridge = '<pci busid="0000:c5:00.0" class="0x060400" link_speed="8 GT/s" link_width="16">'
    text = (
        box(2, PAIR, "908", "0x038000")
        .replace('<pci busid="0000:1', f'{bridge}<pci busid="0000:1')
        .replace("</gpu></pci>", "</gpu></pci></pci>")
    )
    machine = read_text(text, "box.xml")
    ends = ("0000:c5:00.0", "0000:c5:00.0 (2)")
    pci = {(u, v) for u, v, rate, _ in links_of(machine) if rate is not None and not {"gpu0", "gpu1"} >= {u, v}}
    assert pci == {
        pair
        for gpu, end in zip(("gpu0", "gpu1"), ends, strict=True)
        for a, b in combinations((gpu, end, "cpu0"), 2)
        for pair in ((a, b), (b, a))
        if {a, b} != {gpu, "cpu0"}
    }
    assert any("PCI devices of one address (0000:c5:00.0)" in word for word in machine.assumed)
