"""A script of a user, as `mypy --strict` sees it: topology in, methods compared, a study, the library, figures out."""

from pathlib import Path

import synth


def made(kind: str) -> synth.Instance:
    return synth.make("fabric", network=kind, nodes=4, collective="allgather", bytes="4KiB", bandwidth="25GB/s")


def least(table: synth.Frame) -> float:
    values = table["value_s"].dropna()
    return float(values.min())


def first_to_last(instance: synth.Instance, options: synth.RunOptions) -> synth.Outcome:
    """A method of the user's own: what another found."""
    found = synth.solve(instance, "direct", time_limit=options.time_limit_s)
    return synth.Outcome("finished", solution=found.solution())


def beside(places: list[Path]) -> list[synth.Verdict]:
    return [synth.check(place) for place in places]


def main(folder: Path) -> None:
    print(synth.families()[["title", "objective", "unit"]])
    methods, keys = synth.methods("fabric"), synth.keys("fabric")
    ours = [str(name) for name in methods.index[~methods["published"] & (methods["kind"] == "program")]]
    print(ours, keys.loc["bytes", "example"], keys.loc["collective", "default"])

    (folder / "ring.json").write_text(made("ring").to_json())
    ring = synth.read(folder / "ring.json")
    table: synth.Frame = synth.compare(ring, ["ring", "direct", "bound"], time_limit="20s", results=folder)
    print(table.sort_values("value_s")[["value_s", "bound_s", "gap", "certified", "seconds", "made_by"]])
    print(f"{least(table) * 1e6:.3f} us", table.attrs.keys(), table.style.to_html()[:7])
    print(synth.compare(ring, [first_to_last, "ring"], time_limit="5s").columns)
    for kind in ("ring", "full"):
        every = synth.compare(made(kind), time_limit="5s", gap="0.01%")
        every.groupby("kind")["gap"].mean().to_csv(folder / f"{kind}.csv")

    record: synth.Record = synth.solve(ring, first_to_last, time_limit="5s", seed=1, results=folder)
    verdict: synth.Verdict = synth.check(record, ring)
    if record.value is not None and verdict.ok and record.path is not None:
        print(record.value, record.bound, record.gap, beside([record.path])[0].ok)
    record.plot("mine").savefig(folder / "mine.pdf")
    print(record.table().head(), record.describe())

    (folder / "small.toml").write_text(
        'name = "small"\ninstances = ["ring.json"]\n[[run]]\nmethods = ["ring", "bound"]\n'
    )
    found = synth.study(folder / "small.toml", folder / "studies", 1, time_limit="20s", memory_mb="2G")
    print(found.table.pivot_table(index="instance", columns="method", values="value_s"), found.summary())
    print(found.report, ring.name, sorted(path.suffix for path in found.files))
    planner = synth.Planner("dgx-h100", boxes=1)
    print(planner.plan([[0 if i == j else 2**20 for j in range(8)] for i in range(8)]).seconds)
    try:
        known = synth.library()
        print(known[known["family"] == "fabric"].nlargest(3, "gap")[["instance", "value_s", "made_by"]])
    except synth.InputError as error:
        print(error)


if __name__ == "__main__":
    main(Path())
