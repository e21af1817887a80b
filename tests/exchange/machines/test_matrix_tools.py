"""Matrices of other makers' tools, and files that hold several: links as the cells say, each told from the others."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from exchange.machines.reading import refused, text_of

from synth.exchange.machines.formats import FORMATS, read_text, recognised

FIELD = Path(__file__).parents[4] / "shared/data/field/06-second-host-dropped/two-hosts.txt"


def matrix(devices: list[str], cells: dict[tuple[int, int], str], rest: str = "SYS", own: str = "X") -> str:
    """A matrix as the tools print it; ``cells`` by the numbers of two devices, the smaller first."""
    lines = ["\t" + "\t".join(devices) + "\tCPU Affinity"]
    for i, device in enumerate(devices):
        row = [own if i == j else cells.get((min(i, j), max(i, j)), rest) for j in range(len(devices))]
        lines.append("\t".join([device, *row, "0-31"]))
    return "\n".join(lines) + "\n"


def links(text: str) -> Counter[tuple[str, str, str, int]]:
    """Links of the classes that are no level of PCIe, by the ends' names, class and number of bonded ones."""
    machine = read_text(text, "box.txt")
    levels = ("PIX", "PXB", "PHB", "NODE", "SYS")
    return Counter(
        (machine.names[e.src], machine.names[e.dst], e.kind, e.lanes) for e in machine.links if e.kind not in levels
    )


def both(*ends: tuple[str, str, str, int]) -> Counter[tuple[str, str, str, int]]:
    return Counter([*ends, *((v, u, kind, n) for u, v, kind, n in ends)])


NPUS = [f"NPU{i}" for i in range(4)]
PAIRS = list(combinations(range(4), 2))


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        (
            "npu-smi",
            matrix(NPUS, dict.fromkeys(PAIRS, "HCCS")),
            both(*((f"npu{u}", f"npu{v}", "HCCS", 1) for u, v in PAIRS)),
        ),
        (
            "npu-smi",
            matrix(["Phy-ID12", "Phy-ID13", "Phy-ID14", "Phy-ID15"], {(0, 1): "SIO", (2, 3): "SIO"}, "HCCS_SW"),
            both(
                ("phy-id12", "phy-id13", "SIO", 1),
                ("phy-id14", "phy-id15", "SIO", 1),
                *((f"phy-id{i}", "hccs_sw-switch", "HCCS_SW", 1) for i in range(12, 16)),
            ),
        ),
        ("npu-smi", matrix(NPUS, {(0, 1): "HCCS"}, "PHB"), both(("npu0", "npu1", "HCCS", 1))),
        (
            "mthreads-gmi",
            matrix(["GPU0", "GPU1", "GPU2", "NIC0"], dict.fromkeys([(0, 1), (0, 2), (1, 2)], "MT2")),
            both(*((f"gpu{u}", f"gpu{v}", "MT", 2) for u, v in combinations(range(3), 2))),
        ),
        ("mthreads-gmi", matrix(["GPU0", "GPU1"], {(0, 1): "MTL"}), both(("gpu0", "gpu1", "MT", 1))),
        (
            "xpu-smi",
            matrix(["GPU 0/0", "GPU 0/1", "GPU 1/0"], {(0, 1): "MDF", (0, 2): "XL8", (1, 2): "XL*"}, own="S"),
            both(("gpu0/0", "gpu0/1", "MDF", 1), ("gpu0/0", "gpu1/0", "XL", 8)),
        ),
        (
            "xpu-smi",
            matrix(["GPU 0/0", "GPU 1/0"], {(0, 1): "XL16"}, own="S").replace("\t", " |"),
            both(("gpu0/0", "gpu1/0", "XL", 16)),
        ),
    ],
)
def test_links_are_what_the_cells_say(name: str, text: str, wanted: Counter[tuple[str, str, str, int]]) -> None:
    assert [one.name for one in FORMATS if one.looks_like(text)] == [name]
    assert links(text) == wanted


def test_a_cell_whose_meaning_is_not_known_names_the_tool_and_what_always_works() -> None:
    message = refused(matrix(["GPU0", "GPU1"], {(0, 1): "MPB"}))
    assert "line 2, GPU0-GPU1 = 'MPB': what mthreads-gmi topo -m means by it is not read; a table with the" in message


@pytest.mark.parametrize("text", ["NPU0 HCCS\n", "[gaudi] topology\n 0 1 2\n", "{}", "<lspci/>"])
def test_what_is_not_known_ends_with_what_always_works(text: str) -> None:
    assert recognised(text) is None
    assert refused(text).endswith("a table with the first line src,dst,bandwidth (links CSV) always works")


ONE = matrix(["GPU0", "GPU1"], {(0, 1): "NV12"})
OTHER = matrix(["GPU0", "GPU1"], {})
PEERS = " \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n"


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        (f"host-a$ nvidia-smi topo -m\n{ONE}\nhost-b$ nvidia-smi topo -m\n{ONE}", "the matrix of line 7: the same as"),
        (f"{ONE}{ONE}{ONE}", "the matrix of line 4: the same as that of line 1"),
        (f"{ONE}\n{PEERS}", "the matrix of line 5: who may access whom"),
    ],
)
def test_what_stands_beside_the_matrix_is_said(text: str, left_out: str) -> None:
    machine = read_text(text, "hosts.txt")
    assert machine.links == read_text(ONE, "hosts.txt").links
    assert left_out in machine.left_out[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"host-a$ nvidia-smi topo -m\n{ONE}\nhost-b$ nvidia-smi topo -m\n{OTHER}", "line 7: "),
        (f"{ONE}{OTHER}", "line 4: "),
        (f"{ONE}\n{matrix(['GPU0', 'GPU1', 'GPU2'], {})}", "line 5: "),
        (f"{PEERS}{ONE}", "line 2: is of nvidia-smi topo -p2p"),
        (f"{ONE}{ONE}{text_of('k80-topo.txt')}", "a second matrix begins, unlike that of line 1"),
    ],
)
def test_machines_that_differ_are_refused_by_their_line(text: str, line: str) -> None:
    assert line in refused(text, "hosts.txt")


@pytest.mark.skipif(not FIELD.is_file(), reason="needs ../shared/data/field")
def test_the_file_of_the_field() -> None:
    assert refused(FIELD.read_text()) == (
        "broken.txt: line 7: a second matrix begins, unlike that of line 2: one machine a file; keep one of them in it"
    )
