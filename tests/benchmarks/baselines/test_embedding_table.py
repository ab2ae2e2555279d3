from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.baselines.embedding_table import WordConfig, make_word_table
from benchmarks.baselines.word_inputs import PADDING, UNKNOWN
from benchmarks.datasets import DatasetError
from tests.benchmarks.baselines.pair_cases import TINY_WORDS, topical_documents
from tests.fakes import make_document

CORPUS = [make_document("a", "Cat cat dog dog bird"), make_document("b", "cat dog bird fish")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text("cat 1 2 3\ndog 3 4 5\nlion 9 9 9\n")
    return path


def table(path: Path, *, min_count: int = 1, tuned: bool = True) -> torch.nn.Embedding:
    config = WordConfig(vectors=path, min_count=min_count, tuned=tuned)
    return make_word_table(CORPUS, config, seed=0, seconds=60.0).embedding


def test_a_file_gives_the_vectors_of_its_words(file: Path) -> None:
    made = make_word_table(CORPUS, WordConfig(vectors=file, min_count=2), seed=0, seconds=60.0)
    assert dict(made.vocabulary.ids) == {"cat": 2, "dog": 3, "bird": 4}
    rows = made.embedding.weight.detach()
    assert rows[[PADDING, UNKNOWN, 2, 3]].tolist() == [[0, 0, 0], [2, 3, 4], [1, 2, 3], [3, 4, 5]]
    assert rows[4].abs().min() > 0  # drawn
    assert torch.equal(table(file, min_count=2).weight, rows)


def test_drawn_vectors_have_the_spread_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "wide.txt"
    rng = np.random.default_rng(0)
    path.write_text("cat " + " ".join(f"{number:.4f}" for number in rng.normal(0, 0.3, 3000)) + "\n")
    assert table(path).weight[3].std().item() == pytest.approx(0.3, rel=0.05)


def test_vectors_of_another_language_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("katze 1 2\nhund 3 4\n")
    with pytest.raises(DatasetError, match="of which none is among the 4 wanted"):
        table(path)


def test_word2vec_brings_words_of_a_topic_together_the_same_way_each_time() -> None:
    documents = list(topical_documents(12).values())
    config = replace(TINY_WORDS, epochs=30)
    made, again, other = (make_word_table(documents, config, seed=seed, seconds=60.0) for seed in (0, 0, 1))
    assert torch.equal(made.embedding.weight, again.embedding.weight)
    assert not torch.equal(made.embedding.weight, other.embedding.weight)
    rows = torch.nn.functional.normalize(made.embedding.weight.detach(), dim=-1)
    a, b = ([made.vocabulary.ids[letter] for letter in letters] for letters in ("bcde", "fghi"))
    assert (rows[a] @ rows[a].T).mean() > (rows[a] @ rows[b].T).mean()


def test_of_a_large_corpus_word2vec_reads_a_share_and_all_words_are_numbered() -> None:
    documents = list(topical_documents(4).values())
    made = make_word_table(documents, replace(TINY_WORDS, most_words=40), seed=0, seconds=60.0)
    whole = make_word_table(documents, TINY_WORDS, seed=0, seconds=60.0)
    assert made.vocabulary.ids == whole.vocabulary.ids
    assert made.embedding.weight.shape == whole.embedding.weight.shape


def test_vectors_are_tuned_only_where_asked(file: Path) -> None:
    assert table(file).weight.requires_grad
    assert not table(file, tuned=False).weight.requires_grad
