"""Instance files of every family with an odd value in any field, or with a field more or less: read, or refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from examples import some_of
from models.odd_values import ODDER

from synth.errors import InputError
from synth.instance import from_bytes

LINKS = {
    "kind": "links",
    "nodes": 4,
    "switches": [3],
    "abilities": [{"switch": 3, "copies": True, "adds": True, "streams": 2, "add_rate": 1e9}],
    "links": [
        {"src": u, "dst": v, "bandwidth": 1e9, "latency": 1e-6, "group": "g"}
        for r in (0, 1, 2)
        for u, v in ((r, 3), (3, r))
    ]
    + [{"src": 2, "dst": 1, "bandwidth": 1e9}],
}
PARTS = [
    {"collective": "broadcast", "bytes": 8, "root": 1, "ranks": [0, 1, 2], "release": 0.5, "priority": 2},
    {"name": "a", "collective": "allgather", "bytes": 12, "ranks": [0, 1, 2]},
]
SHAPES = [
    LINKS,
    {"kind": "kautz", "degree": 2, "nodes": 6},
    {"kind": "torus", "rows": 3, "cols": 2, "layers": 2, "bandwidth": 1e9, "latency": 1e-6},
    {"kind": "machine", "name": "dgx-a100", "boxes": 2, "gpus": [4, 4]},
    {"kind": "dragonfly", "groups": 3, "routers": 1, "hosts": 2},
]


def whole(network: dict[str, Any], several: bool) -> dict[str, Any]:
    """A file without faults that states as much as it can."""
    raw = {"format": "synth-instance/1", "family": "fabric", "name": "odd", "source": "made", "network": network}
    raw |= {
        "relay": True,
        "failed": {"links": [[2, 1]], "nodes": [], "reduced": [[3, 0, "1/2"]]} if network is LINKS else {},
    }
    if several:
        return raw | {"collective": "several", "bytes": 20, "collectives": PARTS, "objective": "weighted_ends"}
    return raw | {"collective": "demand", "bytes": 3, "demand": [[1, 2, 3]], "relay": True}


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in nested data, outermost first."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*at, key))


def changed(raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The file with each odd value in each place, and without what stands there, or with a key more beside it."""
    for at in places(raw):
        for odd in [*ODDER, "GONE", "MORE"]:
            new = copy.deepcopy(raw)
            holder = new
            for key in at[:-1]:
                holder = holder[key]
            if odd == "GONE":
                del holder[at[-1]]
            elif odd == "MORE":
                if isinstance(holder, dict):
                    holder["one more"] = 1
            else:
                holder[at[-1]] = odd
            yield f"{at} = {odd!r:.40}", new


def shipped() -> list[Path]:
    """The smallest shipped instance of every set of keys in every family."""
    found: dict[tuple[str, ...], Path] = {}
    for path in sorted(Path("instances").glob("*/*.json"), key=lambda path: (path.stat().st_size, path)):
        if path.stat().st_size < 4096:
            raw = json.loads(path.read_text())
            found.setdefault((raw["family"], *sorted(raw)), path)
    return sorted(found.values())


def try_all(raw: dict[str, Any]) -> None:
    """Read the file and all that come of it by one change."""
    from_bytes(json.dumps(raw).encode(), "whole.json")
    for words, odd in changed(raw):
        data = json.dumps(odd).encode()
        try:
            from_bytes(data, "odd.json")
        except InputError:
            pass  # in words
        except Exception as error:
            raise AssertionError(f"{words}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("network", some_of(SHAPES), ids=lambda network: network["kind"])
def test_an_odd_file_of_a_network_is_read_or_refused(network: dict[str, Any], several: bool) -> None:
    try_all(whole(network, several))


@pytest.mark.parametrize("path", some_of(shipped()), ids=lambda path: path.stem)
def test_an_odd_file_is_read_or_refused(path: Path) -> None:
    try_all(json.loads(path.read_text()))
