"""``synth cite``: what to cite for a record or a finding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from synth.records.bibtex import Entry


def cite(
    what: str = typer.Argument(..., metavar="RECORD|FINDING", help="A record's file, or a finding by its name."),
) -> None:
    """Print BibTeX of the method's source, of the instance and its paper (or of the finding), and of this toolkit."""
    from synth.records import bibtex
    from synth.records import record as records

    entries = bibtex.of_record(records.read(Path(what))) if Path(what).suffix or "/" in what else _of_finding(what)
    typer.echo(bibtex.as_text(entries), nl=False)


def _of_finding(name: str) -> list[Entry]:
    from synth.errors import InputError, one_of
    from synth.family import get_family
    from synth.findings.page import stated
    from synth.records import bibtex

    found = {one.name: (family, one) for family, group in stated().items() for one in group}
    if name not in found:
        raise InputError(f"no record's file and no finding; findings: {one_of(name, found)}", name)
    family, finding = found[name]
    return bibtex.of_finding(name, finding.paper, finding.where, get_family(family))
