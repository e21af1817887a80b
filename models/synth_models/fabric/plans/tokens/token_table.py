"""Tables of tokens that ``synth plan --tokens`` reads, and drawn ones: where every token is, and who wants it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.errors import Fault, InputError
from synth.text.csv import typed_rows, whole_cell
from synth.text.input_file import InputFile
from synth.text.json_rows import elements, is_list, typed_tables
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.node_words import nodes_meant

MOST_TOKENS = 2**24  # of a table in all
MOST_GOALS = 2**27  # tokens times the most goals of one
MOST_EXPERTS = 2**20
MOST_COPIES, MOST_PLACED = 2**10, 2**22  # of an expert on a rank, of all
MOST_DRAWN, MOST_DRAWN_OF_RANK = 2**30, 2**25  # tokens times experts
NOBODY = -1


class Tokens(NamedTuple):
    """``source[t]``: the rank that has token t, by its place in the process group; ``goals[t]``: the ranks that want
    it, -1 for none, shape (tokens, most)."""

    source: IntArray
    goals: IntArray


class Draw(NamedTuple):
    """How tokens are drawn: so many of each rank, each for the ``top`` of so many ``experts``, in order over the ranks,
    whose popularity is Zipf's with exponent ``zipf``; ``boxes``: at most in so many boxes, those whose two best experts
    are best together (DeepSeek-V3's rule, arXiv 2412.19437, with boxes as groups)."""

    tokens: int = 4096
    experts: int = 256
    top: int = 8
    boxes: int = 4
    zipf: float = 0.0
    seed: int = 0


def read_tokens(instance: FabricInstance, file: InputFile, placement: InputFile | None) -> Tokens:
    """The tokens of a CSV file ``source,goals[,tokens]`` (ranks), or ``source,experts[,tokens]`` with a ``placement``,
    a CSV file ``expert,rank[,copies]``; either may be a JSON list of tables with these keys. Of several copies of an
    expert a token takes one on its own rank, else one in its box, else one after the other. Raises :class:`InputError`
    naming every fault of both files by its line."""
    by_expert = "experts" in _keys(file)
    if by_expert and placement is None:
        raise InputError("names experts: where they are is to be given (--placement)", str(file))
    if placement is not None and not by_expert:
        raise InputError("names ranks, no experts: a placement has no meaning", str(file))
    where: dict[int, list[int]] | None = None
    rows, faults = list[dict[str, Any]](), list[Fault]()
    try:
        where = None if placement is None else _placement(instance, placement)
    except InputError as error:
        faults += [replace(fault, path=f"{placement}, {fault.path}") for fault in error.faults]
    try:
        rows = _token_rows(instance, file, "experts" if by_expert else "goals", where)
    except InputError as error:
        faults += [replace(fault, path=f"{file}, {fault.path}") for fault in error.faults]
    if faults:
        raise InputError(faults)
    source, wanted = _expanded(rows, file)
    return Tokens(source, wanted if where is None else _placed(instance, where, source, wanted))


def _keys(file: InputFile) -> Container[str]:
    """The columns of a table, or the keys of a list's first table."""
    if is_list(file):
        _, first = next(elements(file), (0, {}))
        return first if isinstance(first, dict) else ()
    return re.split(r"[,\s\"]+", file.text.lstrip("\ufeff").partition("\n")[0])


def _rows(file: InputFile, *of: Any) -> list[dict[str, Any]]:
    """The rows of a table in CSV or JSON."""
    return (typed_tables if is_list(file) else typed_rows)(file, *of)


def read_experts(instance: FabricInstance, file: InputFile) -> Tokens:
    """The tokens of a CSV file ``source,experts[,tokens]``, their goals being experts. Raises :class:`InputError`."""
    return Tokens(*_expanded(_token_rows(instance, file, "experts", None), file))


def _expanded(rows: Sequence[Mapping[str, Any]], file: InputFile) -> tuple[IntArray, IntArray]:
    """A row for every token: its source, and what it wants."""
    count = np.array([row.get("tokens", 1) for row in rows], dtype=np.int64)
    if int(count.sum()) > MOST_TOKENS:
        raise InputError(f"has {int(count.sum()):,} tokens: at most {MOST_TOKENS:,} are supported", str(file))
    most = max(len(row["wanted"]) for row in rows)
    if int(count.sum()) * most > MOST_GOALS:
        words = f"has {int(count.sum()):,} tokens, one with {most:,} goals: at most {MOST_GOALS:,} are supported in all"
        raise InputError(words, str(file))
    source = np.repeat(np.array([row["source"] for row in rows], dtype=np.int64), count)
    goals = np.full((len(rows), most), NOBODY, dtype=np.int64)
    for goal, row in zip(goals, rows, strict=True):
        goal[: len(row["wanted"])] = row["wanted"]
    return source, np.repeat(goals, count, axis=0)


def _token_rows(
    instance: FabricInstance, file: InputFile, key: str, where: Mapping[int, list[int]] | None
) -> list[dict[str, Any]]:
    """The rows of a table of tokens, ``wanted`` the experts or the ranks of each."""
    several = _experts if key == "experts" else _ranks_reader(instance)
    columns = {"source": _rank_reader(instance), key: several, "tokens": whole_cell(MOST_TOKENS, 1)}

    def wrong(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        named = row.get(key, [])
        if len(set(named)) < len(named):
            yield from ((key, f"names {one} twice") for one, many in sorted(Counter(named).items()) if many > 1)
        if where is not None:
            yield from ((key, f"expert {one} is nowhere") for one in named if one not in where)

    rows = _rows(file, columns, ("source", key), "token", wrong)
    return [row | {"wanted": row[key]} for row in rows]


def _placed(instance: FabricInstance, where: Mapping[int, list[int]], source: IntArray, experts: IntArray) -> IntArray:
    """The rank of every token's copy of every expert."""
    box = _box_of(instance)
    found = np.full_like(experts, NOBODY)
    flat = experts.ravel()
    order = np.argsort(flat, kind="stable")
    first, own = np.full(box.max() + 1, NOBODY), np.zeros(len(box), dtype=bool)
    for cells in np.split(order, np.flatnonzero(np.diff(flat[order])) + 1):
        expert = int(flat[cells[0]])
        if expert < 0:
            continue
        t = cells // experts.shape[1]
        at = np.array(where[expert], dtype=np.int64)
        first[box[at[::-1]]] = at[::-1]  # the first in a box is written last
        own[at] = True
        near = first[box[source[t]]]
        far = np.where(near >= 0, near, at[t % len(at)])
        found.ravel()[cells] = np.where(own[source[t]], source[t], far)
        first[box[at]], own[at] = NOBODY, False
    return found


def _box_of(instance: FabricInstance) -> IntArray:
    """The box of every rank, by its place in the process group."""
    of = {rank: number for number, box in enumerate(instance.boxes) for rank in box}
    return np.array([of[rank] for rank in instance.members], dtype=np.int64)


def _placement(instance: FabricInstance, file: InputFile) -> dict[int, list[int]]:
    """The ranks of every expert."""
    columns = {"expert": whole_cell(MOST_EXPERTS), "rank": _rank_reader(instance), "copies": whole_cell(MOST_COPIES, 1)}
    seen = set[tuple[int, int]]()

    def wrong(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if (pair := (row.get("expert", -1), row.get("rank", -1))) in seen and min(pair) >= 0:
            yield "", f"places expert {pair[0]} on rank {pair[1]} twice"
        seen.add(pair)

    where: dict[int, list[int]] = {}
    rows = _rows(file, columns, ("expert", "rank"), "expert", wrong)
    if (placed := sum(row.get("copies", 1) for row in rows)) > MOST_PLACED:
        raise InputError(f"has {placed:,} copies: at most {MOST_PLACED:,} are supported", str(file))
    for row in rows:
        where.setdefault(row["expert"], []).extend([row["rank"]] * row.get("copies", 1))
    return where


def _ranks_reader(instance: FabricInstance) -> Callable[[str], list[int]]:
    """What reads ranks, ``0 1 4-7`` or by name, as places in the process group."""
    names, place = instance.machine.names, {rank: k for k, rank in enumerate(instance.members)}

    @cache
    def read(text: str) -> list[int]:
        try:
            nodes = nodes_meant(re.sub(r"[\s;]+", ",", text.strip()), "", names)
        except InputError as error:
            raise ValueError("; ".join(fault.message for fault in error.faults)) from None
        strange = [node for node in nodes if node not in place]
        if strange:
            raise ValueError(f"{strange[0]} is no rank of the process group")
        return [place[node] for node in nodes]

    return read


def _rank_reader(instance: FabricInstance) -> Callable[[str], int]:
    ranks = _ranks_reader(instance)

    def read(text: str) -> int:
        found = ranks(text)
        if len(found) != 1:
            raise ValueError("must be one rank")
        return found[0]

    return read


@cache
def _experts(text: str) -> list[int]:
    read = whole_cell(MOST_EXPERTS)
    return [read(word) for word in re.split(r"[\s,;]+", text.strip())]


def drawn(instance: FabricInstance, draw: Draw) -> Tokens:
    """Drawn tokens, the experts in order over the ranks. Raises :class:`InputError` as :func:`drawn_experts`."""
    boxes, ranks = len(instance.boxes), len(instance.members)
    source, experts = drawn_experts(instance, draw)
    box = _box_of(instance)
    at = np.concatenate([np.flatnonzero(box == b) for b in range(boxes)])
    return Tokens(source, at[experts * ranks // draw.experts])


def drawn_experts(instance: FabricInstance, draw: Draw) -> Tokens:
    """Drawn tokens, their goals being experts. Raises :class:`InputError` for numbers that do not fit the machine."""
    boxes, ranks = len(instance.boxes), len(instance.members)
    most = min(draw.boxes, boxes)
    tests = {
        "tokens": draw.tokens >= 1 and draw.tokens * ranks <= MOST_TOKENS,
        "experts": 1 <= draw.experts <= MOST_EXPERTS and draw.experts % ranks == 0,
        "boxes": draw.boxes >= 1,
        "top": 1 <= draw.top <= draw.experts // boxes * max(most, 1),
        "zipf": 0.0 <= draw.zipf <= 10.0,
        "seed": draw.seed >= 0,
    }
    faults = [Fault(key, f"does not fit {ranks} ranks in {boxes} boxes", getattr(draw, key), True)
              for key, fits in tests.items() if not fits]  # fmt: skip
    drawn_of_rank = draw.tokens * draw.experts
    if not faults and (drawn_of_rank > MOST_DRAWN_OF_RANK or drawn_of_rank * ranks > MOST_DRAWN):
        words = f"times experts is {drawn_of_rank:,} of a rank: at most {MOST_DRAWN_OF_RANK:,}, {MOST_DRAWN:,} of all"
        faults.append(Fault("tokens", words, draw.tokens, True))
    if faults:
        raise InputError(faults)
    rng = np.random.default_rng(draw.seed)
    share = rng.permutation(1 / np.arange(1, draw.experts + 1) ** draw.zipf)
    found = [_chosen(rng, np.log(share), boxes, most, draw) for _ in range(ranks)]
    return Tokens(np.repeat(np.arange(ranks), draw.tokens), np.concatenate(found))


def _chosen(rng: np.random.Generator, share: FloatArray, boxes: int, most: int, draw: Draw) -> IntArray:
    """The experts of a rank's tokens, shape (tokens, top): those of the largest sums of a logarithm of popularity and a
    number of Gumbel's distribution, which draws in proportion to popularity without replacement."""
    score = (share - np.log(-np.log(rng.random((draw.tokens, draw.experts))))).reshape(draw.tokens, boxes, -1)
    best = np.sort(score, axis=2)[:, :, -2:].sum(axis=2)
    out = np.argsort(-best, axis=1)[:, most:]
    np.put_along_axis(score, out[:, :, None], -np.inf, axis=1)
    chosen: IntArray = np.argpartition(-score.reshape(draw.tokens, -1), draw.top - 1, axis=1)[:, : draw.top]
    return chosen
