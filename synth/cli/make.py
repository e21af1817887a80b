"""``synth make``: an instance file from parameters."""

from __future__ import annotations

from pathlib import Path

import typer


def make(
    family: str = typer.Argument(..., help="The family, see `synth families`."),
    parameters: list[str] = typer.Argument(None, metavar="key=value…", help="The family's parameters."),
    output: Path = typer.Option(
        None, "-o", "--output", help="Where to write it; - for standard output. Default: NAME.json."
    ),
) -> None:
    """Make an instance file, e.g. `synth make xtree network=equimesh rows=4 cols=6 chunks=4`."""
    from synth.errors import InputError
    from synth.family import get_family
    from synth.making import make as make_instance
    from synth.options import split_pairs

    instance = make_instance(get_family(family), split_pairs(parameters or [], f"synth make {family}"))
    if output is not None and str(output) == "-":
        typer.echo(instance.to_json(), nl=False)
        return
    path = output or Path(f"{instance.name}.json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(instance.to_json())
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
    typer.echo(f"{path}: {instance.family} instance {instance.name}")
