"""Contrastive training of sections: relations, batches, losses against loops, and that a small model learns."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.encoders.colde import ColdeConfig, ColdeEncoder
from engine.encoders.encoder import SegmentedDocument
from engine.errors import TrainingError
from engine.training.pair_tasks import Classes, ContrastBatch, ContrastSettings, PairGraph, Relation, SectionContrast
from tests.fakes import make_document
from tests.training.made import WORDS, supervised_contrastive_by_hand

CONFIG = ColdeConfig(chunk_tokens=12, lstm_width=16, projection_width=24, dropout=0.0)


def random_documents(encoder: ColdeEncoder, n_documents: int, *, n_words: int = 30) -> list[SegmentedDocument]:
    """Documents of random words in two headed sections; all are about equally similar."""
    rng = np.random.default_rng(0)
    bodies = [[" ".join(rng.choice(WORDS, n_words)) for _ in range(2)] for _ in range(n_documents)]
    return [
        encoder.segment(make_document(f"d{number}", [("one", first), ("two", second)]))
        for number, (first, second) in enumerate(bodies)
    ]


def make_contrast(
    folder: Path, relation: Relation, settings: ContrastSettings, config: ColdeConfig = CONFIG, *, n_documents: int = 6
) -> SectionContrast:
    encoder = ColdeEncoder.create(folder, config, device="cpu", dtype=torch.float32)
    return SectionContrast(encoder, random_documents(encoder, n_documents), relation, settings)


PAIRS = [(0, 1), (1, 2), (3, 4), (4, 0)]


def hops(pairs: Sequence[tuple[int, int]], one: int, other: int) -> int:
    """Edges on the shortest path, up to 3."""
    reached = {one}
    for length in range(3):
        if other in reached:
            return length
        reached |= {b for pair in pairs for a, b in (pair, pair[::-1]) if a in reached}
    return 3


def test_a_graph_counts_hops_also_through_documents_outside_of_the_batch() -> None:
    documents = [5, 0, 3, 2, 1, 4]
    positives, open_pairs = PairGraph(6, PAIRS).relate(documents)
    for i, one in enumerate(documents):
        for j, other in enumerate(documents):
            distance = hops(PAIRS, one, other)
            assert positives[i, j] == (distance <= 1), (one, other)
            assert open_pairs[i, j] == (distance == 2), (one, other)
    _, open_pairs = PairGraph(6, PAIRS).relate([0, 2])
    assert open_pairs.tolist() == [[False, True], [True, False]]
    with pytest.raises(TrainingError, match=r"^no pair of two different documents among 1; give one at least$"):
        PairGraph(6, [(2, 2)])


def test_classes_leave_no_pair_open_and_are_drawn_k_documents_each_once_an_epoch() -> None:
    positives, open_pairs = Classes([7, 7, 2, 2, 7]).relate([4, 2, 0])
    assert positives.tolist() == [[True, False, True], [False, True, False], [True, False, True]]
    assert not open_pairs.any()
    classes = Classes([0, 0, 0, 1, 1, 2, 2, 2, 2, 3])
    settings = ContrastSettings(n_classes=1, n_each=3)
    drawn = [classes.draw(step, settings) for step in range(3)]
    assert sorted(len(own) for own in drawn) == [2, 3, 3]  # the second class has two; the last, of one, is not drawn
    assert sorted({int(classes.labels[own[0]]) for own in drawn}) == [0, 1, 2]
    for own in drawn:
        assert len({int(classes.labels[number]) for number in own}) == 1 and len(set(own)) == len(own)


def test_a_graph_draws_documents_beside_neighbours_and_none_twice() -> None:
    graph = PairGraph(7, PAIRS)
    for step in range(10):
        drawn = graph.draw(step, ContrastSettings(n_classes=3, n_each=2))
        assert len(set(drawn)) == len(drawn) and 3 <= len(drawn) <= 6
        assert all(graph.neighbours[number] & set(drawn) for number in drawn)


def test_whole_views_have_their_share_and_their_tokens_are_counted(bert_folder: Path) -> None:
    task = make_contrast(bert_folder, PairGraph(6, PAIRS), ContrastSettings(n_classes=3))
    whole = [value for step in range(300) for value in task.batch(step).whole]
    assert np.mean(whole) == pytest.approx(0.3, abs=0.05)
    task = make_contrast(bert_folder, PairGraph(6, PAIRS), ContrastSettings())
    lengths = [one.coverage.tokens_total for one in task.documents]
    assert task.n_tokens(ContrastBatch((0, 3), (False, True))) == lengths[0] + 2 * lengths[3]


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        (replace(CONFIG, n_sections=1), ContrastSettings(whole_probability=1.0)),
        (CONFIG, ContrastSettings(whole_probability=0.0)),
        (CONFIG, ContrastSettings(whole_probability=1.0, contrastive=False)),
    ],
    ids=["left-whole", "paper", "without-contrast"],
)
def test_no_whole_view_is_drawn_without_sections_probability_or_contrast(
    bert_folder: Path, config: ColdeConfig, settings: ContrastSettings
) -> None:
    assert not any(make_contrast(bert_folder, PairGraph(6, PAIRS), settings, config).batch(0).whole)


def loss_of(task: SectionContrast, batch: ContrastBatch) -> float:
    return task.backward(batch, lambda loss: loss.backward())["loss"]


def supcon_by_hand(vectors: Tensor, owners: list[int], pairs: Sequence[tuple[int, int]], temperature: float) -> float:
    """Section 3.3 of the paper, with pairs two hops apart left out of the denominator."""
    distances = torch.tensor([[hops(pairs, own, other) for other in owners] for own in owners])
    return supervised_contrastive_by_hand(vectors, distances <= 1, temperature, distances == 2)


def test_the_loss_is_the_sum_of_the_paper_over_sections_and_whole_views(bert_folder: Path) -> None:
    task = make_contrast(bert_folder, PairGraph(6, PAIRS), ContrastSettings())
    batch = ContrastBatch((0, 1, 2, 5), (False, True, False, False))
    split = [task.encoder.split(task.documents[number], 2) for number in batch.documents]
    views = [split[0], split[1], task.encoder.split(task.documents[1], 1), split[2], split[3]]
    vectors = task.encoder.embed_sections(views).detach()
    expected = supcon_by_hand(vectors, [0, 0, 1, 1, 1, 2, 2, 5, 5], PAIRS, 0.5)
    assert loss_of(task, batch) == pytest.approx(expected, abs=1e-5)


def test_without_augmentation_documents_are_contrasted_whole(bert_folder: Path) -> None:
    config = replace(CONFIG, n_sections=1, without_positions=True)
    task = make_contrast(bert_folder, PairGraph(6, PAIRS), ContrastSettings(), config)
    batch = ContrastBatch((0, 1, 3, 5), (False,) * 4)
    vectors = torch.from_numpy(np.stack([task.encoder.encode_segmented([one])[0].document for one in task.documents]))
    expected = supcon_by_hand(vectors[[0, 1, 3, 5]], [0, 1, 3, 5], PAIRS, 0.5)
    assert loss_of(task, batch) == pytest.approx(expected, abs=1e-5)


def test_without_contrast_the_loss_is_the_cross_entropy_of_cosines_balanced(bert_folder: Path) -> None:
    task = make_contrast(
        bert_folder, PairGraph(6, PAIRS), ContrastSettings(contrastive=False), replace(CONFIG, n_sections=1)
    )
    batch = ContrastBatch((0, 1, 2, 5), (False,) * 4)
    vectors = {number: task.encoder.encode_segmented([task.documents[number]])[0].document for number in (0, 1, 2, 5)}

    def cross_entropy(one: int, other: int, label: int) -> float:
        probability = 1 / (1 + math.exp(-6 * float(vectors[one] @ vectors[other])))
        return -math.log(probability if label else 1 - probability)

    positives = [cross_entropy(0, 1, 1), cross_entropy(1, 2, 1)]
    negatives = [cross_entropy(one, 5, 0) for one in (0, 1, 2)]  # 0 and 2 are two hops apart
    assert loss_of(task, batch) == pytest.approx((sum(positives) / 2 + sum(negatives) / 3) / 2, abs=1e-5)


@pytest.mark.parametrize(
    "settings", [ContrastSettings(whole_probability=1.0), ContrastSettings(contrastive=False)], ids=["supcon", "bce"]
)
def test_gradients_reach_backbone_tables_attention_and_lstm(bert_folder: Path, settings: ContrastSettings) -> None:
    task = make_contrast(bert_folder, PairGraph(6, PAIRS), settings)
    loss_of(task, task.batch(0))
    without = {name for name, weight in task.module.named_parameters() if weight.grad is None or not weight.grad.any()}
    # A bias of keys shifts all logits of a softmax alike.
    assert {name for name in without if "key.bias" not in name} == set()


@pytest.mark.parametrize(
    ("labels", "message"),
    [([1, 2, 3], "3 documents have as many labels; give some of them the same"), ([], "0 documents have as many")],
)
def test_classes_of_one_document_each_are_refused(labels: list[int], message: str) -> None:
    with pytest.raises(TrainingError, match=f"^{message}"):
        Classes(labels)
