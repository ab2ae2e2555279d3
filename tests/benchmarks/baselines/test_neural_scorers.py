from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.baselines.neural_scorers import NEURAL_SCORERS, Given, neural_scorer
from benchmarks.pairs.scorer import Budget, Fit
from engine.encoders.backbone.weights import weights_sha256
from engine.errors import TrainingError
from tests.benchmarks.baselines.pair_cases import topical_documents, topical_pairs


@pytest.mark.parametrize("name", NEURAL_SCORERS)
def test_a_baseline_has_its_name_and_states_the_sizes_of_its_paper(name: str) -> None:
    scorer = neural_scorer(name)
    assert scorer.name == name
    lengths = {"arc-i": 2048, "han": 2048, "smash": 2048, "re2": 999}
    tokens = {"matchbert": 256, "s-bert-512": 512, "s-longformer": 4096, "s-bigbird": 4096}
    assert scorer.settings.get("max_words") == lengths.get(name)
    assert scorer.settings.get("max_tokens") == tokens.get(name)


@pytest.mark.parametrize("name", [name for name in NEURAL_SCORERS if "bert" not in name])
def test_a_small_one_scores_pairs_and_says_that_it_is_small(name: str) -> None:
    scorer, pairs = neural_scorer(name, is_small=True), topical_pairs()
    assert scorer.settings["is_small"] is True
    assert "is_small" not in neural_scorer(name).settings
    scorer.fit(Fit(topical_documents(), pairs, pairs[:4], Budget(1, 4, 60.0), 0))
    assert np.isfinite(scorer.score(pairs[:6])).sum() == 6


def test_given_weights_are_used(bert_folder: Path, tmp_path: Path) -> None:
    pairs = topical_pairs()
    scorer = neural_scorer("matchbert", given=Given(bert=str(bert_folder), device="cpu"), is_small=True)
    scorer.fit(Fit(topical_documents(), pairs, [], Budget(1, 4, 60.0), 0))
    assert scorer.encoder == f"{bert_folder.name}@{weights_sha256(bert_folder)[:12]}"
    file = tmp_path / "glove.txt"
    file.write_text("one 1 2 3\ntwo 3 2 1\n")
    han = neural_scorer("han", given=Given(word_vectors=file), is_small=True)
    han.fit(Fit(topical_documents(), pairs, [], Budget(1, 4, 60.0), 0))
    assert str(han.settings["words_word_vectors"]).startswith("glove.txt@")


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(TrainingError, match="there is no baseline 'cgnet'; take one of dssm, arc-i, han, smash, re2"):
        neural_scorer("cgnet")
