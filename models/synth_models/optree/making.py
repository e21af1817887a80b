"""``synth make optree``: a ring, what a step carries, and the physical budgets."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from synth.making import Keys, NotNegative, Positive
from synth_models.optree.instance import OpTreeInstance

POWER = ("laser_dbm", "modulator_loss_db", "pass_loss_db", "penalty_db")
CROSSTALK = ("signal_mw", "rx_noise_mw", "tx_noise_mw", "other_noise_mw", "max_ber")


class OpTreeKeys(Keys):
    """The ring, and budgets for power and crosstalk where one of their keys is given."""

    examples = ("nodes=1024 wavelengths=64 item_bytes=4194304", "nodes=64 wavelengths=8 laser_dbm=9 pass_loss_db=0.5")
    nodes: Annotated[int, Field(ge=2, description="on the ring")]
    wavelengths: Annotated[int, Field(ge=1, description="per direction")]
    item_bytes: Positive | None = Field(None, description="size of a node's item, bytes (default 4194304)")
    wavelength_bandwidth: Positive | None = Field(None, description="bytes/s (default 5e9, 40 Gbit/s)")
    step_overhead: NotNegative | None = Field(None, description="of every step, seconds (default 25e-6)")
    laser_dbm: float | None = Field(None, description="power budget: laser power, dBm")
    modulator_loss_db: NotNegative | None = Field(None, description="power budget: loss of the modulator, dB")
    pass_loss_db: NotNegative | None = Field(None, description="power budget: loss per optical interface, dB")
    penalty_db: NotNegative | None = Field(None, description="power budget: penalty, dB")
    signal_mw: Positive | None = Field(None, description="crosstalk budget: signal power, mW")
    rx_noise_mw: NotNegative | None = Field(None, description="crosstalk budget: noise per interface, mW")
    tx_noise_mw: NotNegative | None = Field(None, description="crosstalk budget: noise of the sender, mW")
    other_noise_mw: NotNegative | None = Field(None, description="crosstalk budget: other noise, mW")
    max_ber: Positive | None = Field(None, description="crosstalk budget: largest bit error rate (default 1e-9)")


def make(keys: OpTreeKeys) -> OpTreeInstance:
    """An instance of these keys. Raises :class:`synth.errors.InputError` listing every fault."""
    raw: dict[str, Any] = {}
    for key in keys.given:
        where = raw.setdefault("power", {}) if key in POWER else raw
        where = raw.setdefault("crosstalk", {}) if key in CROSSTALK else where
        where[key] = getattr(keys, key)
    raw.pop("name", None)
    budget = "-budget" if {"power", "crosstalk"} & set(raw) else ""
    return keys.instance("optree", OpTreeInstance, f"ring-{keys.nodes}-w{keys.wavelengths}{budget}", **raw)
