"""Options that several commands share: a group is a dataclass, a field an option, and :func:`grouped` unfolds it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Option

from synth.cli import complete
from synth.cli.common import checked, retries_failed
from synth.options import RELATIVE_GAP

if TYPE_CHECKING:
    from synth.exchange.block_costs import CostModel
    from synth.execution.runs import Request
    from synth.instance import Instance
    from synth.views.figure_style import FigureStyle


METHODS = Option(
    "-m",
    "--method",
    help="A method, or module.py:function of a file beside the instance (repeatable). Default: the family's.",
    autocompletion=complete.methods,
)
SOLVER = Option(help="A solver of `synth solvers`, for methods that can use it.", autocompletion=complete.solvers)
LIMIT = (
    "Per run: 90, 60s, 5m, 2h or none. It covers all that the method does: building models, solving, its own searches. "
    "Imports, compiling kernels (only a first run does) and the check are apart; the record says how long they took."
)
STYLE = Option(help="screen, or paper: type of 8 points, fonts as TrueType; one column wide unless --width says.")
WIDTH = Option(help="Width of figures: 3.5in, 7in, 9cm or 88mm.")
OWN = Option("-O", "--option", metavar="key=value", help="A method's own parameter.")
AT_ONCE = Option("-j", "--jobs", min=1, help="Runs at once. Default: processors / threads.")
HERE = Option("-j", "--jobs", min=1, help="Engine local: runs at once. Default: processors / threads.")


@dataclass(frozen=True)
class Asked:
    """What is to run on each instance."""

    methods: Annotated[list[str] | None, METHODS] = None
    solver: Annotated[str | None, SOLVER] = None
    time_limit: Annotated[str, Option(help=LIMIT)] = "60s"
    gap: Annotated[
        float, Option(min=0.0, max=1.0, help="Gap, (value − bound) / value, at which a solver may stop.")
    ] = RELATIVE_GAP
    threads: Annotated[int, Option(min=1, help="Threads of each run.")] = 1
    seed: Annotated[int, Option(min=0, help="Seed of solvers and of every random choice.")] = 0
    options: Annotated[list[str] | None, OWN] = None

    @property
    def nothing_named(self) -> bool:
        """Whether the methods are left to the family: none is named, nor a solver or parameter."""
        return not (self.methods or self.solver or self.options)

    def request(self) -> Request:
        """The same for the expander of runs. Raises :class:`InputError` for options that are no pairs."""
        from synth.execution.runs import Request
        from synth.options import split_pairs

        solvers, parameters = [self.solver] if self.solver else [], split_pairs(self.options or [], "-O")
        return Request(self.methods, solvers, [self.seed], [self.time_limit], self.gap, self.threads, parameters)


@dataclass(frozen=True)
class Processes:
    """How many runs go on at once on this machine, and how much memory each may take."""

    jobs: Annotated[int | None, AT_ONCE] = None
    memory: Annotated[str | None, Option(help="Each run's memory limit, such as 4G or 500M. Default: none.")] = None

    @property
    def memory_mb(self) -> float | None:
        """The memory limit in MB. Raises :class:`InputError` in words."""
        from synth.options import read_megabytes

        return None if self.memory is None else checked("--memory", read_megabytes, self.memory)


@dataclass(frozen=True)
class Resuming:
    """Which of the records that are there already stand for a run."""

    resume: Annotated[bool, Option("--resume", help="Skip runs whose good record is there already.")] = False
    retry: Annotated[str | None, Option(help="With --resume: failed (out of memory, no result in time).")] = None

    @property
    def retry_failed(self) -> bool:
        """Whether failed runs are run again. Raises :class:`InputError` in words."""
        return retries_failed(self.retry, self.resume)


GPU = Option(help="Whose costs: volta, ampere, hopper, blackwell, mi250, mi300x, or ideal. Default: by the machine.")
COST = Option(help="Costs instead: block=40GB/s,step=1us,launch=5us; also sum, net_step, link, net, switch (shares).")


@dataclass(frozen=True)
class Costing:
    """What thread blocks, steps and launches of an executor cost."""

    gpu: Annotated[str | None, GPU] = None
    cost: Annotated[str | None, COST] = None

    def model(self, instance: Instance, form: str) -> CostModel | None:
        """The costs for an instance in a form that an executor runs, None for others and for an ideal executor. Raises
        :class:`InputError`."""
        from synth.exchange.block_costs import costs_for, demand_gpu, read_given
        from synth.exchange.program_files import LOADED

        demand_gpu(self.gpu)
        read_given(self.cost)
        return costs_for(instance, form, self.gpu, self.cost) if form in LOADED else None


@dataclass(frozen=True)
class Drawing:
    """How figures are drawn."""

    style: Annotated[str | None, STYLE] = None
    width: Annotated[str | None, WIDTH] = None

    @property
    def figure_style(self) -> FigureStyle:
        """The style that both name. Raises :class:`InputError` in words."""
        from synth.views.figure_style import read_width, style_of

        if self.width is not None:
            checked("--width", read_width, self.width)
        return checked("--style", lambda name: style_of(name or None, self.width), self.style or "")


@dataclass(frozen=True)
class Jobs:
    """What the jobs of a batch may take, and whether any are sent."""

    partition: Annotated[str | None, Option(help="Slurm partition.")] = None
    account: Annotated[str | None, Option(help="Slurm account.")] = None
    time: Annotated[str | None, Option(help="Time of each job: 30m, 2h. Default: what its runs need at most.")] = None
    mem: Annotated[str | None, Option(help="Memory of each job, for all its runs: 4G. Default: the cluster's.")] = None
    cpus: Annotated[int | None, Option(min=1, help="Processors of each job; it runs CPUS / threads at once.")] = None
    array_parallelism: Annotated[int | None, Option(min=1, help="Jobs of an array at once.")] = None
    chunk: Annotated[int | None, Option(min=1, help="Runs of each job. Default: what ends in ten minutes.")] = None
    grace: Annotated[str | None, Option(help="From a run's time limit to its end by force. Default: 60s.")] = None
    jobs: Annotated[int | None, HERE] = None
    dry_run: Annotated[bool, Option("--dry-run", help="Print grouping and sbatch scripts; submit nothing.")] = False


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its parameters that are dataclasses as options of their own."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(group := hints[name]):
            groups[name], own = group, get_type_hints(group, include_extras=True)
            defaults = {f.name: inspect.Parameter.empty if f.default is MISSING else f.default for f in fields(group)}
            inside = {key: parameter.replace(name=key, default=default) for key, default in defaults.items()}
            found = [one.replace(annotation=own[key]) for key, one in inside.items()]
        else:
            found = [parameter.replace(annotation=hints[name])]
        parameters += [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in found]

    @wraps(command)
    def unfolded(**given: Any) -> None:
        made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**given, **made)

    unfolded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    unfolded.__annotations__ = {one.name: one.annotation for one in parameters}
    return unfolded
