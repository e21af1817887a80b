"""That a question has no answer, verified from the record's certificate: SCCL's of steps, TE-CCL's of epochs.

**Steps.** The certificate itself says it: ``argument`` is ``steps`` (:mod:`synth_models.fabric.check.counted_steps`).

**Epochs.** The certificate proves a bound in seconds and has one key more, ``epochs``, which says why no plan of
``horizon`` epochs exists: the cut, distances or prices that a plan states as well
(:mod:`synth_models.fabric.check.epochs`), with ``tau``, the length of an epoch as it was asked for, and
``tau_over`` / ``tau_under``, the same in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from synth.options import read_duration
from synth.text import untrusted
from synth_models.fabric.check.epochs import MOST_EPOCHS, counted_epochs, rules_of
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.exact import exact

EPOCHS = "epochs"
SETS = ("cut", "origins", "around", "goals")  # empty where a proof does not need them
STEPS_ASKED, EPOCHS_ASKED = ("steps", "rounds", "chunks"), ("tau", "chunks", "horizon")


def refutes(options: Mapping[str, Any], bound: float, certificate: Mapping[str, Any]) -> bool:
    """Whether the certificate says that the question which the options ask has no answer; the check verifies it."""
    if certificate.get("argument") == "steps":
        return _asks(options, certificate, STEPS_ASKED)
    table = certificate.get(EPOCHS)
    return isinstance(table, Mapping) and _asks(options, table, EPOCHS_ASKED)


def _asks(options: Mapping[str, Any], table: Mapping[str, Any], keys: tuple[str, ...]) -> bool:
    return all(options.get(key) is not None and options.get(key) == table.get(key) for key in keys)


def epochs_faults(instance: FabricInstance, table: Any) -> list[str]:
    """The faults of a proof that no plan of ``horizon`` epochs exists. Raises ``ValueError`` on what is no proof."""
    if not isinstance(table, Mapping):
        raise ValueError("epochs is no table")
    plan = {**{key: [] for key in SETS}, **table}
    horizon = untrusted.whole(plan, "horizon", 1, MOST_EPOCHS)
    rules = rules_of(instance, plan)
    asked = _epoch_seconds(instance, plan.get("tau"), rules.chunk)
    if asked != rules.tau:
        return [f"tau={plan['tau']} are {asked} s, the proof is for epochs of {rules.tau} s"]
    proven = counted_epochs(rules, plan)
    return [] if proven > horizon else [f"counting proves {proven} epochs, so {horizon} may be enough"]


def _epoch_seconds(instance: FabricInstance, asked: Any, chunk: Fraction) -> Fraction:
    """Seconds of an epoch, exactly: of a chunk (bytes) on the fastest or slowest usable link, or as written."""
    if not isinstance(asked, str):
        raise ValueError("tau is no text")
    if asked not in ("fast", "slow"):
        return exact(read_duration(asked))
    rates = [exact(float(rate)) for rate in instance.machine.network.bandwidth]
    return chunk / (max(rates) if asked == "fast" else min(rates))
