"""Keys of ``synth make fabric collective=reshard``: two meshes and a table of tensors, which become traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from synth.errors import Fault, InputError
from synth.network.keys import NetworkKeys
from synth.resharding.question import read_question
from synth.text.input_file import InputFile
from synth_models.fabric.problem.file_faults import guarded
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.traffic import TRAFFIC

RESHARD: Literal["reshard"] = "reshard"
FILES = ("from", "to", "tensors")


class ReshardKeys(NetworkKeys):
    """The files of a re-shard. ``from`` is no name that Python takes in a class."""

    __annotations__["from"] = "InputFile | None"
    locals()["from"] = Field(
        None,
        description="with collective=reshard: TOML file of the mesh that holds, as synth reshard reads it",
    )
    to: InputFile | None = Field(None, description="with collective=reshard: the mesh that wants them, likewise")
    tensors: InputFile | None = Field(
        None, description="with collective=reshard: CSV file with the header name,shape,dtype,from,to"
    )


def reshard_faults(values: Mapping[str, Any], machine: Machine | None) -> Iterator[Fault]:
    """What is missing of the files, stands elsewhere, or is wrong in them."""
    given = [key for key in FILES if values.get(key) is not None]
    if values.get("collective") != RESHARD:
        yield from (Fault(key, f"has no meaning without collective={RESHARD}") for key in given)
        return
    yield from (Fault(key, f"is missing: {key}=FILE") for key in FILES if key not in given)
    yield from (
        Fault(key, f"has no meaning with collective={RESHARD}, whose files say it")
        for key in ("bytes", "ranks", "root", "demand")
        if values.get(key) is not None
    )
    if len(given) == len(FILES):
        yield from guarded(lambda: reshard_rows(values, machine))


def reshard_rows(values: Mapping[str, Any], machine: Machine | None) -> dict[str, Any]:
    """The keys of the instance: its blocks, their bytes, and the ranks that hold or want any. Raises
    :class:`InputError`."""
    nodes = None if machine is None else frozenset(map(int, machine.ranks))
    rows = read_question((values["from"], values["to"], values["tensors"]), nodes).rows
    if not rows:
        raise InputError("nothing has to move: every wanter holds all that it wants", str(values["tensors"]))
    blocks = [{"bytes": size, "holders": held, "wanters": wanted, "mode": "any"} for size, held, wanted in rows]
    ranks = sorted({rank for _, held, wanted in rows for rank in (*held, *wanted)})
    return {"collective": TRAFFIC, "traffic": blocks, "bytes": sum(size for size, _, _ in rows), "ranks": ranks}
