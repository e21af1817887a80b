"""Method ``optree`` (reference): OpTree's explicit circuits, stage by stage.

Dai, Chen, Huang, Zhang, Section IV and Figure 3, laid out for any ``N`` as described and proven in
``parts/stage_layout.py``: stage 1 by circles through pairs of groups, later stages by colouring intervals from
left to right. Every stage takes as many wavelengths as ``stages`` counts (a smaller last group never more), dealt to
steps in order. Complexity O(N^2) circuits, constant work each; no random choice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.errors import UnsupportedError
from synth.family import Outcome
from synth.kernels import jit
from synth.options import RunOptions
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import refuse_unmeetable, require_explicit_size, require_hops
from synth_models.optree.parts.radices import best_radices
from synth_models.optree.parts.stage_layout import longest_hops, ring_wavelengths, segment_wavelengths
from synth_models.optree.solution import Circuits


def solve(instance: OpTreeInstance, options: RunOptions) -> Outcome:
    """Method ``optree``: the best radices of ``stages``, or those given."""
    if (refused := refuse_unmeetable(instance)) is not None:
        return refused
    require_explicit_size(instance)
    nodes, wavelengths = instance.nodes, instance.wavelengths
    given = options.method.get("radices")
    radices = given or best_radices(nodes, wavelengths, instance.max_hops)
    if radices is None:
        require_hops(instance, longest_hops(nodes, best_radices(nodes, wavelengths) or (nodes,)), "every OpTree plan")
        raise AssertionError("a plan within the limit was overlooked")
    if given:
        radices = fitted(nodes, given)
        require_hops(instance, longest_hops(nodes, radices), f"OpTree with radices {radices}")
    message = "radices " + ", ".join(map(str, radices))
    return Outcome("finished", solution=schedule(nodes, wavelengths, radices), message=message)


def fitted(nodes: int, radices: tuple[int, ...]) -> tuple[int, ...]:
    """Given radices with the first one cut to the groups there are. Raises :class:`UnsupportedError` when the groups
    of stage 1 are the whole ring, or when the radices do not reach ``nodes`` nodes."""
    size = int(np.prod(radices[1:], dtype=object)) if len(radices) > 1 else 1
    if size >= nodes:
        raise UnsupportedError(f"radices {radices}: stages 2 and on cover {size} nodes already, the ring has {nodes}")
    if radices[0] * size < nodes:
        raise UnsupportedError(f"radices {radices} reach {radices[0] * size} nodes only, the ring has {nodes}")
    return (-(-nodes // size), *radices[1:])


def best_schedule(instance: OpTreeInstance) -> Circuits | None:
    """OpTree's schedule with the best radices; None when the instance's budgets forbid all."""
    radices = best_radices(instance.nodes, instance.wavelengths, instance.max_hops)
    return None if radices is None else schedule(instance.nodes, instance.wavelengths, radices)


def schedule(nodes: int, wavelengths: int, radices: tuple[int, ...]) -> Circuits:
    """All circuits of OpTree with these radices. Rows are sorted by step."""
    sizes = [1]
    for radix in reversed(radices[1:]):
        sizes.append(sizes[-1] * radix)
    sizes.reverse()  # s_1 .. s_k
    columns: list[list[Any]] = []
    step = 0
    for stage, (radix, size) in enumerate(zip(radices, sizes, strict=True)):
        if stage == 0:
            needs = ring_wavelengths(radix, size)
            src, dst, direction, colour, origin = _ring_stage(nodes, radix, size)
        else:
            needs = segment_wavelengths(nodes, radix, size)
            src, dst, direction, colour, origin = _segment_stage(nodes, radix, size)
        order = np.argsort(colour // wavelengths, kind="stable")
        columns.append(
            [x[order] for x in (step + 1 + colour // wavelengths, src, dst, direction, colour % wavelengths, origin)]
        )
        step += -(-needs // wavelengths)
    return Circuits.of(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))


@jit
def _ring_stage(nodes: int, radix: int, size: int) -> Any:
    """Stage 1: circles through pairs of groups, ``size`` times. Colours count from 0 in each direction."""
    half, odd = radix // 2, radix % 2
    most = size * radix * (radix - 1)
    src, dst, direction = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    colour, origin = np.empty(most, np.int32), np.empty(most, np.int32)
    count = 0
    full = half * (half - 1) // 2 + (half if odd else 0)  # circles of one place in each direction
    at = np.empty(radix, np.int64)
    circle = np.empty(4, np.int64)
    used = np.zeros(2, np.int64)  # circles of even radix's opposite pairs, per direction
    for place in range(size):
        for g in range(radix):
            at[g] = min(g * size + place, nodes - 1)
        number = 0
        for a in range(half):
            for b in range(a, half):
                if a == b and not odd:  # x -> x' -> x one way round only
                    way = 0 if used[0] <= used[1] else 1
                    circle[0], circle[1] = a, a + half
                    length = 2
                    first, last = way, way + 1
                    shade = size * full + used[way]
                    used[way] += 1
                else:
                    if a == b:  # z -> x -> x' -> z; the node left out is the last group
                        circle[0], circle[1], circle[2] = a, a + half, radix - 1
                        length = 3
                    else:
                        circle[0], circle[1], circle[2], circle[3] = a, b, a + half, b + half
                        length = 4
                    first, last = 0, 2
                    shade = place * full + number
                    number += 1
                for way in range(first, last):
                    for k in range(length):
                        u, v = circle[k], circle[(k + 1) % length]
                        if way == 1:
                            u, v = v, u
                        if u * size + place >= nodes:
                            continue  # the last group has no such node: it only receives
                        src[count], dst[count], direction[count] = at[u], at[v], way
                        colour[count], origin[count] = shade, at[u]
                        count += 1
    return src[:count], dst[:count], direction[:count], colour[:count], origin[:count]


@jit
def _segment_stage(nodes: int, radix: int, size: int) -> Any:
    """A later stage: within every group of ``radix * size`` positions, intervals coloured from left to right."""
    group = radix * size
    groups = (nodes - 1) // group + 1
    most = groups * nodes * (radix - 1)
    src, dst, direction = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    colour, origin = np.empty(most, np.int32), np.empty(most, np.int32)
    count = 0
    bound = nodes * radix
    free, ending = np.empty(bound, np.int64), np.empty(bound, np.int64)
    for g in range(groups):
        base = g * group
        here = min(group, nodes - base)
        for way in range(2):
            starts, ends = np.zeros(here + 1, np.int64), np.zeros(here + 1, np.int64)
            first = count
            for x in range(nodes):
                address = x % group
                holder, digit, place = min(address, here - 1), address // size, address % size
                for d in range((here - 1) // size + 1):
                    target = min(d * size + place, here - 1)
                    if d == digit or target == holder or (target > holder) != (way == 0):
                        continue
                    src[count], dst[count], direction[count], origin[count] = base + holder, base + target, way, x
                    starts[min(holder, target)] += 1
                    ends[max(holder, target)] += 1
                    count += 1
            # circuits by where they begin, then free colours as a stack from left to right
            by_start = np.empty(count - first, np.int64)
            place_of = np.zeros(here + 1, np.int64)
            for v in range(here):
                place_of[v + 1] = place_of[v] + starts[v]
            cursor = place_of.copy()
            for i in range(first, count):
                left = min(src[i], dst[i]) - base
                by_start[cursor[left]] = i
                cursor[left] += 1
            # colours that end at v, as linked lists through ``ending``
            head = np.full(here + 1, -1, np.int64)
            free_count, shades = 0, 0
            for v in range(here):
                shade = head[v]
                while shade >= 0:
                    free[free_count] = shade
                    free_count += 1
                    shade = ending[shade]
                for k in range(place_of[v], place_of[v + 1]):
                    i = by_start[k]
                    if free_count:
                        free_count -= 1
                        shade = free[free_count]
                    else:
                        shade = shades
                        shades += 1
                    colour[i] = shade
                    right = max(src[i], dst[i]) - base
                    ending[shade], head[right] = head[right], shade
    return src[:count], dst[:count], direction[:count], colour[:count], origin[:count]
