"""What our records say of XTree's printed results; `synth reproduce findings` shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synth.findings.evidence import Held
from synth.findings.finding import BELOW, EQUAL, LEAST, NO_MORE, Case, Claim, Finding
from synth.reproduction.printed import same
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.parts.ring_directions import classes
from synth_papers.xtree import directions
from synth_papers.xtree.page import PRINTED, errata

PAPER = "XTree on EquiMesh (Cui, Qin, Cai, Huang)"
DIFFERENT = ((4, 4), (4, 6), (6, 6), (8, 8))  # where directions make a difference
ALLGATHER, ALLREDUCE = PRINTED["gain.allgather.8x8"], PRINTED["gain.allreduce.8x8"]


def _equimesh(size: str, chunks: int, more: str = "", published: str = "xtree", part: str = "") -> Case:
    name = f"equimesh-{size}-c{chunks}{more}"
    return Case(f"{size}, C = {chunks}", f"xtree/{part}{name}", published=published)


def _per_chunk(held: Held) -> float:
    """Timesteps for what a node has, whatever it is cut into: the time of a large message."""
    assert held.value is not None
    assert isinstance(held.instance, XTreeInstance)
    return held.value / held.instance.chunks


def _over(held: Sequence[Held]) -> Mapping[str, Any]:
    """Pairs (mesh, EquiMesh): the mesh's timesteps over EquiMesh's, both for the same data."""
    told = [f"{ratio:.3f}x on {mesh.case.what.split(',')[0].removeprefix('mesh ')}" for mesh, ratio in _ratios(held)]
    return {"ratios": " and ".join(told)}


def _ratios(held: Sequence[Held]) -> list[tuple[Held, float]]:
    return [(mesh, _per_chunk(mesh) / _per_chunk(equi)) for mesh, equi in zip(held[::2], held[1::2], strict=True)]


def _below_printed(held: Sequence[Held]) -> Mapping[str, Any]:
    """Raises ``ValueError`` where the gain reaches the printed one."""
    if any(ratio >= ALLREDUCE.number for _, ratio in _ratios(held)):
        raise ValueError(f"a gain reaches the printed {ALLREDUCE.text}")
    return _over(held)


def _as_printed(held: Sequence[Held]) -> Mapping[str, Any]:
    """Raises ``ValueError`` where the gain is another than the printed one."""
    if not all(same(ratio, ALLGATHER.number) for _, ratio in _ratios(held)):
        raise ValueError(f"a gain is not the printed {ALLGATHER.text}")
    return _over(held)


def _twice(held: Sequence[Held]) -> Mapping[str, Any]:
    """Raises ``ValueError`` unless the second takes as many timesteps a chunk as the first."""
    if _per_chunk(held[0]) != _per_chunk(held[1]):
        raise ValueError("the timesteps a chunk differ")
    return {}


def _mesh(size: str, chunks: int, more: str, part: str = "") -> Case:
    return Case(f"mesh {size}, C = {chunks}", f"xtree/{part}mesh-{size}-c{chunks}{more}")


def _directions(_: Path) -> Sequence[Case]:
    """One choice of every class of choices that make the same network with other numbers."""
    return [
        Case(
            f"{rows}x{cols}, allgather, {directions.short(first)} (one of {len(members)} alike)",
            f"xtree/rings/xtree/equimesh-{rows}x{cols}-{directions.short(first)}-c1",
        )
        for rows, cols in DIFFERENT
        for first, members in classes(rows, cols).items()
    ]


def _only_odd(held: Sequence[Held]) -> Mapping[str, Any]:
    """Raises ``ValueError`` unless on every size ``odd_up`` everywhere alone takes fewest and all others as many."""
    best, others = [], []
    sides = list(dict.fromkeys(one.case.what.split(",")[0] for one in held))
    for side in sides:
        group = [one for one in held if one.case.what.startswith(f"{side},")]
        [chosen] = [one for one in group if " oooo (one of 1 alike)" in one.case.what]
        rest = {one.value for one in group if one is not chosen}
        if len(rest) != 1 or chosen.value is None or chosen.value >= min(value or 0.0 for value in rest):
            raise ValueError(f"odd_up takes {chosen.value} on {side}, the others {sorted(map(str, rest))}")
        best.append(chosen.ours_text)
        others.append(next(one.ours_text for one in group if one is not chosen))
    return {"sides": ", ".join(sides), "best": ", ".join(best), "others": ", ".join(others)}


FINDINGS = (
    Finding(
        "equimesh-allgather", "settles", PAPER, "Section IV, Algorithm 2",
        "The fewest timesteps of an allgather on EquiMesh are settled on {met} of {cases} sizes, all of the paper's "
        "among them. The published greedy, run once with random ties, which the text leaves open, takes more on "
        "{lower}.",
        tuple(
            _equimesh(size, chunks)
            for size in ("2x3", "3x3", "4x4", "5x5", "8x8", "5x11") for chunks in (1, 2, 4)
        ),
        (NO_MORE, LEAST), sources=("reading",),
    ),
    Finding(
        "equimesh-example", "settles", PAPER, "Section IV-A, 2x3, C = 4",
        "The {printed} of the worked example are the fewest possible.",
        (Case("2x3, C = 4", "xtree/equimesh-2x3-c4", PRINTED["worked-example.depth"].number),),
        (EQUAL, LEAST), sources=("printed",),
    ),
    Finding(
        "equimesh-allreduce", "improves", PAPER, "Algorithm 3 (MirrorXTree)",
        "On {cases} allreduces and reduce-scatters on EquiMesh the fewest timesteps are settled; MirrorXTree, run once "
        "with random ties, takes {least_times} to {most_times} as many.",
        (
            _equimesh("8x8", 4, "-allreduce", "mirror_xtree"), _equimesh("2x3", 4, "-allreduce", "mirror_xtree"),
            _equimesh("5x11", 4, "-allreduce", "mirror_xtree", "bandwidth/xtree/"),
            Case("4x5, rings of mixed directions, C = 4, allreduce", "xtree/equimesh-4x5-mixed-c4-allreduce",
                 published="mirror_xtree"),
            Case("4x5, rings of mixed directions, C = 4, reduce-scatter", "xtree/equimesh-4x5-mixed-c4-reducescatter",
                 published="mirror_xtree"),
        ),
        (BELOW, LEAST), sources=("reading",),
    ),
    Finding(
        "mesh-allreduce", "improves", PAPER, "Section V, baselines on the mesh",
        "`forest` (ours) takes the fewest timesteps that any allreduce on the plain mesh can take. With 32 chunks a "
        "node on 8x8 it takes {c[2].ours_text}, where TidalMesh as we reconstruct it from a sentence of the paper "
        "takes {c[2].printed_text}.",
        (
            _mesh("8x8", 64, "-allreduce", "forest-8x8/xtree/"), _mesh("5x11", 64, "-allreduce", "forest-5x11/xtree/"),
            *(
                Case(f"mesh {size}, C = 32", f"xtree/forest-{size}/xtree/mesh-{size}-c32-allreduce",
                     published=f"xtree/bandwidth/xtree/mesh-{size}-c32-allreduce/tidalmesh")
                for size in ("8x8", "5x11")
            ),
        ),
        (LEAST, Claim("below the published figure where one stands beside it",
                      lambda held: held.printed is None or held.below)), sources=("reading",),
    ),
    Finding(
        "equimesh-allreduce-gain", "qualifies", PAPER, "Figure 8 and abstract: 1.2x the best of the mesh",
        f"The printed {ALLREDUCE.text} is over published algorithms of the mesh, and stays true over them. They "
        "leave bandwidth of the mesh unused: between the proven optima of both networks the gain is {ratios}, for "
        "large messages.",
        (
            _mesh("8x8", 64, "-allreduce", "forest-8x8/xtree/"), _equimesh("8x8", 4, "-allreduce", ""),
            _mesh("5x11", 64, "-allreduce", "forest-5x11/xtree/"),
            _equimesh("5x11", 4, "-allreduce", "", "bandwidth/xtree/"),
        ),
        (LEAST,), _below_printed, sources=("printed",),
    ),
    Finding(
        "equimesh-allgather-gain", "settles", PAPER, "Figure 7 and abstract: 2x the best of the mesh",
        f"The printed {ALLGATHER.text} of the allgather holds between the proven optima of both networks: "
        "{ratios}, for large messages.",
        (_mesh("8x8", 4, ""), _equimesh("8x8", 4, "", ""), _mesh("5x11", 4, ""), _equimesh("5x11", 4, "", "")),
        (LEAST,), _as_printed, sources=("printed",),
    ),
    Finding(
        "equimesh-directions", "settles", PAPER, "Section III-B: the direction of each ring is free",
        "The direction of the rings decides how many timesteps an allgather of one chunk a node takes. Of the sixteen "
        "choices on {sides} exactly one takes fewest, all four rings `odd_up`: {best}; every other takes {others}. All "
        "are settled, one of each class of choices that make the same network with other numbers.",
        _directions, (LEAST,), _only_odd, sources=("open",),
    ),
    Finding(
        "equimesh-chunks", "qualifies", PAPER, "Section IV-A: chunks a multiple of the least degree",
        "On 5x11 four chunks a node use the links no better than two: {c[1].ours_text} against {c[0].ours_text}, both "
        "the fewest, move the same data. Two spend half as many latencies, so four are the quickest at no size.",
        (_equimesh("5x11", 2), _equimesh("5x11", 4)), (LEAST,), _twice, sources=("reading",),
    ),
    Finding("xtree-errata", "corrects", PAPER, "errata", errata=errata),
)  # fmt: skip
