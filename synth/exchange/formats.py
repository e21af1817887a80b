"""The formats that records are exported to: data; what writes them is imported when it is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from synth.method import Target
from synth.solvers.model_file import Form

What = Literal["transfers", "traces", "algorithm", "plan", "model"]


@dataclass(frozen=True)
class Format:
    """One format. ``of``: what it is written of, and with which function (``target``):

    * ``transfers``, the schedule's moves: ``(transfers, path)``;
    * ``traces``, the same as a file a rank: ``(transfers, prefix) -> paths``;
    * ``algorithm``, the moves lowered to thread blocks and steps: ``(algorithm, path, executor)``;
    * ``plan``, a plan of MSCCL++ as JSON has it: ``(plan, path)``;
    * ``model``, the program's model, which :mod:`synth.solvers.model_file` writes.

    ``executors``: who runs it, the first by default.
    """

    name: str
    suffix: str
    summary: str
    of: What
    target: Target = ""
    executors: tuple[str, ...] = ()

    @property
    def form(self) -> Form:
        """The same as a form of models. Raises ``ValueError`` for other formats."""
        if self.of != "model":
            raise ValueError(f"{self.name} is no form of models")
        return cast(Form, self.name)


FORMATS = {
    one.name: one
    for one in (
        Format("msccl-xml", ".xml", "an algorithm for MSCCL: thread blocks and steps", "algorithm",
               "synth.exchange.msccl_xml:write", ("azure", "msccl")),
        Format("mscclpp", ".json", "a plan for MSCCL++'s executor", "plan", "synth.exchange.mscclpp:store",
               ("mscclpp", "mscclpp:0.9", "mscclpp:0.8")),
        Format("chakra", ".et", "Chakra traces, a file a rank: a custom collective for ASTRA-sim", "traces",
               "synth.exchange.chakra:write"),
        Format("goal", ".goal", "GOAL's text: what every rank sends, receives and adds, for LogGOPSim and ATLAHS",
               "transfers", "synth.exchange.goal:write"),
        Format("csv", ".csv", "a row a move from rank to rank", "transfers", "synth.exchange.transfers_csv:write"),
        Format("mps", ".mps", "a program's model, as solvers read it", "model"),
        Format("lp", ".lp", "a program's model, as people read it", "model"),
        Format("cpsat", ".pbtxt", "a CP-SAT model: its protocol buffer in text", "model"),
    )
}  # fmt: skip
