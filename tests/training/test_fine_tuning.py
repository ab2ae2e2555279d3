"""Fine-tuning: batches, the losses over both sides, and their gradients."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.encoders.trainable import MeanEncoder
from engine.errors import TrainingError
from engine.training.corpus import TrainingCorpus, read_training_corpus
from engine.training.fine_tuning import (
    DEFAULT_LOSSES,
    LOSSES,
    FineTuning,
    FineTuningSettings,
    Loss,
    Source,
    Towers,
)
from engine.training.losses import ScaledCosine
from engine.training.selection import PairBatch, RandomRuns
from engine.training.trainer import Validation
from tests.fakes import make_corpus, make_document
from tests.training.made import (
    EXCLUDED,
    POSITIVES,
    embedded_batch,
    pairs_of_texts,
    plain_encoder,
    training_corpus,
    write_corpus,
)

DOCUMENTS = make_corpus(40)
IDS = [document.doc_id for document in DOCUMENTS]
SMALL = FineTuningSettings(queries=6, negatives=2)


class NextDocuments:
    """The next documents by number as negatives, so that a test knows them; without related and held-out ones."""

    def __init__(self, corpus: TrainingCorpus) -> None:
        self.corpus = corpus

    def __call__(self, query_id: str) -> Sequence[str]:
        following = [IDS[(IDS.index(query_id) + step) % len(IDS)] for step in (1, 2, 3)]
        barred = {*self.corpus.related[query_id], *self.corpus.held_out}
        return [doc_id for doc_id in following if doc_id not in barred]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> TrainingCorpus:
    """Pairs of a topic, three a query; every query of valid and test is a target of some pair in the files."""
    related = {query: {IDS[(at + 10 * far) % 40]: 1 for far in (1, 2, 3)} for at, query in enumerate(IDS)}
    pairs = {query: dict(list(found.items())[:2]) for query, found in related.items()}
    splits = {"train": IDS[8:], "valid": IDS[:4], "test": IDS[4:8]}
    folder = tmp_path_factory.mktemp("corpus") / "papers"
    return read_training_corpus(write_corpus(folder, DOCUMENTS, pairs=pairs, qrels=related, splits=splits))


def make_fine_tuning(
    encoder: MeanEncoder, corpus: TrainingCorpus, settings: FineTuningSettings = SMALL, seed: int = 0
) -> FineTuning:
    return FineTuning(encoder, [Source(corpus, RandomRuns(2, 2), NextDocuments(corpus))], settings, seed=seed)


def ids(batch: PairBatch) -> tuple[list[str], list[str]]:
    queries, targets = ([one.document.doc_id for one in side] for side in (batch.queries, batch.targets))
    return queries, targets


def test_queries_of_a_batch_are_distinct_and_have_targets(mean_encoder: MeanEncoder, corpus: TrainingCorpus) -> None:
    for step in range(20):
        queries, targets = ids(make_fine_tuning(mean_encoder, corpus).batch(step).pairs)
        assert len(set(queries)) == len(queries) == 6
        assert len(set(targets)) == len(targets) <= 6 + 6 * 2
        assert all(set(corpus.pairs[query]) & set(targets) for query in queries)


def test_relations_of_a_batch_are_those_of_the_corpus(mean_encoder: MeanEncoder, corpus: TrainingCorpus) -> None:
    n_excluded = n_self = 0
    for step in range(20):
        batch = make_fine_tuning(mean_encoder, corpus).batch(step).pairs
        queries, targets = ids(batch)
        for row, query in enumerate(queries):
            for column, target in enumerate(targets):
                is_pair = target in corpus.pairs[query]
                is_excluded = not is_pair and (target == query or target in corpus.related[query])
                assert (batch.positives[row, column], batch.excluded[row, column]) == (is_pair, is_excluded)
                n_excluded += is_excluded
                n_self += target == query
    assert n_excluded > n_self > 0


def test_documents_without_a_token_are_left_out_of_batches(mean_encoder: MeanEncoder) -> None:
    class Strict(NextDocuments):
        def __call__(self, query_id: str) -> Sequence[str]:
            assert query_id != "void"  # no index holds it
            return ["void", "doc030"]

    documents = [*DOCUMENTS[:3], make_document("void", "  "), DOCUMENTS[30]]
    pairs = {"doc000": {"doc001": 1, "void": 1}, "doc002": {"void": 1}, "void": {"doc000": 1, "doc001": 1}}
    corpus = training_corpus(documents, pairs)
    task = FineTuning(mean_encoder, [Source(corpus, RandomRuns(2, 2), Strict(corpus))], SMALL)
    drawn = [ids(task.batch(step).pairs) for step in range(10)]
    assert {query for queries, _ in drawn for query in queries} == {"doc000", "doc002"}
    assert {target for _, targets in drawn for target in targets} == {"doc001", "doc030"}
    losses = [task.backward(task.batch(step), Tensor.backward)["loss"] for step in range(10)]
    assert np.isfinite(losses).all()


def test_a_batch_without_a_readable_document_is_refused(mean_encoder: MeanEncoder) -> None:
    documents = [make_document("one", " "), make_document("other", "  ")]
    corpus = training_corpus(documents, {"one": {"other": 1}, "other": {"one": 1}})
    with pytest.raises(TrainingError) as raised:
        FineTuning(mean_encoder, [Source(corpus, RandomRuns(2, 2))], SMALL).batch(0)
    assert str(raised.value) == (
        "a whole batch of corpus made has no token that the encoder can read; name an encoder of its language, or take "
        "the documents without text out of its pairs"
    )


def test_corpora_are_drawn_in_proportion_to_the_root_of_their_number_of_pairs(mean_encoder: MeanEncoder) -> None:
    large = training_corpus(DOCUMENTS, {one: {other: 1 for other in IDS[:9] if other != one} for one in IDS[:9]})
    small = training_corpus(DOCUMENTS, {one: dict.fromkeys(IDS[9:13], 1) for one in IDS[:2]})
    assert (large.n_pairs, small.n_pairs) == (72, 8)
    task = FineTuning(mean_encoder, [Source(one, RandomRuns(1, 1)) for one in (large, small)], SMALL)
    found = Counter(task.batch(step).source for step in range(400))
    assert found[0] / 400 == pytest.approx(3 / 4, abs=0.06)


def test_the_loss_is_the_weighted_sum_of_its_parts(bert_folder: Path, corpus: TrainingCorpus) -> None:
    task = make_fine_tuning(plain_encoder(bert_folder), corpus)
    batch = task.batch(0)
    parts = task.backward(batch, Tensor.backward)
    documents = (*batch.pairs.queries, *batch.pairs.targets)
    assert task.n_tokens(batch) == sum(len(ids) for document in documents for ids in document.token_ids)
    assert parts.keys() == {"loss", *DEFAULT_LOSSES}
    expected = sum(weight * parts[name] for name, weight in DEFAULT_LOSSES.items())
    assert parts["loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "steps"), [(one, 80 if one is Loss.BCE else 30) for one in Loss])
def test_training_on_each_loss_alone_halves_it_and_improves_ndcg(bert_folder: Path, loss: Loss, steps: int) -> None:
    pairs = {f"q{number}": {f"t{number}": 1} for number in range(32)}
    corpus = training_corpus(pairs_of_texts(32), pairs, valid=pairs)
    encoder = plain_encoder(bert_folder)
    task = FineTuning(
        encoder,
        [Source(corpus, RandomRuns(6, 6))],
        FineTuningSettings({loss: 1.0}, queries=32, negatives=0),
    )
    validation = Validation(corpus, encoder)
    before = validation.ndcg()
    optimizer = torch.optim.Adam(task.module.parameters(), lr=2e-3)
    task.module.train()
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        losses.append(task.backward(task.batch(step), Tensor.backward)[loss])
        optimizer.step()
    assert losses[-1] < losses[0] / 2
    assert validation.ndcg() > before + 0.1


def test_a_corpus_of_too_few_pairs_is_refused(mean_encoder: MeanEncoder) -> None:
    corpus = training_corpus(DOCUMENTS, {"doc001": {"doc002": 1}})
    with pytest.raises(TrainingError) as raised:
        make_fine_tuning(mean_encoder, corpus)
    assert str(raised.value) == (
        "corpus made has 1 queries with pairs, fine-tuning needs at least 2; give it train_pairs.tsv, or pretrain on "
        "its documents alone"
    )


TAU, THRESHOLD_RANK = 0.2, 2

SETTINGS = FineTuningSettings(temperature=TAU)


@pytest.fixture
def towers() -> Towers:
    return Towers.of(*embedded_batch(), ScaledCosine())


def sims(towers: Towers, row: int, column: int) -> list[float]:
    """s_i(t) of each real query chunk."""
    targets = towers.target_chunks[column][towers.target_mask[column]]
    queries = towers.query_chunks[row][towers.weights[row] > 0]
    return [max(float(query @ target) for target in targets) for query in queries]


def maxsim(towers: Towers, row: int, column: int) -> float:
    weights = [float(weight) for weight in towers.weights[row] if weight > 0]
    return sum(w * s for w, s in zip(weights, sims(towers, row, column), strict=True)) / sum(weights)


def cosine(towers: Towers, row: int, column: int) -> float:
    return float(towers.query_documents[row] @ towers.target_documents[column])


def ranked(scores: Callable[[int, int], float], tau: float) -> float:
    """The ranking loss, positive by positive."""
    losses = []
    for row, column in POSITIVES.nonzero().tolist():
        negatives = [at for at in range(6) if not POSITIVES[row, at] and not EXCLUDED[row, at]]
        exps = [math.exp(scores(row, at) / tau) for at in (column, *negatives)]
        losses.append(-math.log(exps[0] / sum(exps)))
    return sum(losses) / len(losses)


def test_maxsim_ranks_by_the_mean_best_match_and_document_by_cosines(towers: Towers) -> None:
    expected = ranked(lambda row, column: maxsim(towers, row, column), TAU)
    assert LOSSES[Loss.MAXSIM](towers, SETTINGS).item() == pytest.approx(expected, abs=1e-5)
    expected = ranked(lambda row, column: cosine(towers, row, column), TAU)
    assert LOSSES[Loss.DOCUMENT](towers, SETTINGS).item() == pytest.approx(expected, abs=1e-5)


def test_bce_is_the_mean_over_pairs_balanced_where_there_are_positives(towers: Towers) -> None:
    losses: dict[bool, list[float]] = {True: [], False: []}
    for row, column in (~EXCLUDED).nonzero().tolist():
        probability = 1 / (1 + math.exp(-6 * cosine(towers, row, column)))
        is_positive = bool(POSITIVES[row, column])
        losses[is_positive].append(-math.log(probability if is_positive else 1 - probability))
    assert [len(own) for own in losses.values()] == [4, 10]
    expected = sum(sum(own) / len(own) for own in losses.values()) / 2
    assert LOSSES[Loss.BCE](towers, SETTINGS).item() == pytest.approx(expected, abs=1e-5)
    negatives = replace(towers, positives=torch.zeros_like(POSITIVES))
    cosines = [cosine(towers, row, column) for row, column in (~EXCLUDED).nonzero().tolist()]
    expected = sum(math.log(1 + math.exp(6 * own)) for own in cosines) / len(cosines)
    assert LOSSES[Loss.BCE](negatives, SETTINGS).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_excluded_target_has_no_gradient_and_the_others_have(towers: Towers, loss: Loss) -> None:
    documents = towers.target_documents.clone().requires_grad_()
    chunks = towers.target_chunks.clone().requires_grad_()
    LOSSES[loss](replace(towers, target_documents=documents, target_chunks=chunks), SETTINGS).backward()
    gradients = [leaf.grad for leaf in (documents, chunks) if leaf.grad is not None]
    assert gradients
    for gradient in gradients:
        assert not gradient[5].any()
        assert gradient[0].any() and gradient[4].any()


def test_queries_and_targets_keep_the_vectors_of_the_batch_and_their_own_padding() -> None:
    embedded, batch = embedded_batch()
    towers = Towers.of(embedded, batch, ScaledCosine())
    assert torch.equal(towers.query_chunks, embedded.chunks[:3])
    assert torch.equal(towers.target_chunks, embedded.chunks[3:]) and torch.equal(towers.target_mask, embedded.mask[3:])
    assert torch.equal(towers.positives, POSITIVES) and torch.equal(towers.excluded, EXCLUDED)
    torch.testing.assert_close(towers.weights, torch.tensor([[2.0, 3, 1], [2, 3, 0], [2, 3, 1]]))
    torch.testing.assert_close(towers.cosines(), embedded.documents[:3] @ embedded.documents[3:].T)
    one_query = replace(batch, queries=batch.queries[1:2])
    towers = Towers.of(embedded, one_query, ScaledCosine())
    assert (towers.query_chunks.shape[1], towers.target_chunks.shape[1]) == (2, 3)
