"""Method ``nvls`` (reference): allreduce as NCCL does it with NVLink SHARP.

NCCL's algorithms ``NVLS`` (one box) and ``NVLSTree`` (several; NCCL 2.17 and 2.18): a rank owns a share of the data.
In its box the NVSwitch adds up all ranks' parts of the share on their way to the owner (``multimem.ld_reduce``); the
owners of equal place sum up and spread over double binary trees between boxes (those of
:mod:`synth_models.fabric.references.double_tree`); every owner hands the sum to its box by one multicast
(``multimem.st``). In a pipeline of chunks, whose number is the best of several. NCCL's trees are the same for all
channels, so that some boxes' NICs have more to do; with more than two boxes also pairs of trees that begin at every box
are tried, which load all NICs alike.

On one box of g ranks, M bytes, ports of b bytes/s and a latency of a a hop: about ``M / b + 4 a + 2 M / (g c b)`` in c
chunks, as every port carries M each way. Between B boxes a NIC carries up to ``2 M / g`` each way with two trees, and
``2 (B - 1) / B M / g`` with two for every box. Complexity: 4 B transfers a share and chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from synth.method import Outcome
from synth.options import RunOptions
from synth_models.fabric.bounds.cuts import quick_cut
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.double_trees import parents
from synth_models.fabric.plans.out_trees import empty, refusal
from synth_models.fabric.plans.switch_trees import BoxTrees, SwitchTransfers, box_trees
from synth_models.fabric.scheduling import chunks
from synth_models.fabric.scheduling.list_scheduling import timed
from synth_models.fabric.solution import Schedule

KNOWN = ("allreduce",)
MOST_TRANSFERS, MOST_CHUNKS = 300_000, 256
LACKING = "nvls needs boxes of equally many ranks whose switches add and copy"


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``nvls``."""
    refused = refusal(instance, KNOWN, "nvls")
    if refused is not None:
        return refused
    if len(instance.members) == 1:
        return empty(instance)
    inside = None
    if instance.machine.abilities.any and instance.switching.mode == "cut_through":
        inside = box_trees(instance)
    if inside is None:
        return Outcome("unsupported", message=LACKING)
    boxes = len(instance.boxes)
    sets = [trees_between(boxes, 1)] + ([trees_between(boxes, boxes)] if boxes > 2 else [])
    variants = [_variant(instance, inside, trees) for trees in sets]
    found = chunks.most_promising(instance, options, variants, quick_cut(instance).seconds)
    assert found is not None
    number, count, schedule = found
    between = "" if boxes == 1 else f"es, {'two' if number == 0 else len(sets[number])} trees between them"
    words = f"{boxes} box{between}, {chunks.in_words(count)} a share"
    return Outcome("finished", schedule, message=words + chunks.hurried(options))


def trees_between(boxes: int, starts: int) -> list[list[int]]:
    """The parent of every box (-1: the root) in each tree: both of a pair, from as many boxes on."""
    if boxes == 1:
        return [[-1]]
    found = []
    for by in range(starts):
        for t in (0, 1):
            row = parents(boxes, t)
            above = (row[(b - by) % boxes] for b in range(boxes))
            found.append([p if p < 0 else (p + by) % boxes for p in above])
    return found


def _variant(instance: FabricInstance, inside: BoxTrees, trees: list[list[int]]) -> chunks.Variant:
    boxes, shares = len(instance.boxes), len(instance.boxes[0]) * len(trees)
    most = max(1, min(MOST_CHUNKS, instance.bytes // shares))
    make = partial(_made, instance, inside, trees)
    return chunks.Variant(make, 1, most, lambda count: shares * 4 * boxes * count, MOST_TRANSFERS)


def _made(instance: FabricInstance, inside: BoxTrees, trees: list[list[int]], count: int) -> Schedule:
    """The share of every place and tree, in ``count`` chunks."""
    boxes, width = len(instance.boxes), len(instance.boxes[0])
    shares = [(place, above) for above in trees for place in range(width)]
    total, parts = instance.bytes, len(shares) * count
    ends = [total * k // parts for k in range(parts + 1)]
    rows, size = SwitchTransfers(), list[int]()
    for k in range(parts):
        if ends[k + 1] > ends[k]:
            place, above = shares[k % len(shares)]
            size.append(ends[k + 1] - ends[k])
            _share(rows, inside, len(size) - 1, place, above, k // len(shares) * 4 * boxes)
    return timed(instance, rows.transfers(size))


def _share(rows: SwitchTransfers, inside: BoxTrees, piece: int, place: int, above: Sequence[int], turn: int) -> None:
    """Sums in all boxes, up the tree, down again and out to all boxes."""
    level = [0] * len(above)
    for b in range(len(above)):
        up = above[b]
        while up >= 0:
            level[b], up = level[b] + 1, above[up]
    deep = max(level)
    came = [[rows.add(piece, inside.sums[b][place], [], True, turn)] for b in range(len(above))]
    leaves_first = sorted(range(len(above)), key=lambda b: (-level[b], b))
    for b in leaves_first:
        if above[b] >= 0:
            route = inside.between[place][b][above[b]]
            came[above[b]].append(rows.add(piece, route, list(came[b]), True, turn + 1 + deep - level[b]))
    whole = came
    for b in reversed(leaves_first):
        if above[b] >= 0:
            route = inside.between[place][above[b]][b]
            whole[b] = [rows.add(piece, route, list(whole[above[b]]), False, turn + 1 + deep + level[b])]
        rows.add(piece, inside.copies[b][place], list(whole[b]), False, turn + 2 + deep + level[b])
