"""The rows of the page ``tuned``: its machines and parts, and a collective's rows, made by :mod:`synth.tuning`."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import synth.exchange
import synth.tuning
import synth_models.fabric
from synth.errors import InputError
from synth.exchange import msccl_xml
from synth.exchange.block_costs import costs_for
from synth.exchange.file_check import check_file
from synth.family import defaults_for
from synth.instance import Instance
from synth.reproduction.collect import Reproduction
from synth.tuning import Question, Row, tune
from synth.tuning.reach import gpus, put_in
from synth_models.fabric.family import FAMILY
from synth_papers.fabric.grid import made

KIB, MIB, GIB = 2**10, 2**20, 2**30
FORM = "msccl:azure"
COLLECTIVES = (
    "allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall", "reduce", "gather", "scatter",
)  # fmt: skip
IN_SWITCHES = COLLECTIVES[:3]  # which NVLS does
SIZES = tuple(4**power * KIB for power in range(12))
METHODS = ("flow", "hierarchical", "forest")  # of ours
LIMIT_S = {1: 30.0, 2: 90.0, 4: 120.0}  # of ours for a collective, by boxes, after all that is in use
COLUMNS = (
    "machine", "collective", "bytes", "method", "how", "form_s", "reference", "reference_s", "nccl", "nccl_s",
    "bound_s", "blocks", "channels", "steps", "untried", "ours", "code",
)  # fmt: skip
KEYS = ("machine", "collective", "bytes")
DECIDE = (synth.tuning, synth.exchange, synth_models.fabric)  # packages whose code and machines decide what a row says


@dataclass(frozen=True)
class Machine:
    """A machine by name, in so many boxes."""

    name: str
    boxes: int = 1
    collectives: tuple[str, ...] = COLLECTIVES

    @property
    def title(self) -> str:
        """As the page says it."""
        return f"{self.name} x{self.boxes}" if self.boxes > 1 else self.name

    def instance(self, collective: str, size: int) -> Instance:
        """What is asked of it."""
        boxes = {"boxes": str(self.boxes)} if self.boxes > 1 else {}
        return made(machine=self.name, **boxes, collective=collective, bytes=str(size))


MACHINES = tuple(
    machine
    for boxes in LIMIT_S
    for machine in (
        Machine("dgx-h100", boxes),
        Machine("dgx-h100-nvls", boxes, IN_SWITCHES),
        Machine("dgx-a100", boxes),
    )
)


@dataclass(frozen=True)
class Part:
    """Rows that are made at once: a machine's collective."""

    machine: Machine
    collective: str

    @property
    def words(self) -> set[str]:
        """What ``--only`` may say to have the part."""
        return {self.machine.title, self.collective, f"{self.machine.title} {self.collective}"}


PARTS = tuple(Part(machine, collective) for machine in MACHINES for collective in machine.collectives)


def state_of_the_code(packages: Sequence[ModuleType] = DECIDE) -> str:
    """The state of the code and machines that decide what a row says: twelve hexadecimal digits."""
    digest = hashlib.sha256()
    for package in packages:
        folder = Path(package.__path__[0])
        for path in sorted(one for suffix in ("py", "json", "toml") for one in folder.rglob(f"*.{suffix}")):
            digest.update(f"{package.__name__} {path.relative_to(folder).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def tuned(page: Reproduction, part: Part, state: str) -> Iterator[dict[str, Any]]:
    """The rows of a part."""
    machine, collective = part.machine, part.collective
    costs = costs_for(machine.instance(collective, SIZES[-1]), FORM)
    with tempfile.TemporaryDirectory() as scratch:
        asked = Question(
            machine.instance, (collective,), SIZES[::5] if page.quick else SIZES, FORM, Path(scratch),
            LIMIT_S[machine.boxes], methods=METHODS, costs=costs, patient=True,
        )  # fmt: skip
        found = tune(asked)
        put_in(found, asked, costs.gpu if costs is not None and costs.gpu in gpus() else None)
        for row in found:
            page.say(f"{machine.title} {collective} {row.size}")
            made_by = {"ours": ours(row.instance), "code": state}
            yield {"machine": machine.title, "collective": collective, **made_by, **_said(row, Path(scratch))}


def ours(instance: Instance) -> str:
    """The methods of ours that suit an instance."""
    return ", ".join(name for name in METHODS if name in defaults_for(FAMILY, instance))


def _said(row: Row, scratch: Path) -> dict[str, Any]:
    """What a row says of a size; the best of the references is that of all, whatever counts they serve."""
    best, reference = row.best, min(row.exported, key=lambda name: row.exported[name], default="")
    assert best is not None
    assert best.program is not None
    return {
        "bytes": row.instance_bytes,
        "method": best.method,
        "how": best.program.how,
        "form_s": best.seconds,
        "reference": reference,
        "reference_s": row.exported.get(reference),
        "nccl": "" if row.reach is None else f"{row.reach.algorithm}, {row.reach.protocol}",
        "nccl_s": None if row.reach is None else row.reach.seconds,
        "bound_s": row.bound,
        **_counted(row, scratch / "counted.xml"),
        "untried": "; ".join(f"{name}: {why}" for name, why in row.untried.items()),
    }


def _counted(row: Row, path: Path) -> dict[str, int]:
    """The most thread blocks and channels of a GPU and steps of a block in the row's file, which passes the executor's
    check. Raises :class:`InputError` where it does not."""
    assert row.best is not None
    assert row.best.program is not None
    assert row.best.program.algorithm is not None
    msccl_xml.write(row.best.program.algorithm, path, "azure")
    if wrong := check_file(path, row.collective, "azure").faults:
        raise InputError(wrong, str(path))
    most: Counter[str] = Counter(blocks=0, channels=0, steps=0)
    for gpu in ElementTree.parse(path).getroot().iter("gpu"):
        blocks = list(gpu.iter("tb"))
        counts = {
            "blocks": len(blocks),
            "channels": len({block.get("chan") for block in blocks}),
            "steps": max((len(block.findall("step")) for block in blocks), default=0),
        }
        most = most | Counter(counts)
    return dict(most)
