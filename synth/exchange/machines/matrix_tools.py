"""The tools that print a matrix of connections: NVIDIA's, Moore Threads', Huawei's and Intel's words.

* ``nvidia-smi topo -m``: ``NV#``, and the levels of PCIe.
* ``mthreads-gmi topo -m``: ``MT#``, # bonded MTLinks (``MTL``: of unknown number).
* ``npu-smi info -t topo``: ``HCCS``, ``SIO`` (two dies of a package), ``UB``; ``HCCS_SW`` leads through a switch.
* ``xpu-smi topology -m``: ``XL#``, # Xe Link lanes between tiles of two cards, ``MDF`` between those of one card;
  ``XL*`` is a way over both, no link of its own. Tiles are called ``GPU card/tile``.
"""

from __future__ import annotations

import re

from synth.exchange.machines import other_texts, rocm_smi
from synth.exchange.machines.device_matrix import Dialect, header
from synth.exchange.machines.machine import NO_HINTS, Hints, Machine
from synth.exchange.machines.matrix_machine import read as read_matrix

NVIDIA = Dialect(
    "nvidia-smi", "nvidia-smi topo -m", re.compile(r"GPU[0-9]{1,4}"), {"NV": re.compile(r"NV([0-9]{1,4})")}, "NV#",
    "NVLinks", most=18, tree="nvidia-smi topo -mp",  # 18: of any GPU so far (H100, B200)
)  # fmt: skip
MOORE_THREADS = Dialect(
    "mthreads-gmi", "mthreads-gmi topo -m", NVIDIA.device, {"MT": re.compile(r"MTL?([0-9]{0,4})")}, "MT#", "MTLinks",
    unread=("MPB",),
)  # fmt: skip
HUAWEI = Dialect(
    "npu-smi", "npu-smi info -t topo", re.compile(r"(?:NPU|Phy-ID)[0-9]{1,4}"),
    {kind: re.compile(kind) for kind in ("HCCS", "HCCS_SW", "SIO", "UB")}, "HCCS, HCCS_SW, SIO, UB", "HCCS links",
    switched=("HCCS_SW",),
)  # fmt: skip
INTEL = Dialect(
    "xpu-smi", "xpu-smi topology -m", re.compile(r"GPU[0-9]{1,4}/[0-9]{1,3}"),
    {"XL": re.compile(r"XL([0-9]{1,4})"), "MDF": re.compile("MDF")}, "XL#, XL*, MDF", "Xe Links",
    apart=("XL*",), own="S",
    rewritten=((re.compile(r"GPU ([0-9]{1,4}/[0-9]{1,3})"), r"GPU\1"),),
)  # fmt: skip

_DEVICES = ("GPU", "NPU", "Phy-ID")


class Tool:
    """A dialect as a format of topology: the two functions that every reader has."""

    def __init__(self, dialect: Dialect, others: tuple[Dialect, ...] = ()) -> None:
        """``others``: dialects with the same devices, told by their cells."""
        self.dialect, self.others = dialect, others

    def looks_like(self, text: str) -> bool:
        """Whether a text is such a matrix: its header's line is there, and no cell is another tool's own."""
        if not any(word in text for word in _DEVICES):
            return False
        lines = self.dialect.lines(text)
        at = header(self.dialect, lines)
        if at is None or rocm_smi.looks_like(text) or other_texts.OTHER_MAKERS.search(text):
            return False
        words = {
            word for line in lines[at + 1 :] if self.dialect.device.match(line.strip()) for word in line.split()[1:]
        }
        if any(other.bond(word) or word in other.unread for other in self.others for word in words):
            return False
        return any(map(self._own, words)) or self._named(text)

    def _own(self, word: str) -> bool:
        """Whether a cell is one of this tool's own."""
        return self.dialect.bond(word) is not None or word in self.dialect.unread

    def _named(self, text: str) -> bool:
        """Whether cells that several tools print are this one's: NVIDIA's, unless the text names the other."""
        named = MOORE_THREADS.name in text
        return named if self.dialect is MOORE_THREADS else not (named and self.dialect is NVIDIA)

    def read(self, text: str, name: str, hints: Hints = NO_HINTS) -> Machine:
        """The machine. Raises :class:`InputError`."""
        return read_matrix(self.dialect, text, name, hints)


nvidia_smi = Tool(NVIDIA, (MOORE_THREADS,))
mthreads_gmi = Tool(MOORE_THREADS, (NVIDIA,))
npu_smi = Tool(HUAWEI)
xpu_smi = Tool(INTEL)
