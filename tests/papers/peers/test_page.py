"""The page of the peers: what is read of their files, the instances of it, its computations, what is published."""

from __future__ import annotations

import math
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from synth.errors import InputError
from synth.family import get_family, reproduced
from synth.reproduction.collect import Reproduction
from synth_models.fabric.check.replay import check_schedule
from synth_papers.fabric.grid import made
from synth_papers.peers import errata, sccl, tacos, teccl
from synth_papers.peers.page import reproduce
from synth_papers.peers.runs import Found, changed

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "results" / "published" / "peers"
DATA = ROOT.parent / "shared" / "data"
HEADER = (
    "topology,chassis,collective,mode,size,epoch_s,expected_epoch_s,epochs,finish_us,algbw_GBps,solver_s,flows,file\n"
)
SLOW = "NDv2,2,AlltoAll,Slow,1GB,0.005,0.005,59,295000.0,3.2,471.1,0,a\n"
FAST = "NDv2,2,AlltoAll,Fast,1GB,0.00125,0.00125,227,283750.0,3.3,1481.8,0,b\n"
EARLY = "DGX2,2,AllGather,Fast_Early_Stop,1KB,2e-09,2e-09,2006,4.012,0.5,1388.12,992,c\n"


def results(tmp_path: Path, *rows: str) -> list[teccl.Result]:
    path = tmp_path / "teccl-results.csv"
    path.write_text(HEADER + "".join(rows))
    return teccl.printed_results(path)


def test_rows_become_instances(tmp_path):
    """1 GB: sixteenths of 62.5 MB for each of 15 GPUs; 1 KB that stopped early on DGX2: sixteenths of 62.5 bytes,
    rounded up, for 32."""
    slow, early = results(tmp_path, SLOW, EARLY)
    assert (slow.machine, slow.collective, slow.epochs, slow.finish_us) == ("teccl-ndv2-2", "alltoall", 59, 295000.0)
    assert slow.chunk == 62_500_000
    assert slow.bytes_on("teccl-ndv2-2") == 937_500_000
    assert slow.bytes_on("teccl-ndv2-2-16") == 10**9
    assert early.chunk == 63
    assert early.bytes_on("teccl-dgx2-2") == 32 * 63
    instance = slow.instance()
    assert (instance.bytes, slow.instance("teccl-ndv2-2-16").bytes) == (937_500_000, 10**9)
    rules = instance.switching
    assert (rules.mode, rules.buffer, rules.copies) == ("store_and_forward", False, True)


