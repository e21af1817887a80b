"""That no plan of ``horizon`` epochs exists, verified from the record's certificate.

The certificate proves a bound in seconds and has one key more, ``epochs``, which says why there is no such plan: the
cut, distances or prices that a plan states as well (:mod:`synth_peers.teccl.check.plan`), with ``tau``, the length of
an epoch as it was asked for, and ``tau_over`` / ``tau_under``, the same in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from synth.options import read_duration
from synth.text import untrusted
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact
from synth_peers.teccl.check.plan import MOST_EPOCHS, counted_epochs, rules_of

EPOCHS = "epochs"
NONE = "the proof that so few epochs are infeasible is none"
SETS = ("cut", "origins", "around", "goals")  # empty where a proof does not need them


def epochs_faults(instance: FabricInstance, table: Any) -> list[str]:
    """The faults of a proof that no plan of ``horizon`` epochs exists. Raises ``ValueError`` on what is no proof."""
    if not isinstance(table, Mapping):
        raise ValueError("epochs is no table")
    plan = {**{key: [] for key in SETS}, **table}
    horizon = untrusted.whole(plan, "horizon", 1, MOST_EPOCHS)
    rules = rules_of(instance, plan)
    asked = _epoch_seconds(instance, plan.get("tau"), rules.chunk)
    if asked != rules.tau:
        return [f"{NONE}: tau={plan['tau']} are {asked} s, the proof is for epochs of {rules.tau} s"]
    proven = counted_epochs(rules, plan)
    return [] if proven > horizon else [f"{NONE}: counting proves {proven} epochs, so {horizon} may be enough"]


def _epoch_seconds(instance: FabricInstance, asked: Any, chunk: Fraction) -> Fraction:
    """Seconds of an epoch, exactly: of a chunk (bytes) on the fastest or slowest usable link, or as written."""
    if not isinstance(asked, str):
        raise ValueError("tau is no text")
    if asked not in ("fast", "slow"):
        return exact(read_duration(asked))
    rates = [exact(float(rate)) for rate in instance.machine.network.bandwidth]
    return chunk / (max(rates) if asked == "fast" else min(rates))
