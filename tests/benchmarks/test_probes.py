from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.probes import ProbeTrial, main, measure
from benchmarks.probing.frozen_vectors import FrozenVectors
from benchmarks.probing.labelled import LabelledCorpus, open_labelled
from benchmarks.probing.record import ProbeRecord
from benchmarks.record_file import rebuild
from benchmarks.records import BuildCost
from indexer.training.origin import Origin
from tests.benchmarks.labelled_corpus import write_labelled

pytest.importorskip("sklearn")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_labelled(tmp_path / "places")


@pytest.fixture
def corpus(folder: Path) -> LabelledCorpus:
    return open_labelled(str(folder))


def vectors_of(corpus: LabelledCorpus, misplaced: str) -> FrozenVectors:
    """Each class has a direction of its own; one document has that of the other class."""
    directions = {"sea": [1.0, 0.0], "sky": [0.0, 1.0]}
    rows = [directions[corpus.labels[doc_id]][:: -1 if doc_id == misplaced else 1] for doc_id in corpus.doc_ids]
    places = {doc_id: place for place, doc_id in enumerate(corpus.doc_ids)}
    return FrozenVectors("document", "fake@0", places, np.array(rows, np.float32), BuildCost(2.5, 700))


def test_a_record_holds_what_was_right_and_every_draw(corpus: LabelledCorpus, origin: Origin) -> None:
    trial = ProbeTrial(corpus, (1, 5), 4, 0, False, origin)
    record = measure(vectors_of(corpus, "test-sky2"), trial)
    assert record.wrong == [corpus.splits["test"].index("test-sky2")]
    assert record.is_right == [int(place != 5) for place in range(12)]
    sea, sky = 2 * 6 / (2 * 6 + 1), 2 * 5 / (2 * 5 + 1)
    assert record.metrics == {"accuracy": round(11 / 12, 4), "macro_f1": round((sea + sky) / 2, 4)}
    assert record.few_shot["5"]["accuracy"] == [round(11 / 12, 4)] * 4
    assert (record.n_train, record.n_valid, record.n_test, record.n_tokens) == (16, 8, 12, 700)
    assert record.name == "probe-places-document-fake"


def test_the_command_writes_a_record_and_a_table(folder: Path, tmp_path: Path) -> None:
    options = ["--systems", "tfidf", "--shots", "2,4", "--draws", "3", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [str(folder), *options], catch_exceptions=False)
    assert "| Task (test) | System | Accuracy [95 %] | Macro-F1 | 2 a class | 4 a class | p, TF-IDF |" in done.output
    assert "| places (12) | tfidf | 1.000 [1.000, 1.000] | 1.000 | 1.000 ± 0.000 / 1.000 ± 0.000 |" in done.output
    fields = json.loads((tmp_path / "out" / "probe-places-tfidf.json").read_text())
    assert fields.pop("kind") == ProbeRecord.kind
    record = rebuild(ProbeRecord, fields)
    assert record.origin.command.endswith("places --systems tfidf --shots 2,4 --draws 3")
    assert record.few_shot == {"2": {"accuracy": [1.0] * 3, "macro_f1": [1.0] * 3}} | {
        "4": {"accuracy": [1.0] * 3, "macro_f1": [1.0] * 3}
    }


def test_an_encoders_vectors_are_made_once(folder: Path, tmp_path: Path, bert_folder: Path) -> None:
    options = ["--encoder", str(bert_folder), "--systems", "document", "--shots", "2", "--draws", "2"]
    places = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    tokens = []
    for _ in range(2):
        assert CliRunner().invoke(main, [str(folder), *options, *places], catch_exceptions=False).exit_code == 0
        tokens.append(json.loads((tmp_path / "out" / "probe-places-document-bert.json").read_text())["n_tokens"])
    assert tokens[0] > 0
    assert tokens[1] == 0
    assert CliRunner().invoke(main, [str(folder), *options, *places, "--max-words", "2"]).exit_code == 0
    assert len(list((tmp_path / "work").iterdir())) == 2


def test_a_quick_run_is_small_and_leaves_no_record(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.probes.RESULTS", tmp_path / "results")
    options = ["--systems", "tfidf", "--quick", "--shots", "2"]
    done = CliRunner().invoke(main, [str(folder), *options], catch_exceptions=False)
    assert "| places (12, quick) | tfidf |" in done.output
    assert not (tmp_path / "results").exists()
    CliRunner().invoke(main, [str(folder), *options, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["probe-places-tfidf-quick.json"]


def test_mistakes_are_one_line(folder: Path) -> None:
    def said(*arguments: str) -> str:
        return CliRunner().invoke(main, list(arguments)).stderr.splitlines()[-1]

    assert said(str(folder), "--systems", "bm25").endswith("'bm25' is not one of document, tfidf")
    assert said(str(folder), "--shots", "5,x").endswith("'5,x' must be whole numbers from 1 on, separated by commas")
    assert said(str(folder), "--systems", "tfidf", "--shots", "9").startswith("Error: 9 documents of each class were")
