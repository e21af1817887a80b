"""``synth make optree``: a ring, torus or mesh, what a step carries, and the physical budgets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from synth.errors import Fault
from synth.making import Bytes, Keys, Listed, NotNegative, Positive, Rate, Seconds, Sides
from synth_models.optree.instance import OpTreeInstance

POWER = ("laser_dbm", "modulator_loss_db", "pass_loss_db", "penalty_db")
CROSSTALK = ("signal_mw", "rx_noise_mw", "tx_noise_mw", "other_noise_mw", "max_ber")


class OpTreeKeys(Keys):
    """The ring or the grid, and budgets for power and crosstalk where one of their keys is given."""

    examples = (
        "nodes=1024 wavelengths=64 item_bytes=4194304",
        "nodes=64 wavelengths=8 laser_dbm=9 pass_loss_db=0.5",
        "sides=32x32 wavelengths=64",
        "sides=4x4x4 kinds=line wavelengths=2",
    )
    nodes: Annotated[int | None, Field(ge=2, description="on the ring; or give sides")] = None
    sides: Sides | None = Field(None, description="of a torus or mesh, 1 to 3, such as 4x8: 4 rows of 8 nodes")
    kinds: Listed | None = Field(
        None, description="ring or line, for all sides or one a side (default ring: a torus; line: a mesh)"
    )
    wavelengths: Annotated[int, Field(ge=1, description="per direction")]
    item_bytes: Bytes | None = Field(None, description="size of a node's item, bytes (default 4194304)")
    wavelength_bandwidth: Rate | None = Field(None, description="bytes/s (default 5e9, 40 Gbit/s)")
    step_overhead: Seconds | None = Field(None, description="of every step, seconds (default 25e-6)")
    laser_dbm: float | None = Field(None, description="power budget: laser power, dBm")
    modulator_loss_db: NotNegative | None = Field(None, description="power budget: loss of the modulator, dB")
    pass_loss_db: NotNegative | None = Field(None, description="power budget: loss per optical interface, dB")
    penalty_db: NotNegative | None = Field(None, description="power budget: penalty, dB")
    signal_mw: Positive | None = Field(None, description="crosstalk budget: signal power, mW")
    rx_noise_mw: NotNegative | None = Field(None, description="crosstalk budget: noise per interface, mW")
    tx_noise_mw: NotNegative | None = Field(None, description="crosstalk budget: noise of the sender, mW")
    other_noise_mw: NotNegative | None = Field(None, description="crosstalk budget: other noise, mW")
    max_ber: Positive | None = Field(None, description="crosstalk budget: largest bit error rate (default 1e-9)")

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        """Nodes or sides, not both; sides and kinds that can be read."""
        sides, kinds = values.get("sides"), values.get("kinds")
        if sides is None:
            faults = [] if values.get("nodes") is not None else [Fault("nodes", "is missing; or give sides")]
            return faults + ([] if kinds is None else [Fault("kinds", "goes with sides", kinds, True)])
        faults = []
        if values.get("nodes") is not None:
            faults.append(Fault("nodes", "is the product of the sides: give one of the two", values["nodes"], True))
        if not all(part.isascii() and part.isdigit() and len(part) <= 8 for part in sides.split("x")):
            faults.append(Fault("sides", "must be whole numbers such as 4x8", sides, True))
        wrong = [part for part in (kinds or "ring").split(",") if part not in ("ring", "line")]
        if wrong or len((kinds or "").split(",")) not in (1, len(sides.split("x"))):
            faults.append(Fault("kinds", "must be ring or line, one for all sides or one a side", kinds, True))
        return faults


def make(keys: OpTreeKeys) -> OpTreeInstance:
    """An instance of these keys. Raises :class:`synth.errors.InputError` listing every fault."""
    raw: dict[str, Any] = {}
    for key in keys.given:
        where = raw.setdefault("power", {}) if key in POWER else raw
        where = raw.setdefault("crosstalk", {}) if key in CROSSTALK else where
        where[key] = getattr(keys, key)
    for key in ("name", "sides", "kinds"):
        raw.pop(key, None)
    shape = f"ring-{keys.nodes}"
    if keys.sides is not None:
        grid = _grid(keys.sides, keys.kinds or "ring")
        raw |= {"nodes": math.prod(grid["sides"]), "grid": grid}
        shape = f"{_word(grid['kinds'])}-{'x'.join(map(str, grid['sides']))}"
    budget = "-budget" if {"power", "crosstalk"} & set(raw) else ""
    return keys.instance("optree", OpTreeInstance, f"{shape}-w{keys.wavelengths}{budget}", **raw)


def _grid(sides: str, kinds: str) -> dict[str, Any]:
    lengths, each = [int(side) for side in sides.split("x")], kinds.split(",")
    return {"sides": lengths, "kinds": each * len(lengths) if len(each) == 1 else each}


def _word(kinds: list[str]) -> str:
    return "torus" if set(kinds) == {"ring"} else "mesh" if set(kinds) == {"line"} else "grid"
