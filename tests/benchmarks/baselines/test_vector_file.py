from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from benchmarks.baselines.vector_file import read_vectors
from benchmarks.datasets import DatasetError
from tests.benchmarks.baselines.small_words import WORDS, known_words, write_vectors


@pytest.mark.parametrize("header", [True, False], ids=["word2vec", "GloVe"])
def test_wanted_words_are_read_with_their_place_in_the_file(tmp_path: Path, header: bool) -> None:
    written = known_words(9, 5)
    read = read_vectors(write_vectors(tmp_path / "vectors.txt", written, header=header), {WORDS[7], WORDS[4], "absent"})
    assert dict(read.row) == {WORDS[4]: 0, WORDS[7]: 1}
    assert read.ranks.tolist() == [4, 7]
    np.testing.assert_allclose(read.vectors, written.vectors[[4, 7]], rtol=1e-6)


def test_a_gzipped_file_is_read_as_well(tmp_path: Path) -> None:
    plain = write_vectors(tmp_path / "vectors.txt", known_words(3, 4), header=False)
    packed = tmp_path / "vectors.txt.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    np.testing.assert_array_equal(read_vectors(packed, WORDS).vectors, read_vectors(plain, WORDS).vectors)


def test_a_word_may_hold_spaces_and_the_first_of_two_counts(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("cat 1 2 3\n. . . 4 5 6 \ncat 7 8 9\n")
    read = read_vectors(tmp_path / "vectors.txt", {"cat", ". . ."})
    assert dict(read.row) == {"cat": 0, ". . .": 1}
    np.testing.assert_array_equal(read.vectors, np.array([[1, 2, 3], [4, 5, 6]], np.float32))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("cat 1 2\ndog 1\n", "near word 1: the next line holds 1 numbers, the first 2;"),
        ("2 3\ncat a b c\n", "near word 1: could not convert string to float"),
        ("cat\n", "near word 0: the next line holds 0 numbers, the first 0;"),
    ],
    ids=["ragged", "letters", "no numbers"],
)
def test_a_line_that_does_not_fit_is_told(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "vectors.txt").write_text(content)
    with pytest.raises(DatasetError, match=rf"vectors\.txt cannot be read as word vectors, {told}"):
        read_vectors(tmp_path / "vectors.txt", {"cat"})


@pytest.mark.parametrize(("content", "n_words"), [("", 0), ("cow 1 2\nhen 3 4\n", 2)], ids=["empty", "other words"])
def test_a_file_of_no_use_is_told(tmp_path: Path, content: str, n_words: int) -> None:
    (tmp_path / "vectors.txt").write_text(content)
    with pytest.raises(DatasetError, match=f"has vectors of {n_words} words, of which none is among the 1 wanted"):
        read_vectors(tmp_path / "vectors.txt", {"cat"})
