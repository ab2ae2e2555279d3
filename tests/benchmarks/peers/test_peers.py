from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import open_dataset, read_documents
from benchmarks.peers import peer
from benchmarks.peers.peer import PEERS, Entry, check_packages, peer_config, versions
from benchmarks.runs import Run, read_runs
from benchmarks.tables.peers import PeerDetails
from benchmarks.tasks.peers import main
from engine.encoders.tokenizer import Tokenizer
from engine.encoders.trainable import MeanEncoder
from engine.errors import EncoderError, MissingExtra
from tests.benchmarks.conftest import run_here
from tests.benchmarks.made_runs import error_of, run_program
from tests.encoders.tiny import tiny_smith


def read(folder: Path) -> dict[str, Run]:
    return {run.system: run for run in read_runs(folder)}


def measured(peers: str, folder: Path, bert_folder: Path, out: Path) -> tuple[str, dict[str, Run]]:
    """The output and the runs of peers of sentence-transformers, on a quick part."""
    pytest.importorskip("sentence_transformers")
    common = ["--encoder", bert_folder, "--dtype", "float32", "--threads", "1", "--out", out]
    done = run_program(main, folder, "--peers", peers, "--quick", *common)
    return done.output, read(out)


@pytest.mark.slow
def test_ours_is_measured_alone_in_processes_of_its_own(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    """A part of the corpus, without the packages of other peers."""
    common = ["--encoder", bert_folder, "--dtype", "float32", "--threads", "1", "--out", tmp_path / "out"]
    done = run_program(main, folder, "--peers", "longmatch", "--documents=20", *common)
    (one,) = read(tmp_path / "out").values()
    assert (one.name, len(one.cases)) == ("pets_20documents-longmatch-bert-float32-threads1-k100-test", 2)
    assert "| pets_20documents, test (2) | longmatch* |" in done.output


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch, restored_settings: None) -> None:
    monkeypatch.setattr("benchmarks.peers.stages.run_fresh", run_here)


@pytest.mark.usefixtures("in_this_process")
def test_peers_are_built_and_searched(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    _, runs = measured("st-first-256,st-chunks", folder, bert_folder, tmp_path / "out")
    assert list(runs) == ["st-chunks@256", "st-first-256"]
    assert [one.settings.get("window_tokens") for one in runs.values()] == [48, None]
    details = [one.details_as(PeerDetails) for one in runs.values()]
    for own in details:
        assert (own.threads, own.dtype, own.n_documents) == (1, "float32", 4)
        assert 0 < own.latency.p50_ms <= own.latency.p99_ms
        assert own.index_bytes > 0
        assert own.start_mib <= own.build_peak_mib
    n_tokens = [
        len(Tokenizer(bert_folder).tokenize([document.text])[0][0])
        for document in read_documents(open_dataset(str(folder)))
    ]
    assert max(n_tokens) > 46  # that the BERT of the tests reads at once
    read_of_each = [np.mean(n_tokens), np.minimum(n_tokens, 46).mean()]
    assert [own.tokens_per_document for own in details] == pytest.approx(read_of_each, abs=0.05)
    command = runs["st-first-256"].origin.command
    assert command.startswith("python -m benchmarks study peers ")
    assert "--out" not in command and "--encoder bert" in command


@pytest.mark.usefixtures("in_this_process")
def test_both_aggregates_search_the_files_of_one_build(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    corpus = folder / "corpus.jsonl.gz"
    longer = gzip.decompress(corpus.read_bytes()).replace(b"A dog barks", b"A cat sleeps near the rocket. A dog barks")
    corpus.write_bytes(gzip.compress(longer))  # a query of two chunks
    output, runs = measured("st-chunks,st-chunks-sum", folder, bert_folder, tmp_path / "out")
    assert output.count(" builds\n") == 1
    best, summed = runs["st-chunks@256"], runs["st-chunks-sum@256"]
    assert best.fit_seconds == summed.fit_seconds and best.cases != summed.cases
    assert (best.settings["aggregate"], summed.settings["aggregate"]) == ("max", "sum")
    assert "depth" in best.settings and "depth" not in summed.settings


def test_a_failed_peer_is_reported_and_writes_no_run(
    folder: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MissingExtra("the peer", "no-such-package", "peers")

    monkeypatch.setattr("benchmarks.tasks.peers.check_packages", lambda _: None)
    monkeypatch.setattr("benchmarks.tasks.peers.build_in_process", fail)
    options = ["--quick", "--encoder", bert_folder, "--out", tmp_path / "out", "--peers", "longmatch"]
    assert "1 of 1 failed; to measure those alone again: --peers longmatch" in error_of(main, folder, *options)
    assert read(tmp_path / "out") == {}


def test_mistakes_are_reported_in_one_line(folder: Path, tmp_path: Path) -> None:
    unknown = error_of(main, folder, "--peers", "longmatch,elastic")
    assert "'elastic' is not one of longmatch, st-first-256" in unknown
    assert "--documents does not go with --quick" in error_of(main, folder, "--documents", "20", "--quick")
    nowhere = error_of(main, tmp_path / "nowhere", "--peers", "longmatch", "--encoder", "no/such/encoder")
    assert nowhere.startswith("Error: ")


def test_the_error_for_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Entry("nowhere", "Nothing", {"no_such_module": "no-such-package"})
    monkeypatch.setattr(peer, "PEERS", {**PEERS, "absent": absent})
    with pytest.raises(MissingExtra, match=r"the peer absent needs no-such-package; .*pip install "):
        check_packages(["longmatch", "absent"])


def test_versions_are_those_of_the_distributions() -> None:
    assert versions("longmatch") == {}
    pytest.importorskip("sentence_transformers")
    assert set(versions("st-chunks")) == {"sentence-transformers"}


def test_a_backbone_is_shared_as_it_is(bert_folder: Path) -> None:
    config = peer_config(str(bert_folder), dtype="float32", threads=2)
    assert (config.backbone, config.pooling, config.max_tokens, config.threads) == (bert_folder, "mean", 48, 2)
    assert (config.dtype, config.n_special, config.width) == ("float32", 2, 32)
    assert config.label.startswith("bert@")


def test_a_saved_mean_encoder_is_shared_with_its_pooling(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    mean_encoder.save_pretrained(tmp_path / "saved")
    assert peer_config(str(tmp_path / "saved"), dtype="same", threads=1).pooling == "mean"


def test_layers_that_no_peer_has_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    tiny_smith(bert_folder).save_pretrained(tmp_path / "smith")
    with pytest.raises(EncoderError, match="is of the kind 'smith', whose layers no peer can load; peers share"):
        peer_config(str(tmp_path / "smith"), dtype="same", threads=1)
