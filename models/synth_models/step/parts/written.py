"""A training step as a person writes it, in TOML: layers, their sizes and how they are spread over ranks.

layers = 32
hidden = 4096             # or activation = "32MiB" of a microbatch, and parameters = "400MB" of a layer
sequence = 4096
flops = 400e12            # of a rank a second, or forward = "1.2ms" of a layer on one rank
microbatches = 8
parallel = { tp = 8, pp = 4, dp = 2, ep = 1 }
over = { tp = "nvlink", dp = "nic" }       # default: tp over the first class of links, all others over the last
[links]
nvlink = { bandwidth = "450GB/s", latency = "1us" }
nic = { bandwidth = "50GB/s", latency = "3us" }
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from synth.errors import Fault, InputError
from synth.instance import Part, faults_of
from synth.making import Bytes, Rate, Seconds
from synth.text.input_file import InputFile
from synth.text.toml import parse_toml
from synth_models.step.instance import MOST_BYTES, MOST_NODES, MOST_SECONDS

Few = Annotated[int, Field(ge=1, le=1 << 16, strict=True)]


class Port(Part):
    """A class of links."""

    bandwidth: Rate
    latency: Seconds = 0.0


class Degrees(Part):
    """Ranks along each axis; the ``ep`` ranks that share experts are among the ``dp``."""

    tp: Few = 1
    pp: Few = 1
    dp: Few = 1
    ep: Few = 1


class Links(Part):
    """Which class of links each axis uses."""

    tp: str | None = None
    pp: str | None = None
    dp: str | None = None
    ep: str | None = None


class Written(Part):
    """``hidden``, ``sequence``: of the transformer; ``batch``: sequences of a microbatch; ``width``: bytes of a number;
    ``experts``: to how many a token goes. ``activation``: bytes that a layer passes on of a microbatch, ``parameters``:
    bytes of a layer, before tp divides them. ``forward``: seconds of a layer's forward pass of a microbatch on a rank;
    ``backward``: of the backward pass (default: twice)."""

    layers: Few
    microbatches: Few = 1
    hidden: Few | None = None
    sequence: Annotated[int, Field(ge=1, le=1 << 30, strict=True)] | None = None
    batch: Few = 1
    width: Annotated[int, Field(ge=1, le=8, strict=True)] = 2
    experts: Few = 1
    activation: Bytes | None = None
    parameters: Bytes | None = None
    flops: Annotated[float, Field(gt=0)] | None = None
    forward: Seconds | None = None
    backward: Seconds | None = None
    schedule: Literal["1f1b", "gpipe"] = "1f1b"
    parallel: Degrees = Degrees()
    over: Links = Links()
    links: Annotated[dict[str, Port], Field(min_length=1)]

    @property
    def moved(self) -> int:
        """Bytes of a microbatch between layers."""
        given = self.activation
        return round(given if given is not None else self._tokens * (self.hidden or 0) * self.width)

    @property
    def held(self) -> int:
        """Bytes of a layer's parameters on a rank: 12 hidden^2 (Narayanan et al. 2021), where they are not given."""
        given = self.parameters
        whole = given if given is not None else 12 * (self.hidden or 0) ** 2 * self.width
        return -(-round(whole) // self.parallel.tp)

    @property
    def passes(self) -> tuple[float, float]:
        """Seconds of a layer's forward and backward pass of a microbatch: 24 tokens hidden^2 + 4 tokens sequence hidden
        operations forward (Narayanan et al. 2021, appendix), spread over tp."""
        if self.forward is not None:
            ahead = self.forward
        else:
            hidden, sequence = self.hidden or 0, self.sequence or 0
            work = self._tokens * (24 * hidden**2 + 4 * sequence * hidden)
            ahead = work / (self.flops or 1.0) / self.parallel.tp
        return ahead, 2 * ahead if self.backward is None else self.backward

    @property
    def _tokens(self) -> int:
        return (self.sequence or 0) * self.batch

    def link(self, axis: str) -> str:
        """The class of links that the axis uses."""
        names = list(self.links)
        return getattr(self.over, axis) or (names[0] if axis == "tp" else names[-1])


def read_written(file: InputFile) -> Written:
    """The step of a TOML file. Raises :class:`InputError` with the faults of all keys."""
    raw = parse_toml(file.text, str(file))
    faults: list[Fault] = []
    found = None
    try:
        found = Written.model_validate(raw)
    except ValidationError as error:
        faults += faults_of(error, raw)
    seen = {fault.path for fault in faults}
    faults += [fault for fault in _together(raw) if fault.path not in seen]
    faults += [] if found is None else _too_large(found)
    if found is None or faults:
        raise InputError(faults, str(file))
    return found


def _too_large(step: Written) -> Iterator[Fault]:
    """What an instance cannot hold."""
    for key, moved in (("activation", step.moved * step.experts), ("parameters", step.held)):
        if moved > MOST_BYTES:
            yield Fault(key, f"comes to {moved:.3g} bytes of a collective, more than {MOST_BYTES:.3g}")
    if max(step.passes) > MOST_SECONDS:
        yield Fault("forward", f"comes to {max(step.passes):.3g} s of a pass, more than {MOST_SECONDS:g}")


def _together(raw: dict[str, Any]) -> Iterator[Fault]:
    """What keys say together that cannot be; each is read as far as it is of its kind."""
    sized = "hidden" in raw and "sequence" in raw
    for key, needed, enough in (
        ("activation", "hidden and sequence", sized),
        ("parameters", "hidden", "hidden" in raw),
        ("forward", "flops, hidden and sequence", sized and "flops" in raw),
    ):
        if key not in raw and not enough:
            yield Fault(key, f"is missing: give it, or {needed}")
    if "forward" in raw and "flops" in raw:
        yield Fault("flops", "stands beside forward: give one of the two")
    yield from _degrees(raw)
    over, links = raw.get("over", {}), raw.get("links")
    if isinstance(over, dict) and isinstance(links, dict):
        for axis, name in over.items():
            if isinstance(name, str) and name not in links:
                yield Fault(f"over.{axis}", f"no such class of links; there are {', '.join(links)}", name, True)


def _degrees(raw: dict[str, Any]) -> Iterator[Fault]:
    """Layers, microbatches and ranks along the axes that do not go together."""
    given = raw.get("parallel", {})
    tp, pp, dp, ep = (_whole(given.get(axis, 1) if isinstance(given, dict) else 0) for axis in ("tp", "pp", "dp", "ep"))
    layers, many = _whole(raw.get("layers")), _whole(raw.get("microbatches", 1))
    if layers and pp and layers % pp:
        yield Fault("layers", f"must be a multiple of pp = {pp}", layers, True)
    if dp and ep and dp % ep:
        yield Fault("parallel.ep", f"must divide dp = {dp}", ep, True)
    if tp * dp > 1 << 20:
        yield Fault("parallel", f"tp x dp are {tp * dp} ranks, more than {1 << 20}")
    if 12 * layers * many > MOST_NODES:
        yield Fault("layers", f"times microbatches must be at most {MOST_NODES // 12}", layers * many, True)


def _whole(value: Any) -> int:
    """The number, 0 for what is none."""
    return value if type(value) is int and value > 0 else 0
