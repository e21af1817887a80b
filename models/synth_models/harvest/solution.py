"""The solution type of all methods: a topology and the flows of every step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.text import untrusted
from synth_models.harvest.instance import HarvestInstance

if TYPE_CHECKING:
    import pandas as pd


_TOPOLOGY_INTS = ("topology_start", "link_src", "link_dst", "link_count", "topology_of_step")
_FLOW_INTS = ("flow_start", "pair", "hop", "src", "dst")


@dataclass(frozen=True)
class Schedule:
    """Which topology each step runs on, and how its pairs are routed there.

    ``topologies``: arrays of shape (links, 3): source, destination, number of parallel links, each pair of ends once
    and no loops. ``topology_of_step``: index into them, shape (steps,).

    The flows stand in five columns: ``pair`` (index into the step's pairs), ``hop`` (from 0), ``src``, ``dst`` and
    ``share`` (fraction of the pair's bytes that makes its hop-th hop on this link). Time-expanded, so that the longest
    route is the largest hop + 1 and conservation holds hop by hop; whole routes need not be listed. Rows of step i are
    ``flow_start[i]:flow_start[i + 1]``.
    """

    topologies: tuple[IntArray, ...]
    topology_of_step: IntArray
    flow_start: IntArray
    pair: IntArray
    hop: IntArray
    src: IntArray
    dst: IntArray
    share: FloatArray


def pack(schedule: Schedule) -> dict[str, Any]:
    """Plain values and flat arrays: the topologies one after the other (``topology_start``), then the flow columns."""
    rows = np.concatenate([np.zeros((0, 3), dtype=np.int64), *schedule.topologies])
    starts = np.cumsum([0, *(len(links) for links in schedule.topologies)], dtype=np.int64)
    packed: dict[str, Any] = {"topology_start": starts, "topology_of_step": schedule.topology_of_step}
    packed |= {"link_src": rows[:, 0], "link_dst": rows[:, 1], "link_count": rows[:, 2]}
    return packed | {name: getattr(schedule, name) for name in (*_FLOW_INTS, "share")}


def unpack(instance: HarvestInstance, packed: Mapping[str, Any]) -> Schedule:
    """The inverse of :func:`pack`. Raises ``ValueError`` on data that is no schedule.

    Whole numbers are of 32 bits here (:mod:`synth.text.untrusted`), so that sums and products of two of them are exact.
    """
    ints = {name: untrusted.whole_numbers(packed, name) for name in (*_TOPOLOGY_INTS, *_FLOW_INTS)}
    share = untrusted.numbers(packed, "share")
    starts, size = ints["topology_start"], len(ints["link_src"])
    if len({len(ints[name]) for name in ("link_src", "link_dst", "link_count")}) > 1:
        raise ValueError("the columns of the links differ in length")
    if len({len(share), *(len(ints[name]) for name in ("pair", "hop", "src", "dst"))}) > 1:
        raise ValueError("the columns of the flows differ in length")
    for name, last in (("topology_start", size), ("flow_start", len(share))):
        begins = ints[name]
        if not len(begins) or begins[0] != 0 or begins[-1] != last or np.any(np.diff(begins) < 0):
            raise ValueError(f"{name} does not cut its rows into consecutive parts")
    rows = np.stack([ints["link_src"], ints["link_dst"], ints["link_count"]], axis=1)
    topologies = tuple(rows[a:b] for a, b in pairwise(starts.tolist()))
    flows = {name: ints[name] for name in _FLOW_INTS}
    return Schedule(topologies, ints["topology_of_step"], share=share, **flows)


def table(instance: HarvestInstance, schedule: Schedule) -> pd.DataFrame:
    """Columns ``step,src,dst,links``: the links of every step's topology."""
    import pandas as pd

    chosen = [schedule.topologies[number] for number in schedule.topology_of_step]
    rows = np.concatenate(chosen)
    step = np.repeat(np.arange(len(chosen)), [len(links) for links in chosen])
    return pd.DataFrame({"step": step, "src": rows[:, 0], "dst": rows[:, 1], "links": rows[:, 2]})


def flow_table(instance: HarvestInstance, schedule: Schedule) -> pd.DataFrame:
    """Columns ``step,pair_src,pair_dst,src,dst,flow``: share of a pair's bytes that crosses a link, over all hops.

    ``flow`` is a rounded sum; behind it ``hops`` and ``shares``, as many numbers in each, separated by spaces: in which
    hop of the pair's ways (from 0) which share crosses the link, every share as the float that the check replays.
    """
    import pandas as pd

    step = np.repeat(np.arange(len(instance.steps)), np.diff(schedule.flow_start))
    offset = np.cumsum([0, *(len(pairs) for pairs in instance.pairs[:-1])])
    ends = np.concatenate(instance.pairs)[schedule.pair + offset[step]]
    keys = {"step": step, "pair_src": ends[:, 0], "pair_dst": ends[:, 1], "src": schedule.src, "dst": schedule.dst}
    order = np.lexsort((schedule.hop, *reversed(keys.values())))
    texts = {"hops": schedule.hop, "shares": schedule.share}
    frame = pd.DataFrame(keys | {"flow": schedule.share} | {k: list(map(repr, v.tolist())) for k, v in texts.items()})
    made = frame.groupby(list(keys))["flow"].sum().reset_index()
    for name, column in frame.iloc[order].groupby(list(keys))[list(texts)].agg(" ".join).items():
        made[name] = column.to_numpy()
    return made
