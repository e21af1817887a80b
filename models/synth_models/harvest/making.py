"""``synth make harvest``: instances from an algorithm's name or from a file of steps or demands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synth.errors import Fault, InputError
from synth.instance import parse
from synth.options import read_choice, read_flag, read_float, read_int
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.patterns import ALGORITHMS, USES, Wish
from synth_models.harvest.step_files import read_steps


def _read_torus(text: str) -> tuple[int, ...]:
    read = read_int(2)
    try:
        return tuple(read(side) for side in text.split("x"))
    except ValueError:
        raise ValueError("must be sides like 8x8 or 4x4x4") from None


_FABRIC = {
    "gpus": read_int(2, 4096), "ports": read_int(1, 64), "port_bandwidth": read_float(0, exclusive=True),
    "alpha": read_float(0), "delta": read_float(0), "reconfiguration_delay": read_float(0),
    "latency": read_choice("on", "off"),
}  # fmt: skip
_ALGORITHM = {
    "half": read_choice("both", "reduce_scatter", "allgather"), "direction": read_choice("forwards", "backwards"),
    "radix": read_int(2), "sends": read_int(1), "root": read_int(0), "order": read_choice("halving", "doubling"),
    "torus": _read_torus, "mirrored": read_flag,
}  # fmt: skip
_NEEDED = ("ports", "port_bandwidth", "alpha", "delta", "reconfiguration_delay")
_KEYS = ("algorithm", "steps", *_FABRIC, "message_bytes", *_ALGORITHM, "name")


def make(parameters: Mapping[str, str]) -> HarvestInstance:
    """An instance from texts: ``algorithm=recursive_doubling gpus=64 ports=1 message_bytes=4194304 port_bandwidth=100e9
    alpha=500e-9 delta=500e-9 reconfiguration_delay=1e-5`` (bytes, bytes/s, seconds).

    Of the algorithm: ``half`` (both, reduce_scatter, allgather), ``direction`` of the allgather half (forwards,
    backwards), ``radix`` and ``sends`` (Bruck), ``torus`` and ``mirrored`` (multi-port Swing), ``root``, ``order``
    (broadcast). ``steps=FILE`` instead of an algorithm: a JSON list of steps, or a CSV matrix of bytes from every GPU
    (row) to every other (column), split by Birkhoff-von Neumann. Raises :class:`InputError` listing every fault.
    """
    faults = [
        Fault(key, f"unknown parameter; one of {', '.join(_KEYS)}", value, True)
        for key, value in parameters.items()
        if key not in _KEYS
    ]
    values: dict[str, Any] = {}
    for key, read in {**_FABRIC, **_ALGORITHM, "message_bytes": read_float(0)}.items():
        if key in parameters:
            try:
                values[key] = read(parameters[key])
            except ValueError as error:
                faults.append(Fault(key, str(error), parameters[key], True))
    faults += [Fault(key, "is missing") for key in _NEEDED if key not in parameters]
    raw: dict[str, Any] = {"family": "harvest", "source": "synth make harvest " + _words(parameters)}
    if ("algorithm" in parameters) == ("steps" in parameters):
        faults.append(Fault("", "give algorithm or steps, one of the two"))
    elif "steps" in parameters:
        faults += _from_file(parameters, values, raw)
    else:
        faults += _from_algorithm(parameters, values, raw, broken={fault.path for fault in faults})
    if faults:
        raise InputError(faults, "synth make harvest")
    raw |= {key: values[key] for key in _FABRIC if key in values}
    steps = raw.pop("steps")  # last in the file, where they can be long
    instance = parse({**raw, "steps": steps}, HarvestInstance, "synth make harvest")
    assert isinstance(instance, HarvestInstance)
    return instance


def _words(parameters: Mapping[str, str]) -> str:
    """The parameters as typed, files by their names only."""
    return " ".join(f"{key}={Path(value).name if key == 'steps' else value}" for key, value in parameters.items())


def _from_file(parameters: Mapping[str, str], values: dict[str, Any], raw: dict[str, Any]) -> list[Fault]:
    path = Path(parameters["steps"])
    unused = [key for key in (*_ALGORITHM, "message_bytes") if key in parameters]
    faults = [Fault(key, "has no meaning with steps=FILE", parameters[key], True) for key in unused]
    try:
        gpus, raw["steps"] = read_steps(path)
    except InputError as error:
        return faults + [
            Fault(f"steps ({path.name}) {f.path}".strip(), f.message, f.value, f.has_value) for f in error.faults
        ]
    if gpus is not None and values.setdefault("gpus", gpus) != gpus:
        faults.append(Fault("gpus", f"the matrix of {path.name} has {gpus} rows", values["gpus"], True))
    if "gpus" not in values and "gpus" not in parameters:
        faults.append(Fault("gpus", "is missing"))
    raw["name"] = parameters.get("name") or f"{path.stem}-p{values.get('ports')}"
    return faults


def _from_algorithm(
    parameters: Mapping[str, str], values: dict[str, Any], raw: dict[str, Any], broken: set[str]
) -> list[Fault]:
    name = parameters["algorithm"]
    missing = [Fault(key, "is missing") for key in ("gpus", "message_bytes") if key not in parameters]
    if name not in ALGORITHMS:
        return [Fault("algorithm", f"must be one of {', '.join(ALGORITHMS)}", name, True), *missing]
    faults = missing + [
        Fault(key, f"has no meaning for {name}", parameters[key], True)
        for key in _ALGORITHM
        if key in parameters and key not in USES[name]
    ]
    if "torus" in USES[name] and "torus" not in parameters:
        faults.append(Fault("torus", "is missing: sides like 8x8"))
    if "root" in values and values["root"] >= values.get("gpus", values["root"] + 1):
        faults.append(Fault("root", "must be < gpus", values["root"], True))
    if faults or broken & {"gpus", "message_bytes", *USES[name]}:
        return faults
    own = {key: values[key] for key in USES[name] if key in values}
    wish = Wish(gpus=values["gpus"], message_bytes=values["message_bytes"], **own)
    try:
        raw["steps"] = ALGORITHMS[name](wish)
    except ValueError as error:
        key, _, message = str(error).partition(": ")
        return [Fault(key, message, parameters.get(key), key in parameters)]
    stored = {key: "x".join(map(str, v)) if key == "torus" else ("on" if v else "off") if key == "mirrored" else v
              for key, v in own.items()}  # fmt: skip
    raw["algorithm"] = {"name": name, "message_bytes": values["message_bytes"], **stored}
    words = [name, str(values["gpus"]), *(str(stored[key]) for key in ("half", "torus", "radix") if key in stored)]
    words.append(f"p{values['ports']}" if "ports" in values else "")
    raw["name"] = parameters.get("name") or "-".join(word.replace("_", "-") for word in words)
    return []
