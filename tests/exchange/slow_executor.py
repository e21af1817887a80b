"""The time of an executor's program by the statement of :mod:`synth.exchange.block_costs`, event by event in plain
Python, on machines where every pair of ranks that talk has links of its own and nothing is shared but by sends of the
same pair. Shares no code with the replay: steps, messages and waits are read off the algorithm's columns once more.

* A step may begin when the step before it in its thread block (of the pass before, for a pass's first) and the one it
  depends on are over, and, where it receives, when the first slice of its message is there. Of steps that may begin at
  one moment the one of the earliest pass and the least number comes first.
* A link works off sends in that order, bytes / (rate * share) each. A send's data takes until its work is done, and
  bytes / block rate at least; it keeps its block for that and the step's cost. A receiver's data is over when the
  last of it has come, at the earliest.
* The first slice is there when its share of the sender's data time is over, and the longer of latency and step cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import ceil, inf

from synth.exchange.algorithm import KINDS, RECEIVES, SENDS, Algorithm
from synth.exchange.block_costs import Costs

Pair = tuple[int, int]
ADDS = ("re", "rrc", "rrs", "rrcs")


def slow_seconds(
    a: Algorithm, part_bytes: int, links: Mapping[Pair, tuple[float, float]], box: Mapping[int, int], costs: Costs
) -> float:
    """Seconds; ``links``: rate and latency by sender and receiver, ``box``: the box of every rank."""
    chunk = part_bytes / a.chunks
    passes = max(1, ceil(chunk / costs.pass_bytes)) if costs.pass_bytes else 1
    steps = [
        (b, k) for b in range(len(a.tb_rank)) for k in range(int(a.step_start[b + 1] - a.step_start[b]))
    ]  # block, place
    at = {step: int(a.step_start[step[0]]) + step[1] for step in steps}
    kind = {step: KINDS[int(a.kind[at[step]])] for step in steps}
    first_block = {rank: min(b for b in range(len(a.tb_rank)) if a.tb_rank[b] == rank) for rank in range(a.ranks)}
    sent, received = defaultdict(list), defaultdict(list)
    for step in steps:
        b = step[0]
        if kind[step] in SENDS:
            sent[int(a.tb_rank[b]), int(a.tb_send[b]), int(a.tb_channel[b])].append(step)
        if kind[step] in RECEIVES:
            received[int(a.tb_recv[b]), int(a.tb_rank[b]), int(a.tb_channel[b])].append(step)
    sender = {r: s for key in sent for s, r in zip(sent[key], received[key], strict=True)}
    over: dict[tuple[int, int, int], float] = {}
    there: dict[tuple[int, int, int], float] = {}
    last: dict[tuple[int, int, int], float] = {}
    worked_off: dict[Pair, float] = defaultdict(float)
    left = [(p, *step) for p in range(passes) for step in steps]
    while left:
        ready: dict[tuple[int, int, int], float] = {}
        for p, b, k in left:
            length = int(a.step_start[b + 1] - a.step_start[b])
            needs = []
            if k or p:
                needs.append(over.get((p, b, k - 1) if k else (p - 1, b, length - 1), inf))
            i = at[b, k]
            if a.dep_tb[i] >= 0:
                needs.append(over.get((p, first_block[int(a.tb_rank[b])] + int(a.dep_tb[i]), int(a.dep_step[i])), inf))
            if (b, k) in sender:
                needs.append(there.get((p, *sender[b, k]), inf))
            ready[p, b, k] = max(needs, default=0.0)
        one = min(left, key=lambda node: (ready[node], node[0], at[node[1:]]))
        assert ready[one] < inf, "steps wait for each other"
        left.remove(one)
        p, b, k = one
        word = kind[b, k]
        size = 0.0 if word == "nop" else int(a.count[at[b, k]]) * chunk / passes
        took = size / (costs.sum if word in ADDS else costs.block)
        begin, step = ready[one], 0.0 if word == "nop" else costs.step
        if (b, k) in sender:
            took = max(took, last[(p, *sender[b, k])] - begin)
        if word in SENDS:
            pair = int(a.tb_rank[b]), int(a.tb_send[b])
            rate, latency = links[pair]
            far = box[pair[0]] != box[pair[1]]
            worked_off[pair] = max(worked_off[pair], begin) + size / (rate * (costs.net if far else costs.link))
            took = max(took, worked_off[pair] - begin)
            part = min(1.0, costs.slice_bytes / size) if costs.slice_bytes and size else 1.0
            hop = max(latency, costs.step, costs.net_step) if far else max(latency, costs.step)
            there[one], last[one] = begin + took * part + hop, begin + took + hop
        over[one] = begin + took + step
    return costs.launch + max(over.values())
