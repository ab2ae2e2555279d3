from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.pair_scorer import Budget
from benchmarks.pairs.pair_tasks import LabelledMismatches, Learned, labels_alone, n_chunks, pair_task
from engine.encoders.mean import MeanEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.training.fine_tuning import FineTuning, FineTuningSettings, Loss
from engine.training.section_contrast import ContrastSettings, SectionContrast
from engine.training.task import Task
from engine.training.text_pairs import TextPairs, TextPairsSettings
from tests.benchmarks.pairs.pair_cases import TRAIN, texts
from tests.encoders.tiny import tiny_colde, tiny_smith, tiny_tde

TEXTS = texts(12)
BUDGET = Budget(steps=3, pairs_per_step=8)


def task(encoder: TrainableEncoder, learned: Learned) -> Task[object]:
    return pair_task(encoder, learned, TEXTS, TRAIN, budget=BUDGET, training_tokens=28, seed=0)


def test_a_query_meets_its_match_and_its_labelled_mismatch(mean_encoder: MeanEncoder) -> None:
    made = task(mean_encoder, FineTuningSettings(losses={Loss.BCE: 1.0}))
    assert isinstance(made, FineTuning)
    pairs = made.batch(0).pairs
    targets = [target.document.doc_id for target in pairs.targets]
    assert len(pairs.queries) == BUDGET.pairs_per_step // 2
    for row, query in enumerate(pairs.queries):
        number = int(query.document.doc_id[1:])
        assert [targets[at] for at in np.flatnonzero(pairs.positives[row])] == [f"t{number}"]
        assert f"t{(number + 1) % 12}" in targets
    assert max(len(document.chunks) for document in (*pairs.queries, *pairs.targets)) == 2


def pairs_with_a_label() -> dict[frozenset[str], bool]:
    return {frozenset((pair.first, pair.second)): pair.is_match for pair in TRAIN}


@pytest.mark.parametrize("losses", [{Loss.BCE: 1.0}, {Loss.BCE: 0.5, Loss.DOCUMENT: 0.0}])
def test_by_cross_entropy_no_pair_without_a_label_is_a_mismatch(
    mean_encoder: MeanEncoder, losses: dict[Loss, float]
) -> None:
    learned = FineTuningSettings(losses=losses)
    made, known = task(mean_encoder, learned), pairs_with_a_label()
    assert isinstance(made, FineTuning)
    assert labels_alone(learned)
    for step in range(5):
        pairs = made.batch(step).pairs
        for row, query in enumerate(pairs.queries):
            for column, target in enumerate(pairs.targets):
                label = known.get(frozenset((query.document.doc_id, target.document.doc_id)))
                assert pairs.excluded[row, column] == (label is None)
                assert pairs.positives[row, column] == (label is True)


@pytest.mark.parametrize("loss", [Loss.DOCUMENT, Loss.SUPCON, Loss.MAXSIM])
def test_other_losses_take_pairs_without_a_label_for_mismatches(mean_encoder: MeanEncoder, loss: Loss) -> None:
    learned = FineTuningSettings(losses={loss: 1.0, Loss.BCE: 1.0})
    made = task(mean_encoder, learned)
    assert isinstance(made, FineTuning)
    assert not labels_alone(learned)
    assert not made.batch(0).pairs.excluded.any()
    assert not labels_alone(ContrastSettings(contrastive=False))
    assert not labels_alone(TextPairsSettings())


def test_matches_alone_make_the_graph_of_sections(bert_folder: Path) -> None:
    made = task(tiny_colde(bert_folder), ContrastSettings())
    assert isinstance(made, SectionContrast)
    batch = made.batch(0)
    names = [made.documents[number].document.doc_id for number in batch.documents]
    positives, _ = made.relation.relate(batch.documents)
    assert len(set(names)) == len(names) >= BUDGET.pairs_per_step
    for i, j in zip(*np.nonzero(positives), strict=True):
        assert names[i][1:] == names[j][1:]


def test_texts_are_paired_as_they_are_labelled(bert_folder: Path) -> None:
    made = task(tiny_tde(bert_folder), TextPairsSettings())
    assert isinstance(made, TextPairs)
    ids = list(TEXTS)
    assert [(ids[pair.query], ids[pair.target], pair.matches) for pair in made.pairs] == [
        (pair.first, pair.second, pair.is_match) for pair in TRAIN
    ]
    assert len(made.batch(0).pairs) == BUDGET.pairs_per_step


def test_a_task_refuses_an_encoder_of_another_type(mean_encoder: MeanEncoder) -> None:
    with pytest.raises(TrainingError, match="sections are contrasted by a CoLDE, not by an encoder of type mean"):
        task(mean_encoder, ContrastSettings())
    with pytest.raises(TrainingError, match="a pair head is trained of a TDE, not of an encoder of type mean"):
        task(mean_encoder, TextPairsSettings())


def test_stretches_are_counted_in_chunks(bert_folder: Path, mean_encoder: MeanEncoder) -> None:
    assert [n_chunks(mean_encoder, tokens) for tokens in (1, 28, 1400)] == [1, 2, 100]
    assert n_chunks(tiny_smith(bert_folder), 120) == 120 // (tiny_smith(bert_folder).chunk_tokens + 2)
    assert n_chunks(tiny_tde(bert_folder), 1536) == 64


def test_labelled_mismatches_of_a_query_are_its_pairs_that_do_not_match() -> None:
    assert LabelledMismatches(TRAIN).negatives("q3") == ["t4"]
    assert LabelledMismatches(TRAIN).negatives("t3") == []
