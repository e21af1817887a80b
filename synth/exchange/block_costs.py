"""What an executor's run costs beside the links: thread blocks, steps, the launch.

The statement, which the replay (the family's ``timing``) and its independent check keep to:

* A thread block runs its steps one after the other. A step takes :attr:`Costs.step` seconds, and the data of its
  message or copy at the rate of the block (``block``, or ``sum`` where it adds) or slower, as its links allow.
* A link does the work of sends in the order in which they become ready: each is bytes over the link's rate, times
  ``link`` (within a box) or ``net`` (between boxes). A send's data is over when that is done on all links of its route,
  and not before the block's rate allows; blocks that are slower than a link share it. Work comes to a link later by the
  latency of the links before.
* A receiver may begin when the first ``slice_bytes`` of a message (all of a smaller one) are there: sent, and then as
  much later as the step (``net_step`` between boxes) or the links' latencies take, whichever is longer. It is done with
  the data when all of it is there, at the earliest. A step that receives and sends takes the data through once.
* Where a chunk is larger than ``pass_bytes``, the program runs again and again, a slice of every chunk a time.
* All that begins ``launch`` seconds late.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from synth.errors import Fault, InputError
from synth.instance import Instance
from synth.text import amounts
from synth.text.quantities import shown

FILE = Path(__file__).with_name("block_costs.toml")
GENERATIONS = ("volta", "ampere", "hopper", "blackwell", "mi250", "mi300x")
RUNS = {"mscclpp": "mscclpp"}  # forms that run other code than the GPU's library


def _share(text: str) -> float:
    """A share of a rate, 1 at most."""
    return 1.0 if text.strip() in ("1", "1.0", "100%") else float(amounts.share(text))


GIVEN: dict[str, Callable[[str], float]] = {  # what may be said instead, and how it reads
    "block": amounts.rate,
    "sum": amounts.rate,
    "step": amounts.duration,
    "net_step": amounts.duration,
    "launch": amounts.duration,
    "link": _share,
    "net": _share,
    "switch": _share,
}


@dataclass(frozen=True)
class Costs:
    """Seconds, bytes/s, bytes, and shares of the links' rates, as the module's page states them; without a number
    nothing costs anything. ``switch``: of the rate ``link`` leaves, where a switch copies or adds."""

    block: float = math.inf
    sum: float = math.inf
    step: float = 0.0
    net_step: float = 0.0
    launch: float = 0.0
    link: float = 1.0
    net: float = 1.0
    switch: float = 1.0
    slice_bytes: int = 0
    pass_bytes: int = 0


@dataclass(frozen=True)
class CostModel:
    """The costs by protocol; ``gpu``: the generation, empty where none is known; ``given``: what was said instead."""

    form: str
    gpu: str
    by_protocol: Mapping[str, Costs]
    source: str
    given: Mapping[str, float]

    def of(self, protocol: str) -> Costs:
        """Those of a protocol; of one that is not known, of Simple."""
        return self.by_protocol.get(protocol, self.by_protocol["Simple"])

    @property
    def protocols(self) -> tuple[str, ...]:
        """Those that are known apart."""
        return tuple(self.by_protocol)

    def without(self, kind: str) -> CostModel:
        """The same where costs of a kind of :data:`FREE` are nothing."""
        free: dict[str, Any] = dict(FREE[kind])
        return replace(self, by_protocol={name: replace(one, **free) for name, one in self.by_protocol.items()})

    @property
    def inner_percent(self) -> int:
        """What a box's links keep of their rates beside what a NIC keeps, in percent; 100 where they keep as much."""
        one = self.of("Simple")
        return min(100, max(1, round(100 * one.link / one.net)))

    @property
    def words(self) -> str:
        """The model in a line."""
        one = self.of("Simple")
        rate = shown(one.block, "bytes/s") if math.isfinite(one.block) else "any rate"
        parts = [
            f"{rate} a thread block",
            f"{shown(one.step, 's')} a step ({shown(max(one.net_step, one.step), 's')} between boxes)",
            f"{shown(one.launch, 's')} a launch",
            f"{one.link:.3g} of a box's and {one.net:.3g} of a NIC's rate",
        ]
        said = f"; given: {', '.join(self.given)}" if self.given else ""
        of = f"{self.gpu}, protocol Simple" if self.gpu else "GPU not known"
        return f"{of}: {', '.join(parts)} ({self.source}{said})"


