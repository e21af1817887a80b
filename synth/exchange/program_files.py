"""The files of a program, and how its executor is told of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from synth.exchange import in_place, msccl_xml, mscclpp
from synth.exchange.algorithm import Algorithm
from synth.exchange.forms import Program, executor_of
from synth.exchange.mscclpp.versions import NEWEST, VERSIONS, Version

LOADED = {  # how the executor is told of the files, by its sources; libnccl.so is the one that it builds itself
    "msccl:azure": "LD_PRELOAD=PATH/libnccl.so NCCL_MSCCL_ENABLE=1 MSCCL_ALGO_DIR={folder}",
    "msccl": "LD_PRELOAD=PATH/libnccl.so NCCL_ALGO=MSCCL,RING,TREE MSCCL_XML_FILES={files}",
    "mscclpp": NEWEST.told,
    "mscclpp:0.8": VERSIONS["0.8"].told,
}


def write(
    program: Program, path: Path, least_bytes: int, most_bytes: int, version: Version = NEWEST
) -> in_place.Written:
    """Write what runs, for calls of ``least_bytes`` to ``most_bytes`` bytes, as a ``version`` of MSCCL++ reads it.
    Raises ``OSError``."""

    def put(what: Any, there: Path) -> None:
        if isinstance(what, Algorithm):
            limited = replace(what, name=there.stem, least_bytes=least_bytes, most_bytes=most_bytes)
            msccl_xml.write(limited, there, executor_of(program.form))
        else:
            most = most_bytes + (not version.registers)
            mscclpp.store(
                {**what, "name": there.stem, "min_message_size": least_bytes, "max_message_size": most}, there
            )

    return in_place.written(program.algorithm or program.plan, executor_of(program.form), program.again, path, put)
