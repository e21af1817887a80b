"""The circuits of OpTree's stages on a ring or line: stage 1 round a ring by circles through pairs of groups, all other
stages by colouring intervals from left to right (``parts/stage_layout.py`` has the layout and its proofs).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.arrays import Int32Array
from synth.kernels import jit
from synth_models.optree.parts.stage_layout import ring_wavelengths, segment_wavelengths


def staged(
    nodes: int, wavelengths: int, radices: tuple[int, ...], items: int = 1, ring: bool = True
) -> list[Int32Array]:
    """Columns step, source, destination, direction, wavelength, origin, copy of OpTree on a ring or line whose nodes
    hold ``items`` items each: ``copy`` (from 0) says which item of ``origin``. Rows are sorted by step."""
    sizes = [1]
    for radix in reversed(radices[1:]):
        sizes.append(sizes[-1] * radix)
    sizes.reverse()  # s_1 .. s_k
    columns: list[list[Any]] = []
    step = 0
    for stage, (radix, size) in enumerate(zip(radices, sizes, strict=True)):
        if stage == 0 and ring:
            needs = ring_wavelengths(radix, size * items)
            src, dst, direction, colour, origin, copy = _ring_stage(nodes, radix, size, items)
        else:
            needs = segment_wavelengths(nodes, radix, size) * items
            single = _segment_stage(nodes, radix, size)
            src, dst, direction, colour, origin = (np.tile(column, items) for column in single)
            copy = np.repeat(np.arange(items, dtype=np.int32), len(single[0]))
            colour = colour + copy * (needs // items)
        order = np.argsort(colour // wavelengths, kind="stable")
        step_of, wavelength = step + 1 + colour // wavelengths, colour % wavelengths
        columns.append([x[order] for x in (step_of, src, dst, direction, wavelength, origin, copy)])
        step += -(-needs // wavelengths)
    return [np.concatenate(parts).astype(np.int32) for parts in zip(*columns, strict=True)]


@jit
def _ring_stage(
    nodes: int, radix: int, size: int, items: int
) -> tuple[Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array]:
    """Stage 1: circles through pairs of groups, ``size`` times for each of ``items`` items. Colours count from 0 in
    each direction."""
    half, odd = radix // 2, radix % 2
    most = items * size * radix * (radix - 1)
    src, dst, direction = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    colour, origin = np.empty(most, np.int32), np.empty(most, np.int32)
    copy = np.empty(most, np.int32)
    count = 0
    full = half * (half - 1) // 2 + (half if odd else 0)  # circles of one place in each direction
    at = np.empty(radix, np.int64)
    circle = np.empty(4, np.int64)
    used = np.zeros(2, np.int64)  # circles of even radix's opposite pairs, per direction
    for layer in range(items * size):
        place = layer % size
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
                    shade = items * size * full + used[way]
                    used[way] += 1
                else:
                    if a == b:  # z -> x -> x' -> z; the node left out is the last group
                        circle[0], circle[1], circle[2] = a, a + half, radix - 1
                        length = 3
                    else:
                        circle[0], circle[1], circle[2], circle[3] = a, b, a + half, b + half
                        length = 4
                    first, last = 0, 2
                    shade = layer * full + number
                    number += 1
                for way in range(first, last):
                    for k in range(length):
                        u, v = circle[k], circle[(k + 1) % length]
                        if way == 1:
                            u, v = v, u
                        if u * size + place >= nodes:
                            continue  # the last group has no such node: it only receives
                        src[count], dst[count], direction[count] = at[u], at[v], way
                        colour[count], origin[count], copy[count] = shade, at[u], layer // size
                        count += 1
    return src[:count], dst[:count], direction[:count], colour[:count], origin[:count], copy[:count]


@jit
def _segment_stage(
    nodes: int, radix: int, size: int
) -> tuple[Int32Array, Int32Array, Int32Array, Int32Array, Int32Array]:
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
