from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.datasets import open_dataset, read_documents
from benchmarks.planted import main, measure
from benchmarks.sections.hosts import choose_adoptions
from benchmarks.sections.planting import Form
from tests.benchmarks.sections.corpora import write_long
from tests.fakes import FakeEncoder


@pytest.fixture
def long_folder(tmp_path: Path) -> Path:
    return write_long(tmp_path / "long")


def test_copies_are_found_and_named_by_an_encoder_that_sees_words(long_folder: Path) -> None:
    documents = list(read_documents(open_dataset(str(long_folder))))
    adoptions = choose_adoptions(documents, 1, seed=0)
    columns = measure(documents, adoptions, FakeEncoder(), Form.SECTION, seed=0, log=lambda _: None)
    assert {len(column) for column in columns.values()} == {3 * 5 * 3}
    is_copy = np.array([damage == "copy" for damage in columns["damage"]])
    assert set(np.array(columns["rank"])[is_copy].tolist()) == {1}
    assert np.array(columns["is_first"])[is_copy].all() and np.min(np.array(columns["iou"])[is_copy]) > 0.8
    assert min(columns["rank_before"]) > 1
    assert columns["host"][:3] == [adoption.host for adoption in adoptions]


def test_the_command_writes_a_record_and_its_plots(long_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out"), "--plot-out", str(tmp_path / "plots")]
    given = [str(long_folder), "--encoder", str(bert_folder), "--quick", "--form", "passage", *out]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    assert "| long (3), quick | bert | position: middle |" in done.output
    record = json.loads((tmp_path / "out" / "planted-long-bert-passage-24documents-quick.json").read_text())
    assert (record["kind"], record["is_quick"], record["n_pairs"]) == ("planted", True, 3)
    assert (record["n_documents"], record["settings"]["hosts"]) == (24, 1)
    assert len(list((tmp_path / "plots").iterdir())) == 6


def test_a_corpus_that_is_too_small_is_one_line(folder: Path) -> None:
    said = CliRunner().invoke(main, [str(folder), "--hosts", "2"]).stderr.splitlines()[-1]
    assert said.startswith("Error: 6 plantings need 6 queries with a section to plant and 6 hosts of two sections")
