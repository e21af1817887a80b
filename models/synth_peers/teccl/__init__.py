"""TE-CCL (Liu et al., SIGCOMM 2024) as data: method ``epochs`` of family fabric and the checks of what it states."""

from __future__ import annotations

from synth.method import Certificates, Method
from synth.options import Parameter, read_duration, read_flag, read_int

_HERE = "synth_peers.teccl."


def _read_tau(text: str) -> str:
    """``fast``, ``slow``, or the text of a duration."""
    try:
        return text if text in ("fast", "slow") else str(read_duration(text))
    except ValueError:
        raise ValueError("must be fast, slow, or a duration > 0 such as 0.00125 or 80e-9") from None


_PARAMETERS = (
    Parameter(
        "tau", _read_tau, "fast", "an epoch's length, or a chunk's time on the fastest or slowest link", question=True
    ),
    Parameter("chunks", read_int(1, 4096), 1, "chunks that every block is cut into", question=True),
    Parameter("horizon", read_int(1), None, "ask for this number of epochs only", question=True),
    Parameter("counting", read_flag, True, "start the search at the bound that counting proves (off: at one epoch)"),
    Parameter("start", read_flag, True, "start from a plan made by list scheduling"),
    Parameter("fold", read_flag, True, "fold the program by the instance's symmetries"),
    Parameter("cuts", read_flag, True, "add rows for the latest useful departures out of cuts"),
    Parameter("symmetry", read_flag, True, "order the chunks of a block, which are interchangeable"),
)

METHOD = Method(
    "epochs",
    "program",
    "fewest epochs of a fixed length (TE-CCL's MILP and LP), then all times made exact",
    _HERE + "programs.method:solve",
    ("milp",),
    _PARAMETERS,
)
CERTIFICATES = Certificates(
    "epochs",
    table=_HERE + "check.infeasibility_proof:epochs_faults",
    plan=_HERE + "check.plan:check_epochs",
    asked=("tau", "chunks", "horizon"),
)
