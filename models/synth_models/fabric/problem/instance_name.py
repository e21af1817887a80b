"""What an instance is called that ``synth make fabric`` makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from synth.text.input_file import InputFile
from synth_models.fabric.problem.box_machine import MachineSpec, Variant
from synth_models.fabric.problem.described_machine import asked_of, mode_of, name_of

PLAIN = {"multicast": False, "buffer": False, "copies": True, "adds": False, "streams": None, "add_rate": None}
_SHORT = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3))
_SIDES = ("rows", "cols", "layers", "nodes", "dimension", "degree", "leaves", "hosts", "spines", "groups", "routers")


def instance_name(keys: Any, raw: Mapping[str, Any]) -> str:
    """The name, from the keys of ``synth make fabric`` and what they became."""
    network = raw["network"]
    extra = "-failed" if keys.failed is not None else ""
    extra += f"-r{len(raw['ranks'])}" if "ranks" in raw else ""
    extra += f"-root{raw['root']}" if "root" in raw else ""
    extra += "-oneway" if network.get("bidirectional") is False else ""
    extra += "-ready" if keys.ready is not None else ""
    extra += f"-late{_plain(keys.late)[:30]}" if keys.late is not None else ""
    extra += "".join(f"-{word}" for word in _unusual(keys))
    what = f"{keys.collective.replace('_', '')}-{_short(raw.get('bytes', 0))}"
    if keys.collectives is not None:
        what = f"several-{_plain(keys.collectives.stem) or 'collectives'}"
    return f"{_place(keys, network) or 'links'}-{what}{extra}"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")


def _place(keys: Any, network: Mapping[str, Any]) -> str:
    """The machine or shape, as names of instances begin."""
    if keys.machine is not None and not isinstance(keys.machine, str):
        own = {key: getattr(keys, key) for key in keys.given}
        asked = asked_of(own)
        words = [f"x{own['boxes']}"] if (own.get("boxes") or 1) > 1 else []
        words += [f"domain{own['domain']}"] if own.get("domain") else []
        tree: dict[str, Any] = {key: own.get(key) for key in ("gpus", "leaf", "rails", "oversubscription", "spines")}
        tree |= {"bandwidths": asked.numbers["bandwidth"], "latencies": asked.numbers["latency"]}
        return "-".join([_plain(name_of(keys.machine))[:60], *words, *Variant(**tree).words])
    if isinstance(keys.machine, str):
        spec = MachineSpec.model_construct(**network)  # what is wrong in it is said where the instance is read
        return "-".join([keys.machine, *([f"x{spec.boxes}"] if spec.boxes > 1 else []), *spec.variant_words])
    if network["kind"] == "links":
        return _plain(keys.links.stem if isinstance(keys.links, InputFile) else "links")
    sides = "x".join(str(network[key]) for key in _SIDES if key in network)
    return f"{network['kind'].replace('_', '')}-{sides}"


def _unusual(keys: Any) -> Iterator[str]:
    """What of the machine's ways is not as usual, in words for a name."""
    if keys.relay:
        yield "relay"
    if keys.switching is not None and keys.switching != mode_of(keys.machine, None):
        yield "stored" if keys.switching == "store_and_forward" else "cutthrough"
    for key, usual in PLAIN.items():
        value = getattr(keys, key)
        if isinstance(value, bool) and value != usual:
            yield key if value else f"no{key}"
        elif value != usual:
            yield f"{key.replace('_', '')}{value:g}".replace("+", "")


def _short(size: int) -> str:
    for word, unit in _SHORT:
        if size and size % unit == 0:
            return f"{size // unit}{word}"
    return f"{size}B"
