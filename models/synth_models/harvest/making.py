"""``synth make harvest``: instances from an algorithm's name or from a file of steps or demands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from synth.errors import Fault, InputError
from synth.making import BytesOrNone, Count, Flag, Keys, Listed, Rate, Seconds, Sides
from synth.options import read_int
from synth.text.amounts import real
from synth.text.input_file import InputFile
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.parts.patterns import ALGORITHMS, USES, Wish
from synth_models.harvest.parts.step_files import lists_steps, read_steps

_FABRIC = ("gpus", "ports", "port_bandwidth", "alpha", "delta", "reconfiguration_delay", "delay_per_circuit", "latency")
_ALGORITHM = ("half", "direction", "radix", "sends", "root", "order", "torus", "mirrored")


class HarvestKeys(Keys):
    """The fabric, and the steps: an algorithm with its message, or a file.

    A ``steps`` file is a JSON list of steps (``.json``, ``.steps``), or a CSV matrix of bytes from every GPU (row) to
    every other (column), which is split by Birkhoff-von Neumann, or kept as one step with ``split=off``.
    """

    examples = (
        "algorithm=recursive_doubling gpus=64 ports=1 message_bytes=4194304 port_bandwidth=100e9 alpha=500e-9 "
        "delta=500e-9 reconfiguration_delay=1e-5",
        "algorithm=binomial_broadcast gpus=8 ports=1 message_bytes=1048576 port_bandwidth=100e9 alpha=500e-9 "
        "delta=500e-9 reconfiguration_delay=1e-6 delay_per_circuit=5e-7 overlap=2e-6",
        "steps=DEMAND.csv ports=2 port_bandwidth=100e9 alpha=0 delta=0 reconfiguration_delay=1e-5",
        "algorithm=swing_torus torus=4x16 gpus=64 ports=4 message_bytes=4194304 port_bandwidth=100e9 alpha=500e-9 "
        "delta=500e-9 reconfiguration_delay=1e-5",
    )
    algorithm: str | None = Field(None, description=f"one of {', '.join(ALGORITHMS)}")
    steps: InputFile | None = Field(None, description="file with steps or demands, instead of an algorithm")
    split: Flag | None = Field(None, description="a matrix into steps of one partner each (default on)")
    gpus: Annotated[int, Field(ge=2, le=4096)] | None = Field(None, description="needed with an algorithm")
    ports: Annotated[int, Field(ge=1, le=64, description="of every GPU")]
    port_bandwidth: Rate = Field(description="bytes/s")
    alpha: Seconds = Field(description="start-up time of a step, seconds")
    delta: Seconds = Field(description="propagation time of a hop, seconds")
    reconfiguration_delay: Seconds = Field(description="seconds, of any change of topology")
    delay_per_circuit: Seconds | None = Field(None, description="seconds more for every circuit that is set up")
    delay_by_ports: Listed | None = Field(
        None,
        description="seconds more by ports changed, rows PORTS:SECONDS (at most that many of the 2 * gpus * ports "
        "inputs and outputs), the last one for all: 32:1e-6,128:1e-5",
    )
    overlap: Seconds | Listed | None = Field(
        None,
        description="seconds of the reconfiguration before a step hidden behind computation: one number for all steps, "
        "or one a step",
    )
    latency: Literal["on", "off"] | None = Field(None, description="whether hops cost delta (default on)")
    message_bytes: BytesOrNone | None = Field(None, description="bytes; needed with an algorithm")
    half: Literal["both", "reduce_scatter", "allgather"] | None = Field(None, description="of an allreduce")
    direction: Literal["forwards", "backwards"] | None = Field(
        None, description="of the allgather half round the ring (default forwards)"
    )
    radix: Annotated[int, Field(ge=2)] | None = Field(None, description="Bruck (default 2)")
    sends: Count | None = Field(None, description="Bruck: partners that a GPU may send to in a step (default 1)")
    root: Annotated[int, Field(ge=0)] | None = Field(None, description="broadcast (default 0)")
    order: Literal["halving", "doubling"] | None = Field(
        None, description="of distances: binomial broadcast (default halving), bine (default doubling, as in Swing)"
    )
    torus: Sides | None = Field(None, description="swing_torus: sides such as 8x8, 4x16 or 2x4x8")
    mirrored: Flag | None = Field(None, description="swing_torus: both directions of every dimension (default on)")

    @classmethod
    def faults_in(cls, values: Mapping[str, Any]) -> list[Fault]:
        if ("algorithm" in values) == ("steps" in values):
            return [Fault("", "give algorithm or steps, one of the two")]
        faults = _file_faults(values) if "steps" in values else _algorithm_faults(values)
        return faults + list(_delay_faults(values))


def make(keys: HarvestKeys) -> HarvestInstance:
    """An instance of these keys (bytes, bytes/s, seconds). Raises :class:`InputError` listing every fault."""
    raw: dict[str, Any] = {}
    if keys.steps is not None:
        gpus, steps = read_steps(keys.steps, split=keys.split is not False)
        raw["gpus"], name = keys.gpus or gpus, f"{keys.steps.stem}-p{keys.ports}"
    else:
        steps, raw["algorithm"], name = _pattern(keys)
    raw |= {key: getattr(keys, key) for key in _FABRIC if key in keys.given}
    if keys.delay_by_ports is not None:
        raw["delay_by_ports"] = _table(keys.delay_by_ports)
    if keys.overlap is not None:
        steps = _overlapped(steps, _numbers(str(keys.overlap)))
    return keys.instance("harvest", HarvestInstance, name, **raw, steps=steps)


def _delay_faults(values: Mapping[str, Any]) -> Iterator[Fault]:
    if "delay_by_ports" in values:
        try:
            _table(values["delay_by_ports"])
        except ValueError:
            yield Fault("delay_by_ports", "must be rows like 32:1e-6,128:1e-5", values["delay_by_ports"], True)
    if "overlap" in values:
        try:
            _numbers(str(values["overlap"]))
        except ValueError:
            yield Fault("overlap", "must be a number, or numbers with commas", values["overlap"], True)


def _table(text: str) -> list[list[Any]]:
    """Rows (ports, seconds) of ``32:1e-6,128:1e-5``; raises ``ValueError``."""
    rows = [row.split(":") for row in text.split(",")]
    return [[read_int(1)(ports), real(seconds, "time")] for ports, seconds in rows]


def _numbers(text: str) -> list[float]:
    return [real(number, "time") for number in text.split(",")]


def _overlapped(steps: list[dict[str, Any]], seconds: list[float]) -> list[dict[str, Any]]:
    """The steps with one overlap for all or one each. Raises :class:`InputError` where their numbers differ."""
    if len(seconds) not in (1, len(steps)):
        message = f"must be one number or {len(steps)}, one a step, not {len(seconds)}"
        raise InputError([Fault("overlap", message)], "synth make harvest")
    every = seconds * len(steps) if len(seconds) == 1 else seconds
    return [step | {"overlap": hidden} for step, hidden in zip(steps, every, strict=True)]


def _file_faults(values: Mapping[str, Any]) -> list[Fault]:
    faults = [
        Fault(key, "has no meaning with steps=FILE", values[key], True)
        for key in (*_ALGORITHM, "message_bytes")
        if key in values
    ]
    file, split = values["steps"], values.get("split") is not False
    try:
        if not split and lists_steps(file):
            faults.append(Fault("split", f"{file.name} lists steps, there is no matrix to split", "off", True))
        gpus, _ = read_steps(file, split=split)
    except InputError as error:
        return faults + [
            Fault(f"steps ({file.name}) {f.path}".strip(), f.message, f.value, f.has_value) for f in error.faults
        ]
    if gpus is not None and values.get("gpus", gpus) != gpus:
        faults.append(Fault("gpus", f"the matrix of {file.name} has {gpus} rows", values["gpus"], True))
    if gpus is None and "gpus" not in values:
        faults.append(Fault("gpus", "is missing"))
    return faults


def _algorithm_faults(values: Mapping[str, Any]) -> list[Fault]:
    name = values["algorithm"]
    missing = [Fault(key, "is missing") for key in ("gpus", "message_bytes") if key not in values]
    if "split" in values:
        missing.append(Fault("split", "has no meaning with algorithm=NAME", str(values["split"]), True))
    if name not in ALGORITHMS:
        return [Fault("algorithm", f"must be one of {', '.join(ALGORITHMS)}", name, True), *missing]
    faults = missing + [
        Fault(key, f"has no meaning for {name}", str(values[key]), True)
        for key in _ALGORITHM
        if key in values and key not in USES[name]
    ]
    if "torus" in USES[name] and "torus" not in values:
        faults.append(Fault("torus", "is missing: sides like 8x8"))
    if "torus" in values:
        try:
            _sides(values["torus"])
        except ValueError:
            faults.append(Fault("torus", "must be sides like 8x8 or 4x4x4", values["torus"], True))
    if values.get("root", 0) >= values.get("gpus", values.get("root", 0) + 1):
        faults.append(Fault("root", "must be < gpus", values["root"], True))
    return faults


def _sides(text: str) -> tuple[int, ...]:
    read = read_int(2)
    return tuple(read(side) for side in text.split("x"))


def _pattern(keys: HarvestKeys) -> tuple[list[dict[str, Any]], dict[str, Any], str]:
    """The algorithm's steps, what the file says of it, and the default name."""
    name = keys.algorithm
    assert name is not None
    assert keys.gpus is not None
    assert keys.message_bytes is not None
    stored = {key: getattr(keys, key) for key in USES[name] if key in keys.given}
    own = stored | ({"torus": _sides(stored["torus"])} if "torus" in stored else {})
    try:
        steps = ALGORITHMS[name](Wish(gpus=keys.gpus, message_bytes=keys.message_bytes, **own))
    except ValueError as error:
        key, _, message = str(error).partition(": ")
        fault = Fault(key, message, str(getattr(keys, key)), key in keys.given)
        raise InputError([fault], "synth make harvest") from None
    if "mirrored" in stored:
        stored["mirrored"] = "on" if stored["mirrored"] else "off"
    words = [name, str(keys.gpus), *(str(stored[key]) for key in ("half", "torus", "radix") if key in stored)]
    label = "-".join(word.replace("_", "-") for word in [*words, f"p{keys.ports}"])
    return steps, {"name": name, "message_bytes": keys.message_bytes, **stored}, label
