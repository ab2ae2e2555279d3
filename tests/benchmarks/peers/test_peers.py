from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from benchmarks.datasets import open_dataset, read_documents
from benchmarks.peers.peers import main
from benchmarks.peers.table import PeersRecord
from benchmarks.record_file import rebuild, write_record
from engine.encoders.backbone.tokenizer import Tokenizer


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def read(folder: Path) -> PeersRecord:
    (file,) = folder.iterdir()
    values = json.loads(file.read_text())
    assert values.pop("kind") == "peers"
    return rebuild(PeersRecord, values)


def test_ours_is_measured_alone_without_other_packages(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    common = ["--encoder", bert_folder, "--dtype", "float32", "--threads", "1", "--out", tmp_path / "out"]
    done = run(folder, "--peers", "longmatch", "--quick", *common)
    assert done.exit_code == 0, done.output
    record = read(tmp_path / "out")
    assert record.name == "peers-pets_quick-test-bert-float32-threads1-k100"
    assert (record.is_quick, record.n_queries, [one.peer for one in record.peers]) == (True, 2, ["longmatch"])
    assert f"| {record.task}, test (2) | longmatch* |" in done.output


def test_a_part_of_whole_documents_is_recorded_as_what_it_is(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    common = ["--encoder", bert_folder, "--dtype", "float32", "--threads", "1", "--out", tmp_path / "out"]
    done = run(folder, "--peers", "longmatch", "--documents", "20", *common)
    assert done.exit_code == 0, done.output
    record = read(tmp_path / "out")
    assert (record.task, record.is_quick, record.limit, record.n_queries) == ("pets_20documents", False, 0, 2)
    refused = run(folder, "--documents", "20", "--quick", *common)
    assert refused.exit_code == 2 and "--documents goes with neither --quick nor --limit" in refused.output


def test_peers_are_built_and_asked_in_processes_of_their_own(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    common = ["--encoder", bert_folder, "--dtype", "float32", "--threads", "1", "--out", tmp_path / "out"]
    done = run(folder, "--peers", "st-first-256,st-chunks", "--window-tokens", "16,32", "--quick", *common)
    assert done.exit_code == 0, done.output
    record = read(tmp_path / "out")
    assert (record.threads, record.dtype, record.limit) == (1, "float32", 0)
    assert [peer.peer for peer in record.peers] == ["st-first-256", "st-chunks@16", "st-chunks@32"]
    assert [peer.settings.get("window_tokens") for peer in record.peers] == [None, 16, 32]
    for peer in record.peers:
        assert peer.n_documents == 4
        assert len(peer.per_query["nDCG@10"]) == 2
        assert 0 < peer.latency.p50_ms <= peer.latency.p99_ms
        assert peer.index_bytes > 0
        assert peer.start_mib <= peer.build_peak_mib
    n_tokens = [
        len(Tokenizer(bert_folder).tokenize([document.text])[0][0])
        for document in read_documents(open_dataset(str(folder)))
    ]
    assert max(n_tokens) > 46  # that the BERT of the tests reads at once
    read_of_each = [np.minimum(n_tokens, 46).mean(), np.mean(n_tokens), np.mean(n_tokens)]
    assert [peer.tokens_per_document for peer in record.peers] == pytest.approx(read_of_each, abs=0.05)
    assert record.origin.command.startswith("python -m benchmarks study peers ")
    assert "--out" not in record.origin.command and "--encoder bert" in record.origin.command


def test_a_peer_that_fails_is_recorded_and_alone_measured_again(
    folder: Path, bert_folder: Path, tmp_path: Path
) -> None:
    pytest.importorskip("sentence_transformers")
    (tmp_path / "model").mkdir()
    given = ["--late-interaction", tmp_path / "model", "--peers", "longmatch,late-interaction,st-first-256"]
    options = [folder, "--quick", "--threads", "1", "--encoder", bert_folder, "--out", tmp_path / "out", *given]
    done = run(*options)
    assert done.exit_code == 1
    assert "Error: the peer late-interaction ended with 1 (" in done.output
    assert "is no late-interaction model" in done.output and "1 of 3 failed" in done.output
    before = read(tmp_path / "out")
    assert [peer.peer for peer in before.peers] == ["longmatch", "st-first-256"]
    assert "--late-interaction model" in before.origin.command
    assert list(before.failed) == ["late-interaction"]
    again = run(*options)
    assert "longmatch, st-first-256 kept from a run before" in again.output
    after = read(tmp_path / "out")
    assert (after.peers, list(after.failed)) == (before.peers, ["late-interaction"])


def test_a_record_of_more_queries_is_not_replaced(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    common = ["--encoder", bert_folder, "--threads", "1", "--out", tmp_path / "out", "--peers", "longmatch"]
    assert run(folder, *common).exit_code == 0
    whole = read(tmp_path / "out")
    assert run(folder, *common, "--limit", "1").exit_code == 0
    assert len(list((tmp_path / "out").iterdir())) == 2
    (folder / "splits.json").write_text(json.dumps({"test": ["dog"]}))
    refused = run(folder, *common)
    assert refused.exit_code == 1 and "holds 2 queries, not 1; write the smaller one elsewhere" in refused.output
    assert whole.name in {path.stem for path in (tmp_path / "out").iterdir()}


def test_mistakes_are_one_line(folder: Path, tmp_path: Path) -> None:
    unknown = run(folder, "--peers", "longmatch,elastic")
    assert "'elastic' is not one of longmatch, st-first-256" in unknown.output
    nowhere = run(tmp_path / "nowhere", "--peers", "longmatch", "--encoder", "no/such/encoder")
    assert nowhere.output.startswith("Error: ")


def test_one_peer_is_measured_again_and_others_stay(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    common = ["--encoder", bert_folder, "--dtype", "float32", "--threads", "1", "--out", tmp_path / "out"]
    ours = [folder, "--peers", "longmatch", "--quick", *common]
    missing = run(*ours, "--renew")
    assert missing.exit_code == 1 and "run the same command without --renew" in missing.output
    assert run(*ours).exit_code == 0
    record = read(tmp_path / "out")
    other = replace(record.peers[0], peer="txtai@256", build_seconds=12_345.0)
    old = replace(
        record,
        origin=replace(record.origin, commit="f" * 40),
        peers=[replace(record.peers[0], build_seconds=54_321.0), other],
    )
    write_record(old, tmp_path / "out")
    assert run(*ours, "--renew").exit_code == 0
    renewed = read(tmp_path / "out")
    assert [one.peer for one in renewed.peers] == ["longmatch", "txtai@256"]
    assert renewed.peers[0].build_seconds < 54_321
    assert renewed.peers[1] == replace(other, commit="f" * 40)
    write_record(replace(old, query_ids=["cat"]), tmp_path / "out")
    refused = run(*ours, "--renew")
    assert refused.exit_code == 1 and "of another query_ids" in refused.output
