"""The optree family: what ties its instances, methods, check and views together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from synth.errors import Fault, InputError
from synth.family import Family, Method, Objective, Verdict
from synth.instance import parse
from synth.options import Parameter, read_choice, read_flag, read_float, read_int
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.solution import COLUMNS, Solution, StepCount, pack, unpack

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from synth.frames import Frames
    from synth.reproduction import Reproduction


def _read_radices(text: str) -> tuple[int, ...]:
    try:
        radices = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError("must be whole numbers with commas, such as 4,4") from None
    if any(radix < 2 for radix in radices):
        raise ValueError("every radix must be >= 2")
    return radices


_HORIZON = Parameter("horizon", read_int(1), None, "decide this number of steps only: a schedule, or proven infeasible")
_SHAPE = Parameter("shape", read_choice("ring", "segment"), "ring", "route all round the ring, or as on a line segment")


class OpTreeFamily(Family):
    """Allgather on a WDM optical ring; minimises steps."""

    name = "optree"
    title = "OpTree: stages, wavelengths and time-expanded schedules of an allgather on an optical ring"
    citation = "Dai, Chen, Huang, Zhang: Efficient Algorithm for All-gather Operation in Optical Interconnect Systems"
    objective = Objective("steps", "steps")
    instance_type = OpTreeInstance
    default_methods = ("bound", "optree", "relay", "time_expanded")
    methods: ClassVar[Mapping[str, Method]] = {  # the base declares it per instance
        method.name: method
        for method in (
            Method("bound", "bound", "receive bound and reach bound (prices on the steps, an LP's dual)",
                   "synth_models.optree.bound:solve"),
            Method("formula", "reference", "OpTree's published step count (Theorem 1) at its best depth",
                   "synth_models.optree.counts:solve_formula", (),
                   (Parameter("depth", read_int(1, 64), None, "depth k instead of the best one"),)),
            Method("ring", "reference", "published step count of the ring algorithm",
                   "synth_models.optree.counts:solve_ring"),
            Method("neighbor_exchange", "reference", "published step count of neighbor exchange (even N)",
                   "synth_models.optree.counts:solve_neighbor_exchange"),
            Method("wrht", "reference", "published step count of WRHT extended to allgather",
                   "synth_models.optree.counts:solve_wrht", (),
                   (Parameter("variant", read_int(1, 2), 1, "which of the two published last terms"),)),
            Method("one_stage", "reference", "published step count of one all-to-all over the whole ring",
                   "synth_models.optree.counts:solve_one_stage"),
            Method("first_fit", "reference", "one-stage schedule, circuits coloured first-fit",
                   "synth_models.optree.rwa:solve_first_fit", (), (_SHAPE,)),
            Method("longest_first", "reference", "one-stage schedule, circuits coloured first-fit, longest first",
                   "synth_models.optree.rwa:solve_longest_first", (), (_SHAPE,)),
            Method("rwa", "program", "fewest wavelengths of one stage (CP-SAT, one thread repeats by seed; or Pyomo)",
                   "synth_models.optree.rwa:solve", ("cpsat", "highs", "gurobi", "scip"),
                   (_SHAPE, Parameter("hint", read_flag, False, "start from the closed-form colouring"))),
            Method("stages", "program", "radices of OpTree's stages by exact dynamic program or integer program",
                   "synth_models.optree.stages:solve", ("highs", "gurobi", "scip"),
                   (Parameter("by", read_choice("program", "dynamic"), "dynamic", "which of the two"),)),
            Method("optree", "reference", "OpTree's explicit circuits for the best (or given) radices",
                   "synth_models.optree.optree:solve", (),
                   (Parameter("radices", _read_radices, None, "radices of stages 1..k, e.g. 4,4"),)),
            Method("relay", "reference", "leaping frontiers with the gaps filled behind them (ours)",
                   "synth_models.optree.relay:solve"),
            Method("time_expanded", "program", "fewest steps of any schedule (CP-SAT, one thread repeats by seed)",
                   "synth_models.optree.time_expanded:solve", ("cpsat",),
                   (_HORIZON,
                    Parameter("warm_start", read_flag, True, "start from relay: it caps the horizons that are tried"))),
        )
    }  # fmt: skip

    def make(self, parameters: Mapping[str, str]) -> OpTreeInstance:
        """An instance from texts: ``nodes=1024 wavelengths=64 item_bytes=4194304``.

        Other keys: ``wavelength_bandwidth`` (bytes/s), ``step_overhead`` (s), ``name``; a power budget by
        ``laser_dbm``, ``pass_loss_db``, ``modulator_loss_db``, ``penalty_db``; a crosstalk budget by ``signal_mw``,
        ``rx_noise_mw``, ``tx_noise_mw``, ``other_noise_mw``, ``max_ber``.
        """
        raw: dict[str, Any] = {
            "family": "optree",
            "source": "synth make optree " + " ".join(f"{key}={value}" for key, value in parameters.items()),
        }
        faults: list[Fault] = []
        for key, text in parameters.items():
            where, read = _READERS.get(key, (None, None))
            if read is None:
                faults.append(Fault(key, "unknown parameter", text, True))
                continue
            try:
                value = read(text)
            except ValueError as error:
                faults.append(Fault(key, str(error), text, True))
                continue
            (raw.setdefault(where, {}) if where else raw)[key] = value
        faults += [Fault(key, "is missing") for key in ("nodes", "wavelengths") if key not in parameters]
        if faults:
            raise InputError(faults, "synth make optree")
        budget = "-budget" if "power" in raw or "crosstalk" in raw else ""
        raw.setdefault("name", f"ring-{raw['nodes']}-w{raw['wavelengths']}{budget}")
        instance = parse(raw, OpTreeInstance, "synth make optree")
        assert isinstance(instance, OpTreeInstance)
        return instance

    def check(self, instance: OpTreeInstance, solution: Solution) -> Verdict:
        from synth_models.optree.check import check_solution

        return check_solution(instance, solution)

    def check_bound(self, instance: OpTreeInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
        from synth_models.optree.check_bound import check_bound

        return check_bound(instance, bound, certificate)

    def pack(self, solution: Solution) -> dict[str, Any]:
        return pack(solution)

    def unpack(self, instance: OpTreeInstance, packed: Mapping[str, Any]) -> Solution:
        return unpack(packed)

    def table(self, instance: OpTreeInstance, solution: Solution) -> pd.DataFrame:
        """Columns ``step,src,dst,direction,wavelength,origin``; direction 0 is clockwise (towards higher numbers).

        A plan that only counts steps has no circuits: :class:`InputError`.
        """
        import pandas as pd

        if isinstance(solution, StepCount):
            raise InputError(f"{solution.algorithm} counts steps and has no circuits; optree and relay make them")
        order = np.lexsort((solution.src, solution.wavelength, solution.direction, solution.step))
        return pd.DataFrame({name: getattr(solution, name)[order] for name in COLUMNS})

    def frames(self, instance: OpTreeInstance, solution: Solution) -> Frames | None:
        from synth_models.optree.animation import frames

        return frames(instance, solution)

    def describe(self, instance: OpTreeInstance, solution: Solution) -> str:
        from synth_models.optree.views import describe

        return describe(instance, solution)

    def plot(self, instance: OpTreeInstance, solution: Solution, title: str) -> Figure:
        from synth_models.optree.views import plot

        return plot(instance, solution, title)

    def reproduce(self, page: Reproduction) -> None:
        from synth_models.optree.reproduce import reproduce

        reproduce(page)


def _signed(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError("must be a number") from None
    if not np.isfinite(number):
        raise ValueError("must be finite")
    return number


_READERS: Mapping[str, tuple[str | None, Callable[[str], Any]]] = {
    "nodes": (None, read_int(2)), "wavelengths": (None, read_int(1)),
    "item_bytes": (None, read_float(0, exclusive=True)), "wavelength_bandwidth": (None, read_float(0, exclusive=True)),
    "step_overhead": (None, read_float(0)), "name": (None, str),
    "laser_dbm": ("power", _signed), "modulator_loss_db": ("power", read_float(0)),
    "pass_loss_db": ("power", read_float(0)), "penalty_db": ("power", read_float(0)),
    "signal_mw": ("crosstalk", read_float(0, exclusive=True)), "rx_noise_mw": ("crosstalk", read_float(0)),
    "tx_noise_mw": ("crosstalk", read_float(0)), "other_noise_mw": ("crosstalk", read_float(0)),
    "max_ber": ("crosstalk", read_float(0, exclusive=True)),
}  # fmt: skip
