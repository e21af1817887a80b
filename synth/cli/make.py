"""``synth make``: an instance file from parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from synth.cli import complete
from synth.cli.output import console, errors, write_examples

ANY = {"collective": "broadcast", "bytes": "1"}  # something to do on a machine
FAMILY = "synth.cli.make.family"  # in the context: the family whose keys the help ends with


class WithKeys(TyperCommand):
    """The help of ``synth make FAMILY`` ends with the family's keys."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As every command, with the family in sight of the help."""
        from synth.family import family_names

        ctx.meta[FAMILY] = next((word for word in args if word in family_names()), None)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The command's help, then the family's."""
        super().format_help(ctx, formatter)
        if ctx.meta.get(FAMILY) is not None:
            write_keys(ctx.meta[FAMILY], formatter)


def write_keys(name: str, formatter: Any) -> None:
    """A family's keys: what each takes, its meaning with the unit, its default, and examples of whole lists."""
    from synth.family import get_family
    from synth.method import load

    keys = load(get_family(name).keys)
    ends = {"": "", "needed": " [required]"}
    rows = [
        (key, f"{takes}: {meaning}{ends.get(default, f' [default: {default}]')}")
        for key, takes, default, meaning in keys.described()
    ]
    with formatter.section(f"Keys of {name}"):
        formatter.write_dl(rows)
    write_examples([f"synth make {name} {example}" for example in keys.examples], formatter)


def _list_names(name: str, given: dict[str, Any]) -> None:
    """Print the numbering of a family's machine as CSV; what is to be scheduled on it need not be said."""
    from synth.cli.common import bad_option
    from synth.family import get_family
    from synth.making import make as make_instance

    family = get_family(name)
    if not family.can("planning"):
        raise bad_option("--names", "is for families whose machines name their nodes", name)
    machine = {key: value for key, value in given.items() if key not in (*ANY, "collectives", "demand")}
    instance: Any = make_instance(family, ANY | machine)
    typer.echo("number,name,kind,box")
    for row in instance.numbering:
        typer.echo(",".join(map(str, row)))


def make(
    family: str = typer.Argument(..., help="The family, see `synth families`.", autocompletion=complete.families),
    parameters: list[str] = typer.Argument(
        None, metavar="key=value…", help="The family's parameters; `synth make FAMILY --help` lists them."
    ),
    output: Path = typer.Option(
        None, "-o", "--output", help="Where to write it; - for standard output. Default: NAME.json."
    ),
    names: bool = typer.Option(
        False, "--names", help="Write nothing; list the nodes' numbers and names, as ranks= and root= take either."
    ),
) -> None:
    """Make an instance file, e.g. `synth make xtree network=equimesh rows=4 cols=6 chunks=4`."""
    from synth.errors import InputError
    from synth.family import family_names, get_family
    from synth.making import make as make_instance
    from synth.options import split_pairs

    try:
        given = split_pairs(parameters or [], f"synth make {family}")
        if names:
            _list_names(family, given)
            return
        instance = make_instance(get_family(family), given)
    except InputError as error:
        if family in family_names():
            error.hint = f"what each key means: synth make {family} --help"
        raise
    for note in instance.notes:
        errors.print(f"note: {note}")
    if output is not None and str(output) == "-":
        typer.echo(instance.to_json(), nl=False)
        return
    path = output or Path(f"{instance.name}.json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(instance.to_json())
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
    console.print(f"{path}: {instance.family} instance {instance.name}")
