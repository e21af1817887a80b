"""What our records say of OpTree's printed steps; `synth reproduce findings` shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from synth.findings.evidence import Held
from synth.findings.finding import ABOVE, BELOW, LEAST, NO_MORE, Case, Finding
from synth_papers.optree import schedules
from synth_papers.optree.page import PRINTED, errata, lemma_1

PAPER = "OpTree (Dai, Chen, Huang, Zhang)"


def _ring(nodes: int, wavelengths: int, printed: str = "", **named: str) -> Case:
    """``printed``: the key of the printed steps."""
    steps = PRINTED[printed].number if printed else None
    return Case(f"N = {nodes}, w = {wavelengths}", f"optree/ring-{nodes}-w{wavelengths}", steps, **named)


def _theirs(held: Sequence[Held]) -> Mapping[str, Any]:
    """Steps of their formula where it, and not their schedule, is what stands beside ours."""
    return {"first": held[0].case.what, "saved": f"{100 * (1 - 1 / (held[0].ratio or 1)):.1f} %"}


FINDINGS = (
    Finding(
        "optical-ring", "improves", PAPER, "Table 1; Tables 2 and 3 by its formula",
        "An allgather on the optical ring takes {ours} where OpTree prints {printed} ({first}), {saved} fewer. No "
        "schedule in its step model, as we read it, takes fewer. {met} of {cases} rings of the paper's tables are "
        "settled; the published steps are {least_times} to {most_times} ours.",
        (
            _ring(1024, 64, "table-1.formula"),
            *(
                _ring(nodes, wavelengths, published="formula")
                for nodes, wavelengths in ((512, 64), (2048, 64), (1024, 4), (1024, 16), (1024, 256))
            ),
        ),
        (BELOW, LEAST), _theirs, sources=("printed", "reading"),
    ),
    Finding(
        "optical-ring-4096", "improves", PAPER, "Table 2 by its formula, N = 4096",
        "On the largest ring of its tables ours takes {ours} where OpTree's formula has {printed}. No schedule takes "
        "fewer: with w >= 3 wavelengths `ceil((N-1)/(w+1))` steps are the fewest wherever they are (w-1)/2 or more "
        "(models/optree.md).",
        (_ring(4096, 64, published="formula"),),
        (BELOW, LEAST), sources=("reading",),
    ),
    Finding(
        "optical-ring-worked-example", "settles", PAPER, "Section III-C, N = 16, w = 2",
        "The worked example of {printed} by two 4-ary stages takes {ours} with relays at every node, and no fewer are "
        "possible.",
        (_ring(16, 2, "worked-example.two-stages"),),
        (BELOW, LEAST), sources=("printed",),
    ),
    Finding(
        "optical-rings-small", "settles", PAPER, "Theorem 1, small rings",
        "The fewest steps of any schedule are settled on {met} of {cases} small rings; OpTree's schedule has as few "
        "on {same} of them.",
        tuple(
            _ring(nodes, wavelengths, published="optree")
            for nodes, wavelengths in ((4, 1), (5, 2), (7, 2), (8, 2), (10, 2), (12, 3), (12, 4), (16, 4))
        ),
        (NO_MORE, LEAST),
        lambda held: {"same": sum(not one.below for one in held)}, sources=("reading",),
    ),
    Finding(
        "optree-radices", "improves", PAPER, "Table 1; Tables 2 and 3 by its formula",
        "OpTree's own scheme with the best whole radices takes {ours} where it prints {printed} ({first}); fewer than "
        "its formula on all {cases} rings. Both are counts of the scheme, no schedules.",
        (
            _ring(1024, 64, "table-1.formula", ours="stages-highs"),
            *(
                _ring(nodes, wavelengths, ours="stages-highs", published="formula")
                for nodes, wavelengths in ((2048, 64), (4096, 64), (1024, 4), (1024, 16))
            ),
        ),
        (BELOW,), _theirs, sources=("printed", "reading"),
    ),
    Finding(
        "optree-one-stage", "corrects", PAPER, "Table 1, one stage",
        "One stage takes {ours} by the paper's own formula, not the {printed} of its table.",
        (_ring(1024, 64, "table-1.one_stage", ours="one_stage"),),
        (ABOVE,), sources=("printed",),
    ),
    Finding("optree-wrht", "corrects", PAPER, "Table 1, WRHT", errata=schedules.errata),
    Finding("optree-errata", "corrects", PAPER, "errata", errata=errata),
    Finding("optree-lemma-1", "corrects", PAPER, "Lemma 1", errata=lemma_1, word="CP-SAT"),
)  # fmt: skip
