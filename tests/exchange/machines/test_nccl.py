"""NCCL's topology files: networks by hand with NCCL's own bandwidths, what is missing said, broken files refused."""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET

import pytest
from exchange.machines.reading import both_ways, links_of, refused, sample, text_of

from synth.exchange.machines.formats import read_text
from synth.exchange.machines.gpu_rates import nvlink_rate

GB = 1e9


def test_gpus_on_an_nvswitch() -> None:
    """Three of four GPUs have 2 x 9 NVLinks of 20.6 GB/s to the switch; PCIe of 16 lanes at 32 GT/s carries 48 GB/s; a
    port of 400 Gbit/s is a way out, one of speed -1 one of unknown rate with a latency of 75 us."""
    machine = sample("hgx-4gpu.xml")
    nv = [(f"gpu{i}", "nvswitch", 370.8 * GB, None) for i in range(3)]
    pci = [
        ("0000:15:00.0", "cpu0", 48 * GB, None),
        ("gpu0", "0000:15:00.0", 48 * GB, None),
        ("0000:19:00.0", "0000:15:00.0", 48 * GB, None),
        ("gpu1", "cpu0", 48 * GB, None),
        ("gpu2", "cpu1", 48 * GB, None),
        ("gpu3", "cpu1", 48 * GB, None),
    ]
    assert links_of(machine) == both_ways(*nv, *pci, ("cpu0", "cpu1", None, None))
    assert [machine.names[v] for v in machine.ranks] == ["gpu0", "gpu1", "gpu2", "gpu3"]
    ports = [(machine.names[p.node], p.name, p.bandwidth, p.latency) for p in machine.ports]
    assert ports == [("0000:19:00.0", "mlx5_0", 50 * GB, None), ("cpu1", "eth0", None, 75e-6)]
    assert machine.unknown == ("NVLinks of gpu3: the file has no nvlink element for them",)


def test_direct_nvlinks_and_a_pcie_speed_that_is_not_stated() -> None:
    """Two NVLinks of 20 GB/s (sm 70); 16 lanes at 8 GT/s carry 12 GB/s; an empty speed is unknown, not generation 3."""
    machine = sample("v100-pair.xml")
    links = both_ways(("gpu0", "gpu1", 40 * GB, None), ("gpu0", "cpu-1", 12 * GB, None), ("gpu1", "cpu-1", None, None))
    assert links_of(machine) == links


def test_a_cloud_file_has_no_nvlinks_and_says_so() -> None:
    machine = sample("cloud-topo.xml")
    bridge = "ffff:ff:01.0"
    ends = ("gpu0", bridge), ("gpu1", bridge), ("0101:00:00.0", bridge), (bridge, "cpu0")
    assert links_of(machine) == both_ways(*((u, v, 24 * GB, None) for u, v in ends))
    missing = "NVLinks of gpu0, gpu1: the file has no nvlink element for them, nor a gpu element"
    assert machine.unknown == (missing,)
    assert [port.bandwidth for port in machine.ports] == [None]


@pytest.mark.parametrize("name", ["hgx-4gpu.xml", "v100-pair.xml"])
@pytest.mark.parametrize("tclass", [None, "0x030200", "0x068000", "0x068001"])
def test_nvlinks_that_lead_to_their_own_gpu_are_unknown(name: str, tclass: str | None) -> None:
    """For every choice of GPUs whose NVLinks point at themselves, as in a cloud's file: the machine is the one without
    these elements, and they are asked for by name and number, none made up."""
    root = ET.fromstring(text_of(name))
    own = {gpu: pci for pci in root.iter("pci") for gpu in pci.findall("gpu") if gpu.find("nvlink") is not None}
    gpus = list(own)
    for chosen in range(1, 2 ** len(gpus)):
        astray, bare = copy.deepcopy(root), copy.deepcopy(root)
        counts = {}
        for k, gpu in enumerate(gpus):
            if not chosen >> k & 1:
                continue
            bus = own[gpu].get("busid", "")
            counts[f"gpu{gpu.get('rank')}"] = sum(int(link.get("count", "")) for link in gpu.findall("nvlink"))
            for there, keep in ((astray, True), (bare, False)):
                mine = next(pci for pci in there.iter("pci") if pci.get("busid") == bus).find("gpu")
                assert mine is not None
                for link in mine.findall("nvlink"):
                    link.set("target", bus.upper())
                    link.set("tclass", tclass or link.get("tclass", ""))
                    if not keep:
                        mine.remove(link)
        machine = read_text(ET.tostring(astray, encoding="unicode"), name)
        without = read_text(ET.tostring(bare, encoding="unicode"), name)
        assert sorted(links_of(machine)) == sorted(links_of(without))
        said = next(word for word in machine.unknown if "the file names the GPU itself" in word)
        for gpu, count in counts.items():
            assert f"{gpu} ({count})" in said
            assert not any(gpu in word for word in machine.unknown if "has no nvlink element" in word)


def test_rates_of_one_nvlink_by_generation() -> None:
    """NCCL's table; sm 89 counts as 80, 103 as 100, and what came before NVLink is unknown."""
    rates = {60: 18, 70: 20, 75: 20, 80: 20, 86: 12, 89: 20, 90: 20.6, 100: 40.1, 103: 40.1}
    assert {sm: nvlink_rate(sm) for sm in rates} == {sm: rate * GB for sm, rate in rates.items()}
    assert nvlink_rate(50) is nvlink_rate(None) is None


