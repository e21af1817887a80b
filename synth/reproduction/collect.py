"""A paper's printed figures beside ours: what ``synth reproduce`` collects from a family and writes as one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from synth.errors import InputError
from synth.records import record as records
from synth.records.folder import pack
from synth.records.record import Record
from synth.reproduction.printed import Comparison, Printed
from synth.text.files import write_atomically
from synth.views.figure_style import SCREEN_STYLE, SUFFIXES, FigureStyle, save

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from synth.execution.runs import Run
    from synth.instance import Instance

    Made = TypeVar("Made", bound=Instance)

Source = Literal["printed", "data", "code", "reading", "open"]
SOURCES: dict[Source, str] = {
    "printed": "Printed",  # a figure, formula or sentence of the paper or of the project's own pages
    "data": "In their data",  # a figure in results that the authors ship beside the text
    "code": "In their code",  # what the authors' code does, as we read it
    "reading": "By our reading",  # the published algorithm or formula, run by us as we read the text
    "open": "Left open",  # the authors state nothing
}


@dataclass(frozen=True)
class Erratum:
    """Something the paper gets wrong, with the computation that shows it (what was computed, and its result).

    ``printed`` is what the authors state; ``source`` says where they state it.
    """

    where: str
    printed: str
    corrected: str
    computation: str
    source: Source = "printed"

    @property
    def stated(self) -> str:
        """What the authors state, behind the words for where: ``Printed: 128 steps.``"""
        return f"{SOURCES[self.source]}: {self.printed}"


@dataclass
class Reproduction:
    """Collects a family's reproduction.

    ``folder`` takes figures and tables, ``instances`` is where the shipped instance files are, ``data`` where real
    data may lie (optional), ``quick`` asks for the short form, ``say`` gets a line per finished part, ``jobs`` programs
    run at once, ``style`` is that of the figures. Of a page in parts: ``only`` those to make (empty: all), ``again``
    also those that another state of the code has made.
    """

    folder: Path
    quick: bool = False
    instances: Path = Path("instances")
    data: Path = Path("../shared/data")
    say: Callable[[str], None] = lambda line: None
    jobs: int = 1
    style: FigureStyle = SCREEN_STYLE
    only: tuple[str, ...] = ()
    again: bool = False
    comparisons: list[Comparison] = field(default_factory=list)
    errata: list[Erratum] = field(default_factory=list)
    tables: list[tuple[str, pd.DataFrame]] = field(default_factory=list)
    linked: dict[str, str] = field(default_factory=dict)  # files, by title, of tables that the page only links
    figures: list[tuple[Path, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    proofs: dict[Path, str] = field(default_factory=dict)
    parts: set[str] = field(default_factory=lambda: {""})
    opening: str = ""

    @property
    def results(self) -> Path:
        """The folder below which records go: ``<results>/<family>/<instance>/<method>[-<solver>].json``."""
        return self.folder.parent

    def compare(self, printed: Printed, ours: float | None, remark: str = "") -> None:
        """Put ours beside the printed number that it should be; ``remark`` in place of the entry's own. Raises
        ``ValueError`` where that has been done."""
        if any(one.printed == printed and not one.beside for one in self.comparisons):
            raise ValueError(f"{printed.where}, {printed.of}: is compared twice")
        self.comparisons.append(Comparison(printed, ours, remark))

    def beside(self, printed: Printed, what: str, ours: float | None, remark: str = "") -> None:
        """Put another number of ours beside a printed one, ``what`` it is in words: no verdict on either."""
        self.comparisons.append(Comparison(printed, ours, remark, what))

    def erratum(self, where: str, printed: str, corrected: str, computation: str, source: Source = "printed") -> None:
        """Record an error of the paper with the computation that shows it; ``source``: where the authors state it."""
        self.errata.append(Erratum(where, printed, corrected, computation, source))

    def table(self, title: str, rows: pd.DataFrame, file: str = "", show: bool = True, linked: bool = False) -> None:
        """A table of ours that has no single printed counterpart; with ``file`` also written as ``<file>.csv``.
        ``show=False`` only writes the file; ``linked`` puts a link to it in the table's place (long tables)."""
        if file:
            self.folder.mkdir(parents=True, exist_ok=True)
            rows.to_csv(self.folder / f"{file}.csv", index=False)
        if show:
            self.tables.append((title, rows))
        if linked:
            self.linked[title] = f"{file}.csv"

    def figure(self, figure: Figure, name: str, caption: str) -> None:
        """Save a figure below ``folder`` as ``<name>.png``, for a paper also as SVG and PDF, and put it on the page."""
        self.figures.append((save_picture(figure, self.folder, name, self.style), caption))
        self.say(f"figure {name}")

    def note(self, text: str) -> None:
        """A remark for the page: an unstated parameter, a modelling choice."""
        self.notes.append(text)

    def opens(self, text: str) -> None:
        """The answer that the page begins with; its figures stand right behind."""
        self.opening = text

    def skip(self, text: str) -> None:
        """Something that was left out of this run and why (no data, the short form); shown at the top of the page."""
        self.skipped.append(text)
        self.say(f"skipped: {text}")

    def real_data(self, name: str, what: str) -> Path | None:
        """The file of that name in the data folder; where it is not, None, and the page says that ``what`` is left
        out."""
        path = self.data / name
        if path.is_file():
            return path
        self.skip(f"{what}: no {name} in the data")
        return None

    def shipped(self, family: str, name: str) -> Instance:
        """A shipped instance. Raises :class:`InputError` where the instance files are not found."""
        from synth.instance import read

        path = self.instances / family / f"{name}.json"
        if not path.is_file():
            raise InputError(
                "no such instance file; run from the repository's top folder or name --instances", str(path)
            )
        return read(path)

    def placed(self, made: Made, part: str) -> tuple[Made, str]:
        """The shipped instance of that name where there is one, else the instance kept in the part; and the part that
        its records belong to, none for a shipped one."""
        if (self.instances / made.family / f"{made.name}.json").is_file():
            return cast("Made", self.shipped(made.family, made.name)), ""
        return self.keep(made, part), part

    def keep(self, instance: Made, part: str) -> Made:
        """Write an instance made here below ``folder/part/instances`` and read it back, so that records can name it."""
        from synth.instance import read

        path = self.folder / part / "instances" / f"{instance.name}.instance"  # records alone end in .json here
        path.parent.mkdir(parents=True, exist_ok=True)
        text = instance.to_json()
        if not path.is_file() or path.read_text() != text:
            write_atomically(path, text.encode())
        return cast("Made", read(path))

    def publish(self, record: Record, part: str) -> None:
        """Put a copy of a record of another part, with its instance's text, into ``part``: what a page quotes is kept,
        the part where everything was tried need not be."""
        assert record.path is not None
        self.parts.add(part)
        path = self.folder.joinpath(part, *record.path.parts[-3:])  # family, instance, method
        data = {**record.data, "instance_text": record.find_instance().to_json()}
        records.write(replace(record, data=data), path)

    def pack(self) -> None:
        """Put the page's records into one file per part and one for the others, and its instances into them."""
        for part in sorted(self.parts, reverse=True):
            if (self.folder / part).is_dir():
                pack(self.folder / part, own_page=True)

    def grades(self) -> str:
        """What the bounds of this page's records rest on, in words; empty where there are none."""
        count = Counter(self.proofs.values())
        parts = [f"{count['certified']} certified (the check derives them again from certificates)"]
        parts += [f"{count['–']} proven by nobody, which count for nothing"] if count["–"] else []
        stated = [f"{number} {proof}" for proof, number in sorted(count.items()) if proof not in ("certified", "–")]
        alone = f" Stated by a solver alone: {', '.join(stated)}." if stated else ""
        return f"Bounds behind gaps, 'optimal' and 'proven' on this page: {', '.join(parts)}.{alone}" if count else ""

    def solve(
        self,
        instances: Iterable[Instance],
        methods: Sequence[str] | Mapping[str, Mapping[str, str]],
        *,
        solver: str | None = None,
        time_limit: float | None = 60.0,
        part: str = "",
        seed: int = 0,
        apart: bool = False,
    ) -> Iterator[tuple[Instance, Record]]:
        """Run methods (a mapping gives their own ``key=value`` options) on instances: programs through the runner, our
        own references and bounds (in the short form everything) in this process, which saves a start each.

        Records of earlier runs with the same instance and options are taken as they are, so a second run changes
        nothing. They lie below :attr:`results`, or below ``folder/part``. Raises ``RuntimeError`` on a failed check.
        """
        from synth.execution.runs import Request, expand
        from synth.family import get_family

        runs: list[Run] = []
        results = self.folder / part if part else self.results
        self.parts.add(part)
        for instance in instances:
            for name in methods:
                given = methods[name] if isinstance(methods, Mapping) else {}
                solvers = [solver] if solver and get_family(instance.family).method(name).needs else []
                asked = Request([name], solvers, [seed], [time_limit], parameters=given)
                runs += expand([instance], asked, results).runs()
        yield from self._run(runs, apart)

    def study(self, name: str) -> Iterator[tuple[Instance, Record]]:
        """Run the study file ``<instances>/studies/<name>.toml`` as :meth:`solve` does. Its records go below
        :attr:`results` without a folder per variant, so it may hold one variant of each run only. Raises
        :class:`InputError` where the file is missing or wrong."""
        from synth.study import load

        file = self.instances / "studies" / f"{name}.toml"
        if not file.is_file():
            raise InputError("no such study file; run from the repository's top folder or name --instances", str(file))
        study = load(file)
        prepared = study.prepare(self.folder / "studies")
        runs = [replace(run, results=self.results) for run in prepared.runs]
        twice = {run.path for run in runs if sum(other.path == run.path for other in runs) > 1}
        if twice:
            raise InputError(f"several variants of one run: {', '.join(map(str, sorted(twice)))}", str(study.source))
        for text in prepared.left_out:
            self.skip(f"study {name}: {text}")
        yield from self._run(runs)

    def _run(self, runs: Sequence[Run], apart: bool = False) -> Iterator[tuple[Instance, Record]]:
        from synth.api import execute
        from synth.execution.pool import run_all

        programs = [run for run in runs if apart or (run.method.kind == "program" and not self.quick)]
        solved = {run.path: record for run, record, _ in run_all(programs, self.jobs, resume=True)}
        for run in runs:
            record = solved.get(run.path) or run.finished_record()
            if record is None:
                record = records.write(execute(run.instance, run.method, run.options), run.path)
            if not record.ok:
                raise RuntimeError(f"{run.path}: {record['verified']['faults'] or record['message']}")
            if record.stated_bound is not None:
                self.proofs[run.path] = record.proof
            yield run.instance, record


def save_picture(figure: Figure, folder: Path, name: str, style: FigureStyle) -> Path:
    """Write ``<name>.png`` into the folder, for a paper also SVG and PDF; the PNG's path."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.png"
    if style == SCREEN_STYLE:
        save(figure, file, bbox_inches="tight", dpi=110)
    else:
        save(figure, *map(file.with_suffix, SUFFIXES), style=style)
    return file


@contextmanager
def plain_figures() -> Iterator[Any]:
    """One look for all figures of the pages, and no display needed."""
    import matplotlib

    matplotlib.use("Agg")
    with matplotlib.rc_context({"axes.grid": True, "grid.alpha": 0.3, "font.size": 10, "legend.fontsize": 8}):
        yield
