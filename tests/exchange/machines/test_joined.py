"""Boxes in the place of hosts: ports take the cables by name or in order, what cannot be paired is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from exchange.machines.reading import SAMPLES, both_ways, links_of
from typer.testing import CliRunner

from synth.cli.main import app
from synth.errors import InputError
from synth.exchange.machines.formats import read, read_text
from synth.exchange.machines.joined import files_by_host, joined
from synth.exchange.machines.machine import Builder, Link, Machine, Port

GB = 1e9


def box(*ports: str, rate: float | None = None, gpus: int = 2) -> Machine:
    """GPUs on a switch at 100 GB/s, ports at NICs on it."""
    built = Builder()
    ranks = [built.rank(f"gpu{i}") for i in range(gpus)]
    switch = built.switch("pcie")
    for rank in ranks:
        built.link(rank, switch, "PCI", 100 * GB, 1e-6)
    for port in ports:
        nic = built.switch(f"nic-{port}")
        built.link(nic, switch, "PCI", 50 * GB, 1e-6)
        built.ports.append(Port(nic, port, rate))
    return built.machine("box", "mine", "a box")


def network(*cables: tuple[str, str]) -> Machine:
    """ibnetdiscover's text of hosts with these adapters, all on one leaf at 4xHDR."""
    lines = [f'Switch {len(cables)} "S-1" # "leaf"']
    for n, (host, adapter) in enumerate(cables, 1):
        lines.append(f'[{n}] "H-{n}"[1](1{n}) # "{host} {adapter}" lid {n} 4xHDR')
    return read_text("\n".join(lines) + "\n", "net.txt")


def inside(host: str, gpus: int, *nics: str) -> list[tuple[str, str, float | None, float | None]]:
    links = [(f"{host}/gpu{i}", f"{host}/pcie", 100 * GB, 1e-6) for i in range(gpus)]
    return [*links, *((f"{host}/nic-{nic}", f"{host}/pcie", 50 * GB, 1e-6) for nic in nics)]


def test_ports_are_paired_by_name_in_any_order() -> None:
    net = network(("n1", "mlx5_1"), ("n1", "mlx5_0"), ("n2", "mlx5_0"), ("n2", "mlx5_1"))
    machine = joined(net, dict.fromkeys(("n1", "n2"), box("mlx5_0", "mlx5_1", "mlx5_9")))
    own = [link for host in ("n1", "n2") for link in inside(host, 2, "mlx5_0", "mlx5_1", "mlx5_9")]
    up = [(f"{host}/nic-mlx5_{i}", "leaf", 25 * GB, None) for host in ("n1", "n2") for i in range(2)]
    assert links_of(machine) == both_ways(*own, *up)
    assert [machine.names[v] for v in machine.ranks] == ["n1/gpu0", "n1/gpu1", "n2/gpu0", "n2/gpu1"]
    assert set(machine.switches) == set(range(4, machine.nodes))
    assert "ports without a cable carry nothing: mlx5_9" in machine.assumed


def test_other_names_are_paired_in_order_and_the_smaller_rate_holds() -> None:
    net = network(("n1", "HCA-10"), ("n1", "HCA-9"), ("n2", "HCA-1"))
    machine = joined(net, {"n1": box("ib0", "ib1", rate=12.5 * GB), "n2": box("x", rate=50 * GB, gpus=1)})
    up = [("n1/nic-ib0", "leaf", 12.5 * GB, None), ("n1/nic-ib1", "leaf", 12.5 * GB, None)]
    own = [*inside("n1", 2, "ib0", "ib1"), *inside("n2", 1, "x")]
    assert links_of(machine) == both_ways(*own, *up, ("n2/nic-x", "leaf", 25 * GB, None))
    assert any("paired in order" in word for word in machine.assumed)


def test_a_tree_without_numbers_takes_every_port_and_hosts_without_a_box_stay() -> None:
    net = read_text("SwitchName=s1 Nodes=n[1-2]\nSwitchName=top Switches=s1\n", "topology.conf")
    machine = joined(net, {"n2": box("a", "b", rate=50 * GB)})
    up = [("n1", "s1", None, None), ("s1", "top", None, None)]
    ports = [(f"n2/nic-{port}", "s1", 50 * GB, None) for port in "ab"]
    assert links_of(machine) == both_ways(*inside("n2", 2, "a", "b"), *ports, *up)
    assert [machine.names[v] for v in machine.ranks] == ["n1", "n2/gpu0", "n2/gpu1"]
    assert machine.boxes == ((0,), (1, 2))


