from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.baselines.dssm import DssmConfig, dssm
from benchmarks.baselines.trained_scorer import settings_of
from benchmarks.pairs.scorer import Budget, Course, Fit, Pair
from engine.errors import TrainingError
from tests.benchmarks.baselines.pair_cases import OVERFITTING, fitted, topical_documents, topical_pairs

SMALL = DssmConfig((16, 8), 500, 1)


def test_the_same_seed_gives_the_same_scores_and_leaves_torchs_random_numbers_alone() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first, again, other = (fitted(dssm(SMALL, OVERFITTING), steps=5, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    pairs = topical_pairs()
    np.testing.assert_array_equal(first.score(pairs), again.score(pairs))
    assert not np.allclose(first.score(pairs), other.score(pairs))


def test_labels_are_not_looked_at_when_scoring() -> None:
    scorer, pairs = fitted(dssm(SMALL, OVERFITTING), steps=3), topical_pairs()
    swapped = [Pair(pair.first, pair.second, not pair.is_match) for pair in pairs]
    np.testing.assert_array_equal(scorer.score(pairs), scorer.score(swapped))


def test_settings_tell_model_training_and_what_came_of_it() -> None:
    scorer = fitted(dssm(SMALL, OVERFITTING), steps=3)
    told = {"widths": "16 8", "max_trigrams": 500, "learning_rate": 1e-2, "selection_pairs": 200}
    assert told.items() <= scorer.settings.items()
    assert (scorer.course, scorer.encoder) == (Course(3, 3, None), "")
    n_trigrams = (scorer.settings["n_parameters"] - 16 - (16 * 8 + 8) - 2) / 16  # type: ignore[operator]
    assert n_trigrams == int(n_trigrams) > 0


def test_words_are_learned_from_documents_of_train_alone() -> None:
    documents, pairs = topical_documents(), topical_pairs()
    train = pairs[:16]
    named = {doc_id for pair in train for doc_id in (pair.first, pair.second)}
    scorers = [dssm(SMALL, OVERFITTING) for _ in range(2)]
    given = (documents, {doc_id: documents[doc_id] for doc_id in documents if doc_id in named})
    for scorer, texts in zip(scorers, given, strict=True):
        scorer.fit(Fit(texts, train, [], Budget(2, 16, 60.0), 0))
    assert len(given[1]) < len(documents)
    np.testing.assert_array_equal(*(scorer.score(train) for scorer in scorers))


def test_a_device_that_is_not_there_is_told() -> None:
    scorer = dssm(SMALL, OVERFITTING, device="cuda:63")
    with pytest.raises(TrainingError, match=r"device 'cuda:63' cannot be used .*; take another, as cpu"):
        scorer.fit(Fit(topical_documents(), topical_pairs(), [], Budget(1, 8, 60.0), 0))


def test_a_document_that_was_not_read_for_training_can_be_scored() -> None:
    documents, pairs = topical_documents(), topical_pairs()
    scorer = dssm(SMALL, OVERFITTING)
    scorer.fit(Fit(documents, pairs[:16], [], Budget(2, 16, 60.0), 0))
    assert scorer.score(pairs).shape == (32,)
    assert scorer.score([]).shape == (0,)


def test_scoring_before_fitting_says_what_to_do() -> None:
    with pytest.raises(TrainingError, match="dssm has learned from no pairs yet; call fit before score"):
        dssm().score(topical_pairs())


def test_a_pair_of_a_document_that_is_not_there_is_told() -> None:
    scorer = fitted(dssm(SMALL, OVERFITTING), steps=1)
    with pytest.raises(TrainingError, match="document 'nobody', which is none of the 32 given"):
        scorer.score([Pair("t0d0", "nobody", True)])


def test_settings_hold_no_folder_of_a_machine(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Inner:
        vectors: Path | None
        width: int = 3

    @dataclass(frozen=True)
    class Outer:
        words: Inner
        other: Inner

    file = tmp_path / "glove.txt"
    file.write_text("a 1 2\n")
    settings = settings_of(Outer(Inner(file), Inner(None)))
    assert settings.pop("words_word_vectors") == f"glove.txt@{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
    assert settings == {"words_width": 3, "other_vectors": "", "other_width": 3}
