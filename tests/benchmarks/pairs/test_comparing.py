from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.pair_scorer import Fit
from benchmarks.pairs.comparing import Comparer, Comparison, GivenScorer, Shelf, mean_best_match
from engine.encoders.encoder import unit
from engine.encoders.loading import load_encoder
from engine.encoders.mean import MeanEncoder
from engine.errors import EncoderError
from tests.benchmarks.pairs.pair_cases import BUDGET, TEST, TRAIN, VALID, texts
from tests.encoders.tiny import tiny_tde


def test_mean_best_match_equals_the_equation() -> None:
    rng = np.random.default_rng(0)
    first, second = (unit(rng.standard_normal((n, 6)).astype(np.float32)) for n in (4, 5))
    weights = rng.random(4) + 0.5
    best = [max(float(one @ other) for other in second) for one in first]
    expected = sum(weight * value for weight, value in zip(weights, best, strict=True)) / weights.sum()
    assert mean_best_match(first, weights, second) == pytest.approx(expected, abs=1e-6)


def test_a_pair_head_scores_by_its_match_probability(bert_folder: Path) -> None:
    encoder, documents = tiny_tde(bert_folder), list(texts().values())[:2]
    comparer = Comparer(encoder, Comparison.HEAD)
    one, other = encoder.encode(documents)
    expected = encoder.match_probability(one.document, other.document)
    assert comparer.score(comparer.side(one), comparer.side(other)) == pytest.approx(float(expected))


def test_an_encoder_without_a_pair_head_is_refused(mean_encoder: MeanEncoder) -> None:
    with pytest.raises(EncoderError, match="has no pair head, a TDE has; compare by cosine or by maxsim"):
        Comparer(mean_encoder, Comparison.HEAD)


def fitted(folder: Path, comparison: Comparison, work: Path, lines: list[str] | None = None) -> GivenScorer:
    log = (lines if lines is not None else []).append
    scorer = GivenScorer(str(folder), comparison, Shelf(work, "made@0a"), device="cpu", log=log)
    scorer.fit(Fit(texts(), TRAIN, VALID, BUDGET, 0))
    return scorer


@pytest.mark.slow
def test_documents_are_compared_by_their_cosine(bert_folder: Path, tmp_path: Path) -> None:
    encoder, documents = load_encoder(str(bert_folder), device="cpu"), texts()
    expected = []
    for pair in TEST:
        one, other = encoder.encode([documents[pair.first], documents[pair.second]])
        expected.append(float(one.document @ other.document))
    np.testing.assert_allclose(fitted(bert_folder, Comparison.COSINE, tmp_path).score(TEST), expected, atol=2e-3)


def test_documents_are_compared_by_their_best_chunks(bert_folder: Path, tmp_path: Path) -> None:
    encoder, documents = load_encoder(str(bert_folder), device="cpu"), texts()
    expected = []
    for pair in TEST:
        one, other = encoder.encode([documents[pair.first], documents[pair.second]])
        best = [max(float(row @ column) for column in other.chunks) for row in one.chunks]
        weights = [chunk.n_tokens**0.5 for chunk in one.chunk_spans]
        expected.append(float(np.average(best, weights=weights)))
    np.testing.assert_allclose(fitted(bert_folder, Comparison.MAXSIM, tmp_path).score(TEST), expected, atol=2e-3)


@pytest.mark.slow
def test_documents_that_one_scorer_encoded_are_not_encoded_again(bert_folder: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    first = fitted(bert_folder, Comparison.COSINE, tmp_path, lines)
    n_first = len(lines)
    assert n_first > 0
    again = fitted(bert_folder, Comparison.COSINE, tmp_path, lines)
    fitted(bert_folder, Comparison.MAXSIM, tmp_path, lines)
    assert not any("48 documents" not in line or " 0 tokens" not in line for line in lines[n_first:])
    np.testing.assert_array_equal(first.score(TEST), again.score(TEST))
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["{}", "{}:sbert-first"])
def test_scorer_and_index_are_named_after_the_encoder_and_its_weights(
    bert_folder: Path, tmp_path: Path, asked: str
) -> None:
    scorer = GivenScorer(asked.format(bert_folder), Comparison.COSINE, Shelf(tmp_path, "made@0a"), device="cpu")
    scorer.fit(Fit(texts(), TRAIN, VALID, BUDGET, 0))
    (index,) = tmp_path.iterdir()
    assert index.name == f"made@0a-{scorer.encoder}.lm"
    assert scorer.encoder.startswith("bert")
    assert (scorer.name, scorer.settings, scorer.course) == ("cosine", {"comparison": "cosine"}, None)