def test_a_table_of_hosts_takes_boxes_too() -> None:
    text = "src,dst,bandwidth,latency,group\nh,s,10GB/s,1us,up\ns,h,10GB/s,1us,\ng,s,10GB/s,1us,\ns,g,10GB/s,1us,\n"
    net = read_text(text, "net.csv")
    machine = joined(net, {"h": box("a", gpus=1)})
    assert links_of(machine)["h/nic-a", "s", 10 * GB, 1e-6] == 1
    assert Counter(link.group for link in machine.links)["up"] == 1


@pytest.mark.parametrize(
    ("cables", "ports", "message"),
    [
        ([("n1", "mlx5_0")], ["a", "b"], "n1 has 1 cable (mlx5_0), its box 2 ports (a, b): they are paired by name"),
        ([("n1", "x"), ("n1", "y")], ["a"], "n1 has 2 cables (x, y), its box 1 port (a)"),
        ([("n1", "x")], [], "its box 0 ports"),
    ],
)
def test_what_cannot_be_paired_is_refused(cables: list[tuple[str, str]], ports: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        joined(network(*cables, ("n2", "x")), {"n1": box(*ports)})
    assert message in str(caught.value)


def test_links_of_a_host_that_do_not_lead_back_are_refused() -> None:
    machine = Machine("m", "mine", "m", ("a", "b"), frozenset(), (Link(0, 1, "L", 1.0, 1.0),))
    with pytest.raises(InputError, match="has not as many links out as back"):
        joined(machine, {"a": box("p")})


def test_too_many_nodes_are_refused_before_they_are_made() -> None:
    net = read_text("SwitchName=s Nodes=n[1-8000]\n", "topology.conf")
    with pytest.raises(InputError, match="at most 65,536 nodes"):
        joined(net, dict.fromkeys((f"n{i}" for i in range(1, 8001)), box("p", gpus=8)))


@pytest.mark.parametrize("name", ["a100-topo.txt", "hgx-4gpu.xml", "mi250-topo.txt", "box-hwloc.xml", "npu-topo.txt"])
def test_a_box_is_no_network_of_hosts(name: str) -> None:
    with pytest.raises(InputError, match="is one box itself, no network of hosts; boxes=N joins"):
        files_by_host([str(SAMPLES / name)], read(SAMPLES / name))


def test_hosts_without_a_box_are_said() -> None:
    machine = joined(network(("n1", "x"), ("n2", "x"), ("n3", "x")), {"n2": box("p")})
    assert "hosts without a box are a rank each: n1, n3" in machine.assumed
    assert not any("a rank each" in word for word in joined(network(("n1", "x")), {"n1": box("p")}).assumed)


def test_files_are_named_by_host(tmp_path: Path) -> None:
    net = network(("n1", "x"), ("n2", "x"), ("n10", "x"))
    assert files_by_host(["a.txt"], net) == dict.fromkeys(("n1", "n2", "n10"), Path("a.txt"))
    assert files_by_host(["a.txt", "n[1,10]=b.txt"], net) == {
        "n1": Path("b.txt"),
        "n2": Path("a.txt"),
        "n10": Path("b.txt"),
    }
    for words, message in ((["n3=b.txt"], "no such host; there are n1, n2, n10"), (["n[1=b"], "hosts must be names")):
        with pytest.raises(InputError, match=message):
            files_by_host(words, net)


def test_the_command_writes_a_machine_of_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("topology.conf").write_text("SwitchName=leaf Nodes=n[1-2]\n")
    Path("box.xml").write_text((SAMPLES / "hgx-4gpu.xml").read_text())
    words = ["import", "topology.conf", "--bandwidth", "SYS=40GB/s,NET=50GB/s", "--latency", "1us", "-o"]
    done = CliRunner().invoke(app, [*words, "m.json", "--box", "box.xml"])
    assert done.exit_code == 0, done.output
    raw = json.loads(Path("m.json").read_text())
    assert raw["network"]["names"][:8] == [f"n{h}/gpu{g}" for h in (1, 2) for g in range(4)]
    assert raw["source"].endswith(f"box: {read(SAMPLES / 'hgx-4gpu.xml').source})")
    done = CliRunner().invoke(app, [*words, "other.json", "--box", "n7=box.xml"])
    assert "--box = 'n7': no such host; there are n1, n2" in str(done.exception)
    assert not Path("other.json").exists()
