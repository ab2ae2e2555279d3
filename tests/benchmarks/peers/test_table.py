from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from benchmarks.measuring.latency import Percentiles
from benchmarks.metrics import MEASURED
from benchmarks.peers.table import PeerRun, PeersRecord, chosen_on_valid, peers_table
from benchmarks.record_file import rebuild
from indexer.training.origin import Origin


@pytest.fixture
def record(origin: Origin) -> PeersRecord:
    values = {metric: [1.0, 0.5] for metric in MEASURED}
    ours = PeerRun(
        peer="longmatch",
        versions={},
        encoder="bert@01",
        settings={"factory": "auto"},
        keeps_text=True,
        metrics=dict.fromkeys(MEASURED, 0.75),
        per_query=values,
        n_documents=1234,
        tokens_per_document=2000.4,
        load_seconds=1.0,
        build_seconds=10.0,
        documents_per_second=123.4,
        open_seconds=0.1,
        latency=Percentiles(20.0, 30.0, 40.0),
        index_bytes=4 << 20,
        start_mib=100.0,
        build_peak_mib=300.0,
        search_peak_mib=200.0,
    )
    other = replace(
        ours,
        peer="txtai",
        versions={"txtai": "9.0"},
        keeps_text=False,
        documents_per_second=61.7,
        latency=Percentiles(50.0, 60.0, 70.0),
        index_bytes=1 << 20,
        build_peak_mib=450.0,
    )
    return PeersRecord(
        "pets", "pets@ab", "test", False, 0, 100, 2, "bert@01", "bfloat16", 2, ["q1", "q2"], [ours, other], origin
    )


def test_a_peer_stands_beside_ours_with_its_ratios(record: PeersRecord) -> None:
    lines = peers_table([record]).splitlines()
    assert lines[2].startswith(
        "| pets, test (2) | longmatch* | 0.750 [0.500, 1.000] | 0.750 | 0.750 | 0.750 |  | 2,000 | "
    )
    assert lines[3] == (
        "| pets, test (2) | txtai | 0.750 [0.500, 1.000] | 0.750 | 0.750 | 0.750 | 1.000 | 2,000 | 61.7 (0.50) "
        "| 50.0 / 60.0 / 70.0 (2.50) | 1.0 (0.25) | 450 (1.50) | 200 (1.00) |"
    )
    assert ("- pets, test: 1,234 documents, rankings to depth 100, bert@01 in bfloat16, 2 threads, txtai 9.0.") in lines
    assert "in bfloat16, 1 thread, txtai 9.0." in peers_table([replace(record, threads=1)])
    assert "- `python -m benchmarks run retrieval pets`" in lines


def test_without_ours_there_is_nothing_to_divide_by(record: PeersRecord) -> None:
    line = peers_table([replace(record, peers=record.peers[1:])]).splitlines()[2]
    assert line.endswith("| 0.750 |  | 2,000 | 61.7 | 50.0 / 60.0 / 70.0 | 1.0 | 450 | 200 |")


def test_figures_of_another_commit_are_not_divided(record: PeersRecord) -> None:
    older = replace(record.peers[1], commit="f" * 40)
    line = peers_table([replace(record, peers=[record.peers[0], older])]).splitlines()[3]
    assert line.endswith("| 1.000 | 2,000 | 61.7 | 50.0 / 60.0 / 70.0 | 1.0 | 450 | 200 |")


def test_a_quick_run_says_so(record: PeersRecord) -> None:
    assert "it shows that all works, not what is good" in peers_table([replace(record, is_quick=True)])
    assert "it shows" not in peers_table([record])


def test_the_record_survives_json(record: PeersRecord) -> None:
    assert rebuild(PeersRecord, json.loads(json.dumps(asdict(record)))) == record
    assert record.name == "peers-pets-test-bert-bfloat16-threads2-k100"
    limited = replace(record, limit=5, origin=replace(record.origin, seed=3))
    assert limited.name == "peers-pets-test-bert-bfloat16-threads2-k100-first5-seed3"
    assert "| pets, test, first 5 (2) |" in peers_table([limited])
    assert record.extent == {"peers": 2, "queries": 2}


def test_what_was_best_on_valid_is_marked(record: PeersRecord) -> None:
    def run(peer: str, quality: float) -> PeerRun:
        return replace(record.peers[1], peer=peer, metrics={**record.peers[1].metrics, "nDCG@10": quality})

    tried = [run("st-chunks@128", 0.3), run("st-chunks-sum@128", 0.6), run("st-chunks@256", 0.5), run("txtai@128", 0.9)]
    valid = replace(record, split="valid", peers=tried)
    test = replace(record, peers=[record.peers[0], run("st-chunks-sum@128", 0.4), run("txtai@128", 0.4)])
    assert chosen_on_valid(test, [valid, test]) == {"st-chunks-sum@128"}  # one length of txtai's chunks is no choice
    table = peers_table([valid, test])
    assert "| st-chunks-sum@128† |" in table and "| txtai@128 |" in table and "pets, valid" not in table
    assert "| pets, valid (2) | st-chunks@128 |" in peers_table([valid])
    assert chosen_on_valid(replace(test, dtype="float32"), [valid]) == set()


def test_what_failed_and_other_weights_and_commits_are_told(record: PeersRecord) -> None:
    other = replace(record.peers[1], peer="late-interaction", encoder="colbert@02", commit="fedcba9876543210")
    table = peers_table([replace(record, peers=[record.peers[0], other], failed={"lancedb@256": "no memory"})])
    assert " late-interaction: colbert@02. late-interaction at commit fedcba9876. No result: lancedb@256." in table
