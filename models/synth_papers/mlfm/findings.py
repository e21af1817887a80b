"""What our records say of the MLFM paper; `synth reproduce findings` shows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from synth.findings.finding import BEYOND, EQUAL, LEAST, Case, Finding
from synth_papers.mlfm import problems
from synth_papers.mlfm.page import PRINTED, condition

PAPER = "Congestion-free all-to-all on MLFM"


def _failures(_: Path) -> Sequence[Case]:
    """Every single failure of the job (2, 4, 3)."""
    return [
        Case(f"{kind} {part}", f"mlfm/single-failures/mlfm/{made.name}") for kind, part, made in problems.failures()
    ]


def _blocks(_: Path) -> Sequence[Case]:
    """Every block with m > l - 1 on small machines, minimal routes and detours."""
    return [Case(made.name, f"mlfm/blocks/mlfm/{made.name}") for _, made in problems.irregular_blocks(4)]


def _job(n: int, columns: int, m: int) -> Case:
    name = f"n{n}l{columns}m{m}"
    phases = PRINTED[f"phases.{name}"].number
    return Case(f"(n, l, m) = ({n}, {columns}, {m})", f"mlfm/d3-{name}", phases, ours="closed_form")


FINDINGS = (
    Finding(
        "mlfm-rule", "settles", PAPER, "Sections 1 and 3",
        "The published rule needs as many phases as servers, and nothing needs fewer: on the paper's four jobs and, "
        "replayed, on the whole machine of {c[4].instance.ranks} servers.",
        (
            *(_job(*block) for block in problems.BLOCKS),
            Case("whole machine of 36-port switches", "mlfm/d18-n18l19m18", PRINTED["servers.mlfm"].number,
                 ours="closed_form"),
        ),
        (EQUAL, LEAST), sources=("printed",),
    ),
    Finding(
        "mlfm-condition", "corrects", PAPER, "Section 2, condition on the block",
        "The printed condition `1 <= l-1 <= m <= d` admits blocks on which no schedule with minimal routes has as few "
        "phases as servers. At least {least} are needed instead of {printed} on ({c[0].case.what}).",
        (
            Case("n, l, m = 1, 2, 3, d = 3", "mlfm/blocks/mlfm/d3-n1l2m3-minimal", 6.0),
            Case("n, l, m = 1, 2, 4, d = 4", "mlfm/blocks/mlfm/d4-n1l2m4-minimal", 8.0),
            Case("n, l, m = 2, 2, 4, d = 4", "mlfm/blocks/mlfm/d4-n2l2m4-minimal", 16.0),
        ),
        (BEYOND, LEAST), errata=condition, sources=("printed",),
    ),
    Finding(
        "mlfm-blocks", "settles", PAPER, "Section 2, blocks that the rule leaves out",
        "The fewest phases of every block with m > l-1 on machines of d <= 4 are settled, {met} of {cases} cases.",
        _blocks, (LEAST,), quick=False, sources=("open",),
    ),
    Finding(
        "mlfm-failures", "settles", PAPER, "Section 4, future work: failures",
        "After any single failure of a link, spine or leaf the fewest phases of the job (2, 4, 3) are settled, {met} "
        "of {cases} cases.",
        _failures, (LEAST,), quick=False, sources=("open",),
    ),
    Finding(
        "mlfm-any-servers", "settles", PAPER, "beyond its blocks",
        "Jobs of servers that form no block, with failed parts too, have schedules of proven least phases: {met} of "
        "{cases}.",
        tuple(
            Case(name, f"mlfm/{name}")
            for name in ("d4-fragment-20", "d4-fragment-36", "d4-fragment-60", "d3-n2l4m3-server", "d3-n2l4m3-leaf",
                         "d3-n2l4m3-link", "d3-n2l4m3-spine", "d4-n4l5m4-spine")
        ),
        (LEAST,), sources=("open",),
    ),
)  # fmt: skip
