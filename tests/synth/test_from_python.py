"""Python as its users expect it: names in an editor, typed values, a study, short forms in notebooks."""

import inspect
from importlib import import_module, resources

import pandas as pd
import pytest

import synth
from synth.study.collect import Collected


def test_every_name_is_there_and_listed():
    for name in synth.__all__:
        assert getattr(synth, name) is not None
        assert name in dir(synth)
    with pytest.raises(AttributeError, match="no attribute 'sovle'"):
        synth.sovle  # noqa: B018


@pytest.mark.parametrize("package", ["synth", "synth_models", "synth_peers"])
def test_types_are_shipped(package):
    assert resources.files(package).joinpath("py.typed").is_file()


def test_a_study_from_python(tmp_path):
    made = synth.make("xtree", network="ring", nodes=4, chunks=1)
    (tmp_path / "ring.json").write_text(made.to_json())
    (tmp_path / "small.toml").write_text('name = "small"\ninstances = ["ring.json"]\n[[run]]\nmethods = ["bound"]\n')
    ended = []
    found = synth.study(tmp_path / "small.toml", tmp_path / "out", 1, on_end=lambda run, *_: ended.append(run.path))
    assert isinstance(found, Collected)
    assert isinstance(found.table, pd.DataFrame)
    assert found.folder == tmp_path / "out/small"
    assert found.report.is_file()
    assert found.report in found.files
    assert len(ended) == 1
    assert list(found.table["label"]) == list(found.summary()["label"]) == ["bound"]
    assert str(found.report) in found._repr_html_()
    again = synth.study(str(tmp_path / "small.toml"), tmp_path / "out", resume=True, time_limit=60)
    assert len(again.table) == 1


def test_the_package_of_studies_is_the_function_too():
    package = import_module("synth.study")
    assert package is synth.study
    assert inspect.signature(synth.study) == inspect.signature(package.run.study)
    with pytest.raises(synth.InputError, match="no family and no study file"):
        synth.study("nothing")


def test_options_take_typed_values(tmp_path):
    instance = synth.make("xtree", network="equimesh", rows=2, cols=3, chunks=4)
    typed = synth.solve(instance, "ilp", options={"horizon": 4, "warm_start": False}, results=tmp_path)
    assert typed.path == tmp_path / "xtree" / instance.name / "ilp-highs-horizon=4.json"
    assert typed["termination"] == "infeasible"
    assert typed["options"]["method"]["warm_start"] is False
    with pytest.raises(synth.InputError, match="whole number"):
        synth.solve(instance, "ilp", options={"horizon": 4.5})


@pytest.mark.parametrize(
    ("family", "keys", "cells"),
    [
        ("xtree", dict(network="ring", nodes=4, chunks=2), {"chunks": "2", "chunk_bytes": "1.00 MiB"}),
        ("optree", dict(nodes=1024, wavelengths=2), {"nodes": "1,024", "step_overhead": "25.0 us"}),
        ("bine", dict(groups=[2, 2], collective="broadcast", bytes=64), {"collective": "broadcast", "bytes": "64 B"}),
        ("mlfm", dict(d=2, layers=1, columns=2, servers=2), {"latency": "0 s", "message_bytes": "16.0 MiB"}),
    ],
)
def test_an_instance_in_a_notebook(family, keys, cells):
    instance = synth.make(family, **keys)
    html = instance._repr_html_()
    for key, text in {"instance": f"{family} {instance.name}", "source": instance.source, **cells}.items():
        assert f"<th>{key}</th><td>{text}</td>" in html
    assert "format" not in html


def test_a_record_at_the_prompt():
    """One line, whatever it holds; notebooks show the same."""
    record = synth.solve(synth.make("xtree", network="ring", nodes=4, chunks=1), "tacos")
    assert repr(record).startswith("<record: instance xtree ring-4-c1, method tacos (reference), finished, ")
    assert "\n" not in repr(record)
    assert len(repr(record)) < 300
    assert "<th>method</th><td>tacos (reference), finished</td>" in record._repr_html_()


def test_no_markup_comes_out_of_a_file():
    instance = synth.make("xtree", network="ring", nodes=4, chunks=1).model_copy(update={"source": "<b>me</b>"})
    assert "&lt;b&gt;me" in instance._repr_html_()
