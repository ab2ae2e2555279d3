from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.citation_probes import main
from benchmarks.probing.record import ProbeRecord
from benchmarks.record_file import rebuild

pytest.importorskip("sklearn")

SPLITS = {"train": range(0, 16), "valid": range(16, 24), "test": range(24, 32)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Thirty-two pairs of documents that share a word nobody else has, and cite each other."""
    folder = tmp_path / "twins"
    folder.mkdir()
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        for number in range(32):
            for side, common in (("a", "river"), ("b", "mountain")):
                text = f"word{number} word{number} beside the {common}"
                file.write(json.dumps({"id": f"{side}{number}", "title": "", "text": text}) + "\n")
    rows = "".join(f"a{number}\tb{number}\t1\n" for number in range(32))
    (folder / "qrels.tsv").write_text("query_id\tdoc_id\trelevance\n" + rows)
    splits = {split: [f"a{number}" for number in numbers] for split, numbers in SPLITS.items()}
    (folder / "splits.json").write_text(json.dumps(splits))
    return folder


def test_a_probe_and_a_threshold_are_recorded_for_each_system(folder: Path, tmp_path: Path) -> None:
    options = ["--systems", "tfidf", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [str(folder), *options], catch_exceptions=False)
    records = {}
    for path in (tmp_path / "out").iterdir():
        fields = json.loads(path.read_text())
        assert fields.pop("kind") == "probe"
        records[path.stem] = rebuild(ProbeRecord, fields)
    assert sorted(records) == ["probe-twins_pairs-tfidf", "probe-twins_pairs-tfidf_cosine"]
    probe = records["probe-twins_pairs-tfidf"]
    assert (probe.n_train, probe.n_valid, probe.n_test, probe.n_classes) == (32, 16, 16, 2)
    assert probe.settings["split"] == "document"
    assert probe.metrics["accuracy"] == 1 - len(probe.wrong) / 16
    assert "| twins_pairs (16) | tfidf |" in done.output


def test_an_encoder_is_probed_on_a_small_part(folder: Path, tmp_path: Path, bert_folder: Path) -> None:
    options = ["--encoder", str(bert_folder), "--quick", "--most", "4", "--work", str(tmp_path / "work")]
    done = CliRunner().invoke(main, [str(folder), *options], catch_exceptions=False)
    rows = [line.split(" | ")[:2] for line in done.stdout.splitlines() if line.startswith("| twins")]
    systems = ["document, bert", "document_cosine, bert", "tfidf", "tfidf_cosine"]
    assert rows == [["| twins_pairs (8, first 300 words, quick)", system] for system in systems]


def test_a_corpus_without_pairs_is_one_line(folder: Path) -> None:
    (folder / "splits.json").write_text(json.dumps({"test": ["a1"]}))
    done = CliRunner().invoke(main, [str(folder), "--systems", "tfidf"])
    assert done.exit_code == 1
    assert "dataset twins: splits.json names no queries of valid" in done.stderr