@pytest.mark.parametrize(
    "row",
    [
        SLOW.replace("1GB", "3GB"), SLOW.replace("NDv2", "NDv3"), SLOW.replace("295000.0", "nan"), "NDv2,2\n",
        SLOW.replace("295000.0", "-1"), SLOW.replace("Slow", "Quick"), SLOW.replace("59", "many"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_named_by_its_line(tmp_path, row):
    with pytest.raises(InputError, match=r"teccl-results\.csv: line 3 is no result of TE-CCL"):
        results(tmp_path, FAST, row)


@pytest.mark.skipif(not (DATA / teccl.RESULTS).is_file(), reason="shared/data/peers is not here")
def test_chunks_are_those_of_the_stored_epochs():
    """An epoch is a chunk on the fastest (or slowest) link: from 64 KB on, where no latency lengthens it."""
    rows = [row for row in teccl.printed_results(DATA / teccl.RESULTS) if teccl.SIZES[row.size] >= 64_000]
    assert len(rows) == 154 * 8 // 11
    for row in rows:
        rates = made(machine=row.machine, bytes="960").machine.network.bandwidth
        rate = rates.min() if row.mode == "Slow" else rates.max()
        assert math.isclose(row.chunk / rate, row.epoch_s, rel_tol=1e-9), row


def test_epochs_leave_out_latencies_below_a_tenth(tmp_path):
    """On two DGX2 at 16 MB an epoch is 4 us: 0.35 us count as none, 2.6 us do not."""
    (row,) = results(tmp_path, "DGX2,2,AllGather,Fast,16MB,4e-06,4e-06,31,124.0,129,1261.77,992,d\n")
    instance = row.instance()
    bare = teccl.as_counted(teccl.Row(row, Found(instance)))
    before, after = instance.machine.network.latency, bare.machine.network.latency
    assert set(after.tolist()) == {0.0, 2.6e-6}
    assert np.array_equal(after[before > 1e-6], before[before > 1e-6])
    assert bare.switching.multicast
    assert bare.bytes == instance.bytes


def test_the_rule_of_tacos_is_causal_on_equal_links():
    mesh = made(network="mesh", rows="3", cols="3", bandwidth="1e9", latency="0", bytes=str(9 * 1000))
    for seed in range(3):
        schedule, early = tacos.by_the_rule(mesh, seed)
        assert early == 0
        assert check_schedule(mesh, schedule).ok


def test_the_rule_of_tacos_sends_what_has_not_arrived_on_unequal_links():
    """Two links lead to rank 2, quick from 0, slow from 1; what rule and check say of early transfers agrees: none or
    some."""
    schedule, early = tacos.by_the_rule(tacos.unequal_mesh(), 0)
    verdict = check_schedule(tacos.unequal_mesh(), schedule)
    assert early > 0
    assert sum("before it has arrived" in fault for fault in verdict.faults) > 0
    slow = changed(tacos.unequal_mesh(), failed={"links": [], "nodes": []})
    assert slow.machine.links == 80


def test_the_mesh_and_the_switches_of_te_ccl_as_its_rules_build_them():
    """Side 4: 15 + 12 pairs for 12 + 12; node 24c + 16 is the last GPU of chassis c, 24c + 24 the last small switch."""
    mesh = errata.te_ccl_mesh(4)
    assert mesh.number_of_edges() == 27
    assert set(mesh.edges) - {(i, j) for i in range(16) for j in (i + 1, i + 4)} == set()
    assert nx.grid_2d_graph(4, 4).number_of_edges() == 24
    used, meant = errata.amd_switches(2)
    assert used - meant == {16, 40}
    assert meant - used == {24, 48}


def test_cases_of_sccl(tmp_path):
    path = tmp_path / "sccl.json"
    path.write_text(
        '{"published": [{"coll": "Allgather", "S": 2, "R": 4, "C": 3, "result": "unsat", "s": 1.1},'
        '{"coll": "Gather"}],'
        '"published_table_unconfirmed": {"Allgather_Reducescatter": [[3, 2, 4], [1, 2, 2]]}}'
    )
    found = sccl.cases(path)
    assert [(c.collective, c.steps, c.rounds, c.chunks, c.printed) for c in found] == [
        ("allgather", 2, 4, 3, "none"),
        ("allgather", 2, 2, 1, ""),
    ]
    for text in ("[]", '{"published": 3}', '{"published": [{"coll": "Allgather", "S": 0, "R": 1, "C": 1}]}', "no"):
        path.write_text(text)
        with pytest.raises(InputError, match="is no list of SCCL's rows"):
            sccl.cases(path)


def test_reproduce_knows_the_page():
    pages = reproduced()
    assert "peers" in pages
    known = ["fabric", "peers", "clusters", "nvls", "tuned", "several", "late", "drill", "outside"]
    assert [page.name for page in get_family("fabric").pages] == known
    assert pages["fabric"].target == get_family("fabric").capabilities["paper"]


@pytest.mark.slow
def test_the_page_says_what_is_left_out_without_data(tmp_path):
    page = Reproduction(tmp_path / "peers", quick=True, instances=ROOT / "instances", data=tmp_path)
    reproduce(page)
    assert len([text for text in page.skipped if "in the data" in text]) == 4
    assert all(item.difference == 0 for item in page.comparisons)
    assert [item.where for item in page.errata] == ["TACOS, links of unequal speed"]


@pytest.mark.slow
def test_a_result_beside_ours(tmp_path):
    """15 GPUs: ours below both printed times, which are below what 16 GPUs need (320 ms)."""
    (tmp_path / "peers").mkdir()
    (tmp_path / teccl.RESULTS).write_text(HEADER + FAST + SLOW)
    page = Reproduction(tmp_path / "out" / "peers", quick=True, instances=ROOT / "instances", data=tmp_path)
    found = teccl.results(page)
    assert found is not None
    assert all(row.within and not row.beyond for row in found.rows)
    assert all(row.true is not None and row.true.bound >= 0.320 for row in found.rows)
    errata.te_ccl(page, found)
    assert "283.75 ms (fast) and 295 ms (slow)" in page.errata[0].printed
    teccl.tables(page, found)
    page.pack()


def test_ours_is_at_most_theirs_wherever_anything_can_be():
    """In all 154 results, but for those whose printed time is below the certified bound; there ours is at most theirs
    on the machine that their epochs describe."""
    table = pd.read_csv(PUBLISHED / "teccl.csv")
    assert len(table) == 154
    longer = table[table["ours [us]"] > table["theirs [us]"] * (1 + 1e-9)]
    assert (longer["theirs [us]"] < longer["bound [us]"]).all()
    below = pd.read_csv(PUBLISHED / "teccl-below-bound.csv")
    assert len(below) == len(longer)
    assert below["ours at most theirs"].all()