def test_one_direction_only_unranked_gpus_and_elements_that_are_not_read() -> None:
    text = text_of("v100-pair.xml")
    one_way = text.replace('<nvlink target="0001:00:00.0" count="2" tclass="0x030200"/>', "<warp/>")
    machine = read_text(one_way, "x.xml")
    assert [(e.src, e.dst) for e in machine.links if e.kind == "NV"] == [(0, 1)]
    assert any("NVLinks back of gpu0-gpu1: the file has one direction only" in word for word in machine.unknown)
    assert any("not read: warp (1)" in word for word in machine.unknown)
    alone = read_text(text.replace(' rank="1"', ""), "x.xml")
    assert len(alone.ranks) == 1
    assert alone.left_out == ("GPU 0002:00:00.0, which has no rank",)
    assert any("what 0002:00:00.0 is, to which 2 NVLinks of gpu0 lead" in word for word in alone.unknown)


def test_two_hosts_in_one_dump() -> None:
    body = text_of("v100-pair.xml").partition('<system version="1">')[2].partition("</system>")[0]
    first = body.replace("<cpu ", '<cpu host_hash="0xa" ')
    second = (
        body.replace("<cpu ", '<cpu host_hash="0xb" ').replace('rank="0"', 'rank="2"').replace('rank="1"', 'rank="3"')
    )
    machine = read_text(f'<system version="1">{first}{second}</system>', "x.xml")
    assert [(e.src, e.dst) for e in machine.links if e.kind == "NV"] == [(0, 1), (1, 0), (2, 3), (3, 2)]
    assert machine.names[4:] == ("0/cpu-1", "1/cpu-1")
    assert not any(link.kind == "SYS" for link in machine.links)


def test_gpu_to_cpu_links_state_their_rate() -> None:
    text = text_of("v100-pair.xml").replace(
        'gdr="0"><nvlink target="0002', 'gdr="0"><c2c bw="44712" count="5"/><nvlink target="0002'
    )
    machine = read_text(text, "x.xml")
    assert [(e.src, e.dst, e.bandwidth) for e in machine.links if e.kind == "C2C"] == [
        (0, 2, 223.56 * GB),
        (2, 0, 223.56 * GB),
    ]


BOMB = '<!DOCTYPE system [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><system><cpu numaid="0">&b;</cpu></system>'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('count="2"', 'count="many"', "cpu[0]/pci[0001:00:00.0]/gpu/nvlink@count = 'many': must be a whole number"),
        ('count="2"', 'count="-2"', "cpu[0]/pci[0001:00:00.0]/gpu/nvlink@count = '-2': must be in 1..1000"),
        ('count="2"', "", "cpu[0]/pci[0001:00:00.0]/gpu/nvlink@count: is missing"),
        (
            'tclass="0x030200"',
            'tclass="0x05"',
            "nvlink@tclass = '0x05': must be 0x03…, 0x12… (a GPU), 0x068000 (an NVSwitch) or",
        ),
        (
            'sm="70"',
            'sm="99999999999999999999"',
            "cpu[0]/pci[0001:00:00.0]/gpu@sm = '99999999999999999999': must be a whole",
        ),
        ('rank="1"', 'rank="0"', "gpu = 0: 2 GPUs have the same rank"),
        ('busid="0002:00:00.0"', 'busid="0001:00:00.0"', "gpu = '0001:00:00.0': 2 GPUs have the same address"),
        ('busid="0002:00:00.0"', 'busid="two"', "cpu[0]/pci@busid = 'two': must be a PCI address such as 0000:18:00.0"),
        ('link_speed="8 GT/s"', 'link_speed="8 GB/s"', "@link_speed = '8 GB/s': must be one of 2.5 GT/s, 5 GT/s,"),
        (
            'link_width="16"',
            'link_width="x16"',
            "@link_speed = '8 GT/s': needs a link_width, which must be a whole number",
        ),
        ('numaid="-1"', "", "cpu[0]@numaid: is missing"),
        ("</cpu>", "</cpu><gpu/>", "system/gpu: must be cpu"),
        ("</gpu>", "", "line 7, column 7: not valid XML: mismatched tag"),
    ],
)
def test_a_broken_file_is_refused_by_its_path(old: str, new: str, message: str) -> None:
    text = text_of("v100-pair.xml")
    assert old in text
    assert message in refused(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "holds a DTD or entities"),
        ('<!DOCTYPE system SYSTEM "http://localhost/x"><system/>', "holds a DTD or entities"),
        ("<system>" + "<pci>" * 100 + "</pci>" * 100 + "</system>", "is nested deeper than 64 elements"),
        ('<system version="1"/>', "holds no GPU"),
        ('<system><cpu numaid="0"><pci busid="0000:00:16.0"/></cpu></system>', "1 PCI devices have no class at all"),
        ('<graphs version="1"/>', "is NCCL's search result (NCCL_GRAPH_FILE): channels, no machine"),
        ('<algo name="x"/>', "is an MSCCL algorithm: steps of a schedule, no machine"),
    ],
)
def test_what_is_no_machine(text: str, message: str) -> None:
    assert message in refused(text)


def test_speed_and_latency_of_ports_are_checked() -> None:
    text = text_of("hgx-4gpu.xml")
    wrong = text.replace('speed="400000"', 'speed="fast"').replace('latency="75"', 'latency="nan"')
    message = refused(wrong)
    assert "nic/net[0]@speed = 'fast': must be a whole number" in message
    assert "cpu[1]/nic/net[0]@latency = 'nan': must be a time in us" in message