FREE: Mapping[str, Mapping[str, float]] = {  # kinds of costs, and what they are where they are nothing
    "links at a share of their rates": {"link": 1.0, "net": 1.0, "switch": 1.0},
    "steps": {"step": 0.0, "net_step": 0.0},
    "the rate of thread blocks": {"block": math.inf, "sum": math.inf},
    "the launch": {"launch": 0.0},
}
IDEAL = "an ideal executor: thread blocks as quick as links, steps and launches that cost nothing (--gpu says another)"


def words_of(costs: CostModel | None) -> str:
    """The model of a form's times, in a line."""
    return f"cost model: {IDEAL if costs is None else costs.words}"


@cache
def data() -> dict[str, Any]:
    """The file's tables."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def gpu_of(instance: Instance) -> str | None:
    """The generation of a machine's GPUs by the machine's name; None where it is not known."""
    name = getattr(getattr(instance, "network", None), "name", None)
    found = data()["machine"].get(name) if isinstance(name, str) else None
    return None if found is None else str(found)


def demand_gpu(name: str | None, option: str = "--gpu") -> None:
    """Raises :class:`InputError` for a generation that is not known."""
    if name is not None and name not in (*GENERATIONS, "ideal"):
        raise InputError([Fault(option, f"must be one of {', '.join(GENERATIONS)}, ideal", name, True)])


def read_given(text: str | None) -> dict[str, float]:
    """``block=40GB/s,step=1us,launch=5us`` as numbers. Raises :class:`InputError`."""
    found: dict[str, float] = {}
    for word in filter(None, (part.strip() for part in (text or "").split(","))):
        key, sign, value = word.partition("=")
        if key not in GIVEN or not sign:
            raise InputError([Fault("--cost", f"must be KEY=VALUE with a key of {', '.join(GIVEN)}", word, True)])
        if key in found:
            raise InputError([Fault("--cost", f"{key} is given twice", text, True)])
        try:
            found[key] = GIVEN[key](value)
        except ValueError as error:
            raise InputError([Fault("--cost", f"{key} {error}", value, True)]) from None
    return found


def cost_model(form: str, gpu: str | None, given: Mapping[str, float] | None = None) -> CostModel | None:
    """The model of a form on GPUs of a generation; None (an ideal executor) where no generation is known and nothing is
    given, and for ``ideal``. Raises :class:`InputError` for an unknown generation."""
    demand_gpu(gpu)
    said = dict(given or {})
    known = gpu is not None and gpu != "ideal"
    if not known and not said:
        return None
    found = {"Simple": Costs()}
    source = "as given"
    if known:
        card = data()["gpu"][gpu]
        runs = RUNS.get(form.partition(":")[0], card["runs"])
        source = "; ".join(data()["source"][name] for name in dict.fromkeys((runs, card["runs"])))
        table = data()["runs"][runs]
        found = {name: _costs(table[name], card, name) for name in table if name in card["block"]}
    own: dict[str, Any] = dict(said)
    if "block" in own:
        own.setdefault("sum", own["block"])
    found = {name: replace(one, **own) for name, one in found.items()}
    return CostModel(form, gpu if known and gpu is not None else "", found, source, said)


def _costs(run: Mapping[str, float], card: Mapping[str, Any], protocol: str) -> Costs:
    share, rate = run["share"], card["block"][protocol]
    return Costs(
        block=rate, sum=rate, step=run["step"], net_step=run["net_step"], launch=run["launch"],
        link=card["link"] * share, net=card["net"] * share, switch=card["switch"],
        slice_bytes=int(run["slice"]), pass_bytes=int(run["pass"]),
    )  # fmt: skip


def costs_for(instance: Instance, form: str, gpu: str | None = None, given: str | None = None) -> CostModel | None:
    """The model of a form for an instance: by ``gpu``, else by its machine's name, and what is ``given``."""
    return cost_model(form, gpu or gpu_of(instance), read_given(given))
