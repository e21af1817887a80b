"""What a text is that no reader takes: the tool that printed it, and what to give instead."""

from __future__ import annotations

import re

_HEAD = 20_000  # characters in which a mark is looked for
OTHER_MAKERS = re.compile(r"(?i)\b(?:mx-smi|hl-smi|cnmon|efsmi|brsmi|neuron-ls)\b|\bMLU0[ \t]+MLU1\b|\| NEURON +\|")
_TEXTS = (
    (r"GPU0GPU1", "nvidia-smi's matrix without the spaces between its words: give it as text, not as a page shows it"),
    (r"\| NVIDIA-SMI [0-9]", "what nvidia-smi prints by itself: give what nvidia-smi topo -m prints"),
    (r"Link [0-9]{1,2}: [0-9.]+ GB/s", "what nvidia-smi nvlink prints: give what nvidia-smi topo -m prints"),
    (
        r'(?m)"\(Topology\) |"link_type": *"|^gpu,.*\b(?:link_type|num_hops|weight)',
        "what rocm-smi or amd-smi prints as JSON or CSV: give the tables that rocm-smi --showtopo or amd-smi topology "
        "prints without --json and --csv",
    ),
    (
        r"ROCm System Management Interface|AMD-SMI [0-9]|LINK METRIC TABLE",
        "what rocm-smi or amd-smi prints of each GPU: give what rocm-smi --showtopo or amd-smi topology prints",
    ),
    (r"npu-smi [0-9]", "what npu-smi prints by itself: give what npu-smi info -t topo prints"),
    (r"mthreads-gmi[: ]", "what mthreads-gmi prints by itself: give what mthreads-gmi topo -m prints"),
    (
        r"Device ID +\| (?:Device|Topology) Information",
        "what xpu-smi prints of each device: give what xpu-smi topology -m prints",
    ),
    (
        r"(?m)^[ \t]*(?:CA '|CA type:|hca_id:)",
        "what ibstat or ibv_devinfo prints of one host: give what ibnetdiscover prints of the network",
    ),
    (
        r"(?m)^[ \t]*-?[ \t+\\|-]*\[[0-9a-fA-F]{4}:[0-9a-fA-F]{2}",
        "the tree of lspci: give NCCL_TOPO_DUMP_FILE's XML, or what lstopo --of xml prints",
    ),
    (
        r"(?m)^[ \t]*Machine \(.*(?:total|[KMGT]B)|Package L#0",
        "lstopo's picture in text: give what lstopo --of xml prints",
    ),
    (OTHER_MAKERS.pattern, "another maker's tool, whose words are not read"),
    (r"NCCL (?:INFO|WARN)", "a log of NCCL: run with NCCL_TOPO_DUMP_FILE=topo.xml and give topo.xml"),
)


def known(text: str) -> str | None:
    """What the text is and what to give instead; None where that is not known."""
    head = text[:_HEAD]
    return next((words for marks, words in _TEXTS if re.search(marks, head)), None)
