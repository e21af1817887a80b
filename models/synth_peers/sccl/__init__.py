"""SCCL (Cai et al., PPoPP 2021) as data: method ``steps`` of family fabric and the checks of what it states."""

from __future__ import annotations

from synth.method import Certificates, Method
from synth.options import Parameter, read_flag, read_int

_HERE = "synth_peers.sccl."
_PARAMETERS = (
    Parameter("steps", read_int(1, 10_000), None, "steps S that a schedule may take (SCCL)", question=True),
    Parameter("rounds", read_int(1, 2**20), None, "rounds R that its steps may have in all (SCCL)", question=True),
    Parameter(
        "chunks",
        read_int(1, 2**20),
        None,
        "chunks C to cut a block into (SCCL); for alltoall, a rank's whole buffer",
        question=True,
    ),
    Parameter("pareto", read_flag, False, "list the Pareto front of steps and rounds a chunk", question=True),
    Parameter("extra", read_int(0, 64), 6, "pareto: rounds to try beyond the steps", question=True),
    Parameter("copies", read_flag, True, "allreduce: complete sums may replace what a rank holds", question=True),
)

METHOD = Method(
    "steps",
    "program",
    "SCCL's question: are S steps and R rounds enough for C chunks?",
    _HERE + "programs.method:solve",
    ("cp", "milp"),
    _PARAMETERS,
)
CERTIFICATES = Certificates(
    "steps",
    argument=_HERE + "check.counted_steps:check_refutation",
    plan=_HERE + "check.plan:check_plan",
    asked=("steps", "rounds", "chunks"),
)
