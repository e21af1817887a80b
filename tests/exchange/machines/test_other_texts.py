"""Output of tools that says nothing of a topology: the tool is named, and what to give instead."""

from __future__ import annotations

import pytest
from exchange.machines.reading import SAMPLES, refused

from synth.errors import InputError
from synth.exchange.machines.formats import read_text
from synth.exchange.machines.other_texts import known


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |\n", "nvidia-smi topo -m prints"),
        ("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n\t Link 0: 25 GB/s\n", "what nvidia-smi nvlink prints"),
        ("==== ROCm System Management Interface ====\nGPU  Temp  AvgPwr\n0    35.0c 22.0W\n", "rocm-smi --showtopo"),
        ("| npu-smi 24.1.rc1.b030            Version: 24.1.rc1.b030 |\n", "npu-smi info -t topo"),
        ("CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n", "give what ibnetdiscover prints"),
        ("-[0000:00]-+-00.0  Intel Corporation Device\n           +-01.0-[01]----00.0\n", "the tree of lspci"),
        ("Machine (251GB total)\n  Package L#0\n    NUMANode L#0 (P#0 125GB)\n", "give what lstopo --of xml prints"),
        ("mx-smi  version: 2.1.9\n=== MetaX System Management Interface Log ===\n", "another maker's tool"),
        ("mx-smi topo -m\n\tGPU0\tGPU1\tNode Affinity\nGPU0\tX\tMX\t0\nGPU1\tMX\tX\t0\n", "another maker's tool"),
        ("\tMLU0\tMLU1\tCPU Affinity\nMLU0\tX\tMLULink\t0-3\nMLU1\tMLULink\tX\t0-3\n", "another maker's tool"),
        ("mthreads-gmi:1.14.0     Driver Version:2.7.0\n0  MTT S4000  |0000:01:00.0\n", "mthreads-gmi topo -m prints"),
        ("| Device ID | Device Information     |\n| 0         | Device Name: Intel  |\n", "xpu-smi topology -m prints"),
        ("LINK METRIC TABLE:\n       bdf  bit_rate\nGPU0   0000:0c:00.0 32 Gb/s 512 Gb/s XGMI\n", "amd-smi topology"),
        ('[{"gpu": 0, "links": [{"gpu": 1, "weight": 15, "link_type": "XGMI"}]}]\n', "without --json and --csv"),
        ('{"system": {"(Topology) Weight between DRM devices 0 and 1": "15"}}\n', "without --json and --csv"),
        ("gpu,bdf,link_type\n0,0000:0c:00.0,XGMI\n", "without --json and --csv"),
        ("GPU0GPU1CPU Affinity\nGPU0XNODE0-31\nGPU1NODEX0-31\n", "without the spaces between its words"),
        ("| HL-SMI Version:         hl-1.15.1-fw-49.0.0.0 |\n", "another maker's tool"),
        ("node1:12:12 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB\n", "NCCL_TOPO_DUMP_FILE=topo.xml"),
    ],
)
def test_the_tool_is_named(text: str, words: str) -> None:
    message = refused(text)
    assert words in message
    assert message.startswith("broken.txt: is ")
    assert message.endswith("a table with the first line src,dst,bandwidth (links CSV) always works")
    assert words in refused("".join(f"n1: {line}\n" for line in text.splitlines()))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('Ca 1 "H-1" # "n1 mlx5_0"\n[1](11) "S-1"[1] # "leaf" lid 3 9xHDR\n', "ibnetdiscover"),
        ("GPU0 GPU1\nGPU0 X\nGPU1 NV1 X\n", "nvidia-smi"),
        ("SwitchName=a\n", "slurm"),
    ],
)
def test_a_refusal_ends_with_what_the_file_was_read_as(text: str, name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_text(text, "x")
    assert (caught.value.hint or "").startswith(f"read as {name} (")
    assert (caught.value.hint or "").endswith("src,dst,bandwidth (links CSV) always works")


def test_no_text_of_a_known_format_is_refused_by_its_marks() -> None:
    """Marks are looked for where no reader takes the text; a sample that had one would still be read."""
    assert [path.name for path in SAMPLES.iterdir() if known(path.read_text())] in ([], ["mi250-topo.txt"])
