"""What moves from one mesh to another: three files read together, so that the faults of all are told at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from synth.errors import Fault, InputError
from synth.resharding.classes import Class, classes_of
from synth.resharding.mesh import axes_alone, read_mesh
from synth.resharding.tensors import Tensor, read_tensors
from synth.text.input_file import InputFile


class Question(NamedTuple):
    """The tensors, and the classes of their bytes of which something has to move."""

    tensors: list[Tensor]
    classes: list[Class]

    @property
    def rows(self) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
        """Bytes, holders, and the wanters that lack them, of every class."""
        return [(one.bytes, one.holders, one.lacking) for one in self.classes]


def read_question(files: tuple[InputFile, InputFile, InputFile], nodes: Collection[int] | None = None) -> Question:
    """Of the files of the mesh that holds, the mesh that wants, their ranks among these ``nodes``, and the tensors.
    Raises :class:`InputError` with every fault, each behind its file."""
    meshes, found, faults = list[Any](), list[Tensor](), list[Fault]()
    for file in files:
        try:
            if len(meshes) < 2:
                meshes.append(None)
                meshes[-1] = axes_alone(file)
                meshes[-1] = read_mesh(file, nodes)
            else:
                found = read_tensors(file, *meshes)
        except InputError as error:
            faults += [Fault(f"{file}: {fault.path}" if fault.path else str(file), fault.message, fault.value,
                             fault.has_value) for fault in error.faults]  # fmt: skip
    if faults:
        raise InputError(faults)
    return Question(found, classes_of(found, *meshes))
