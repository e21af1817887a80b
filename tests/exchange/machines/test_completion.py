"""What is done with a machine before it is scheduled: boxes, classes left out, numbers supplied, what is unknown."""

from __future__ import annotations

import pytest
from exchange.machines.reading import links_of, sample

from synth.errors import InputError
from synth.exchange.machines import completion
from synth.exchange.machines.completion import Supplied, by_class, missing, only, parted, several, supplied
from synth.exchange.machines.formats import read_text
from synth.exchange.machines.machine import Machine
from synth.text.amounts import rate

GB = 1e9


def shown(machine: Machine) -> list[str]:
    return [str(fault) for fault in missing(machine)]


def test_a_number_for_a_class_is_that_of_one_nvlink() -> None:
    """Pairs of a DGX-1 with two NVLinks get 50 GB/s where one carries 25; the rest stays unknown."""
    machine = only(several(sample("dgx1-topo.txt"), 1), ["NV"])
    made = supplied(machine, Supplied({"NV": 25 * GB}, {"": 7e-7}, ("--bandwidth NV=25GB/s",)))
    assert {(e.lanes, e.bandwidth, e.latency) for e in made.links} == {(2, 50 * GB, 7e-7), (1, 25 * GB, 7e-7)}
    assert made.given == ("--bandwidth NV=25GB/s",)
    assert made.names == tuple(f"gpu{i}" for i in range(8))
    assert missing(made) == []
    assert made.left_out == (
        "mlx5_0, mlx5_1, mlx5_2, mlx5_3: they lead out of this one box (boxes=2 joins two such boxes)",
        "links of the classes PIX, PHB, SYS (--only NV)",
    )


@pytest.mark.parametrize(("name", "told"), [("dgx1", 0), ("a100", 1), ("h100", 1)])
def test_nothing_is_told_of_classes_of_links_that_are_left_out(name: str, told: int) -> None:
    """Without PCIe nothing of its paths, without NVLinks nothing of theirs; with both everything."""
    whole = sample(f"{name}-topo.txt")
    texts = {text: set(whole.about.get(text, ())) for text in (*whole.unknown, *whole.assumed)}
    assert any("PCI" in text for text in texts)
    nvlinks = only(whole, ["NV"])
    assert (nvlinks.unknown, len(nvlinks.assumed)) == ((), told)
    assert not any("PCI" in text for text in nvlinks.assumed)
    pcie = only(whole, [kind for kind in whole.kinds if kind != "NV"])
    assert {*pcie.unknown, *pcie.assumed} == {text for text, kinds in texts.items() if kinds != {"NV"}}
    assert only(whole, whole.kinds).assumed == whole.assumed


def test_what_is_unknown_is_named_by_class_with_the_option() -> None:
    assert shown(sample("dgx1-topo.txt")) == [
        "bandwidth: unknown for NV (32 links), PIX (24 links), PHB (8 links), SYS (4 links); give --bandwidth "
        "NV=…,PIX=…,PHB=…,SYS=… (NV: of one NVLink, one direction)",
        "latency: unknown for NV (32 links), PIX (24 links), PHB (8 links), SYS (4 links); give --latency "
        "NV=0.7us,PIX=0.7us,PHB=0.7us,SYS=0.7us",
        "classes: or leave some out: --only NV",
    ]
    assert shown(sample("graph.graphml")) == ["latency: unknown for link (1 links); give --latency link=0.7us"]


def test_a_named_class_replaces_what_the_file_says_a_bare_number_fills_gaps() -> None:
    machine = sample("v100-pair.xml")
    filled = supplied(machine, Supplied({"": 9 * GB}, {}))
    assert [e.bandwidth for e in filled.links] == [40 * GB, 40 * GB, 12 * GB, 12 * GB, 9 * GB, 9 * GB]
    named = supplied(machine, Supplied({"NV": 25 * GB}, {}))
    assert [e.bandwidth for e in named.links][:2] == [50 * GB, 50 * GB]


def test_two_boxes_are_joined_by_one_switch() -> None:
    """16 GPUs first, then the switches of each box, then the one between; four ports a box, each both ways."""
    machine = only(several(sample("dgx1-topo.txt"), 2), ["NV", "PIX", "PHB", "NET"])
    assert machine.names[:2] == ("0/gpu0", "0/gpu1")
    assert machine.names[8] == "1/gpu0"
    assert machine.names[-1] == "net"
    assert machine.switches == frozenset(range(16, len(machine.names)))
    net = [key for key in links_of(machine) if "net" in key[:2]]
    assert sorted(key[0] for key in net if key[1] == "net") == [f"{b}/mlx5_{i}" for b in range(2) for i in range(4)]
    assert len(net) == 16
    assert len(machine.links) == 2 * (32 + 24 + 8) + 16
    assert parted(machine) is None
    assert "NET" in machine.kinds


def test_ports_keep_their_rates_between_boxes() -> None:
    machine = several(sample("hgx-4gpu.xml"), 3)
    net = [e for e in machine.links if e.kind == "NET"]
    assert sorted({(e.bandwidth, e.latency) for e in net}, key=str) == [(50 * GB, None), (None, 75e-6)]
    assert len(net) == 3 * 2 * 2


def test_groups_of_boxes_are_their_own() -> None:
    machine = sample("links.csv")
    with pytest.raises(InputError, match="no way out of the box"):
        several(machine, 2)
    from dataclasses import replace

    from synth.exchange.machines.machine import Port

    pair = several(replace(machine, ports=(Port(0, "p"),)), 2)
    assert {link.group for link in pair.links} == {None, "0/nic0", "1/nic0"}


def test_switches_that_lead_nowhere_go_ranks_stay() -> None:
    text = "src,dst,bandwidth\na,s,1e9\ns,a,1e9\ns,t,1e9\nt,s,1e9\nb,s,1e9\ns,b,1e9\nt,u,1e9\n"
    from synth.exchange.machines.machine import Hints

    machine = read_text(text, "x.csv", hints=Hints(switches=("s", "t", "u")))
    made = completion.without_dead_ends(machine)
    assert made.names == ("a", "s", "b")
    assert made.left_out == ("t, u: switches that lead nowhere",)
    assert len(made.links) == 4


def test_parts_that_do_not_reach_each_other_are_named() -> None:
    machine = read_text("src,dst\n0,1\n1,0\n2,3\n3,2\n3,0\n", "x.csv")
    assert parted(machine) == "the ranks fall into 2 parts that do not reach each other: {0, 1}, {2, 3}"


def test_options_that_do_not_fit() -> None:
    machine = sample("teccl-input.json")
    cases = [
        (lambda: only(machine, ["NV"]), "--only = 'NV': no such class of links; there are 50GB/s, 25GB/s"),
        (lambda: supplied(machine, Supplied({"NV": 1e9}, {})), "--bandwidth = 'NV': no such class of links"),
        (lambda: supplied(machine, Supplied({"": 1e9}, {})), "--bandwidth: every bandwidth is known"),
        (lambda: several(sample("dgx1-topo.txt"), 5000), "--boxes = 5000: must be at most 4096"),
    ]
    for run, message in cases:
        with pytest.raises(InputError) as caught:
            run()
        assert message in str(caught.value)


def test_values_by_class() -> None:
    assert by_class("25GB/s", rate) == {"": 25e9}
    assert by_class("NV=25GB/s, PIX=12e9,1e9", rate) == {"NV": 25e9, "PIX": 12e9, "": 1e9}
    for text in ("NV=1e9,NV=2e9", "=1e9", "NV=", "", "NV=1e9,"):
        with pytest.raises(ValueError, match=r"must be"):
            by_class(text, rate)
