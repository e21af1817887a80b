"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from synth.errors import InputError, one_of
from synth.exchange.selection import nccl_tuner, ompi_json, ompi_rules, ucc_tune
from synth.exchange.selection.rules import Rule, Vocabulary

Form = tuple[str, Callable[[Iterable[Rule]], str], Callable[[str], list[Rule]]]


@dataclass(frozen=True)
class SelectionFormat:
    """One format: ``write`` makes a file's text of rules, ``read`` the rules of a text; ``how``: how it is used.
    ``also``: another suffix, whose file a version of the library needs, and its ``write`` and ``read``."""

    name: str
    suffix: str
    summary: str
    how: str
    vocabulary: Vocabulary
    write: Callable[[Iterable[Rule]], str]
    read: Callable[[str], list[Rule]]
    also: tuple[Form, ...] = ()

    @property
    def forms(self) -> tuple[Form, ...]:
        """All suffixes, each with how its text is written and read."""
        return (self.suffix, self.write, self.read), *self.also


FORMATS = {
    one.name: one
    for one in (
        SelectionFormat("nccl", ".conf", "NCCL's tuner plug-in example: CSV",
                        "NCCL_TUNER_PLUGIN=libnccl-tuner-example.so NCCL_TUNER_CONFIG_FILE={file}",
                        nccl_tuner.VOCABULARY, nccl_tuner.write, nccl_tuner.read),
        SelectionFormat("ompi", ".rules", "Open MPI's coll_tuned: dynamic rules",
                        "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename {file}",
                        ompi_rules.VOCABULARY, ompi_rules.write, ompi_rules.read,
                        ((".json", ompi_json.write, ompi_json.read),)),
        SelectionFormat("ucc", ".env", "UCC's UCC_TL_UCP_TUNE",
                        "mpirun --mca coll_ucc_enable 1 --mca coll_ucc_priority 100 -x $(cat {file})",
                        ucc_tune.VOCABULARY, ucc_tune.write, ucc_tune.read),
    )
}  # fmt: skip


def selection_format(name: str) -> SelectionFormat:
    """The format of this name. Raises :class:`InputError`."""
    if name not in FORMATS:
        raise InputError(f"no library's file: {one_of(name, FORMATS)}")
    return FORMATS[name]
