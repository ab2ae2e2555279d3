from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.formats.lines import FormatError
from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.sources import read_published
from benchmarks.pairs.splitting import Split
from tests.benchmarks.pairs.published_sets import write_aan, write_gwikimatch


def test_pairs_of_aan_hold_their_texts_and_splits(tmp_path: Path) -> None:
    read = read_published(write_aan(tmp_path / "tsv"), tmp_path / "nothing")
    assert Counter(read.given.splits) == {Split.TRAIN: 8, Split.VALID: 8, Split.TEST: 8}
    assert read.given.pairs[:2] == [Pair("P000", "P001", True), Pair("P001", "P002", False)]
    assert len(read.documents) == 27
    assert read.documents["P100"].text == "parsing trees grammar\nparsing trees grammar paper 0"
    assert read.n_lost == dict.fromkeys(Split, 1)
    assert [path.name.split(".")[1] for path in read.files] == ["train", "eval", "test"]


def test_pairs_of_gwikimatch_have_their_texts_from_a_file(tmp_path: Path) -> None:
    texts = tmp_path / "articles.jsonl"
    folder = write_gwikimatch(tmp_path / "tsv", texts, missing=["eval_A1"])
    read = read_published(folder, texts)
    assert Counter(read.given.splits) == {Split.TRAIN: 6, Split.VALID: 4, Split.TEST: 6}
    assert read.n_lost == {Split.TRAIN: 0, Split.VALID: 2, Split.TEST: 0}
    assert read.given.pairs[0] == Pair("Train A0", "Train A1", True)
    assert read.documents["Train A0"].text.strip() == "about train_A0"
    assert read.files[0] == texts


def test_a_folder_of_something_else_is_told(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"holds neither new_aan_pairs.train.tsv.* nor the files of GWikiMatch; name"):
        read_published(tmp_path, tmp_path)
    folder = write_gwikimatch(tmp_path / "tsv", tmp_path / "articles.jsonl")
    with pytest.raises(FormatError, match="absent is no file, and GWikiMatch holds no texts; name the file of its art"):
        read_published(folder, tmp_path / "absent")
