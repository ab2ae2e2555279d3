from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchmarks.formats.lines import FormatError
from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.sources import read_pair_file
from benchmarks.pairs.splitting import Split

DOC_IDS = [f"d{number}" for number in range(40)]


def written(folder: Path, text: str) -> Path:
    (folder / "pairs.tsv").write_text(text)
    return folder / "pairs.tsv"


def test_pairs_and_their_splits_are_read_in_any_order_of_columns(tmp_path: Path) -> None:
    given = read_pair_file(written(tmp_path, "label\tid1\tsplit\tid2\n1\ta\ttrain\tb\n0\tc\ttest\ta\n"), "abc")
    assert given.pairs == [Pair("a", "b", True), Pair("c", "a", False)]
    assert given.splits == [Split.TRAIN, Split.TEST]
    assert given.place == str(tmp_path / "pairs.tsv")


def test_splits_may_be_missing_and_the_file_packed(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress("\ufeffid1\tid2\tlabel\r\nd1\td2\t1\r\n\r\n".encode()))
    given = read_pair_file(path, DOC_IDS)
    assert (given.pairs, given.splits) == ([Pair("d1", "d2", True)], [None])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id1\tid2\nd1\td2\n", "pairs.tsv lacks the column label; its lines must be: id1 <tab> id2 <tab> label"),
        ("id1\tid2\tlabel\nd1\td2\n", "pairs.tsv:2 has 2 columns, not 3; it must be id1, id2, label by tabs"),
        ("id1\tid2\tlabel\nd1\td2\tyes\n", "pairs.tsv:2 has the ids 'd1', 'd2' and the label 'yes'; it must be"),
        ("id1\tid2\tlabel\nd1\td1\t1\n", "pairs.tsv:2 has the ids 'd1', 'd1'"),
        ("id1\tid2\tlabel\nd1\tx\t1\n", "pairs.tsv:2 names 'x', which is none of 40 documents of the corpus; add it"),
        ("id1\tid2\tlabel\nd1\td2\t1\nd2\td1\t0\n", "pairs.tsv:3 has the pair d2, d1 that stands in .*pairs.tsv:2, in"),
        ("id1\tid2\tlabel\tsplit\nd1\td2\t1\tdev\n", "the split 'dev'; it must be one of test, valid, train"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        read_pair_file(written(tmp_path, text), DOC_IDS)


def test_what_is_no_text_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "latin.tsv").write_bytes("id1\tid2\tlabel\nä\tb\t1\n".encode("latin-1"))
    with pytest.raises(FormatError, match=r"latin.tsv:2 is not UTF-8"):
        read_pair_file(tmp_path / "latin.tsv", DOC_IDS)
    with pytest.raises(FormatError, match="cannot be read"):
        read_pair_file(tmp_path, DOC_IDS)
