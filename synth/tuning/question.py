"""What a search for the quickest algorithm of every size is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from synth.exchange.block_costs import CostModel
from synth.exchange.mscclpp.versions import NEWEST, Version
from synth.instance import Instance
from synth.tuning.robustness import Variation


@dataclass(frozen=True)
class Question:
    """What is asked: ``make`` gives the instance of a collective and a size in bytes, ``form`` is the form that will
    run, ``folder`` holds instances and records; ``seconds``: the limit of time, None for none; ``resume``: take over
    records that are there; ``methods``: those to try beside the references (empty: all that suit); ``variation``:
    choose by the worst regret on machines so varied, None: by the time on the machine itself; ``any_count``: also what
    serves only calls of some counts (:mod:`synth.exchange.counts`); ``version``: of MSCCL++, that is to run plans;
    ``costs``: of the form's thread blocks and steps, None for an ideal executor; ``patient``: references and bounds
    take what they take, and the limit counts from their end."""

    make: Callable[[str, int], Instance]
    collectives: tuple[str, ...]
    sizes: tuple[int, ...]
    form: str
    folder: Path
    seconds: float | None = None
    resume: bool = False
    seed: int = 0
    methods: tuple[str, ...] = ()
    variation: Variation | None = None
    any_count: bool = False
    version: Version = NEWEST
    costs: CostModel | None = None
    patient: bool = False
