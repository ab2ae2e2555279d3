from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from benchmarks.pairs.encoders import (
    RECIPES,
    Comparer,
    Comparison,
    Objectives,
    Recipe,
    ValidAccuracy,
    given_scorer,
    labels_alone,
    mean_best_match,
    n_chunks,
    pair_task,
    recipe,
    trained_scorer,
)
from benchmarks.pairs.scoring import Budget, Course, Fit, Learned, Pair, accuracy_threshold, judge
from benchmarks.pairs.training import Selection, best_accuracy, sample_valid, train_to_best
from engine.encoders.colde import ColdeEncoder
from engine.encoders.encoder import unit
from engine.encoders.files import weights_sha256
from engine.encoders.smith import SmithEncoder
from engine.encoders.trainable import MeanEncoder, TrainableEncoder
from engine.errors import EncoderError, TrainingError
from engine.text.document import Document
from engine.training.fine_tuning import FineTuning, FineTuningSettings, Loss
from engine.training.masked_words import Objective
from engine.training.pair_tasks import ContrastSettings, SectionContrast, TextPairs, TextPairsSettings
from engine.training.task import Backward, Task
from engine.training.trainer import TrainerSettings
from indexer.training.start import NewEncoder, NewKind, Start, starting_encoder
from tests.encoders.tiny import tiny_colde, tiny_smith, tiny_tde
from tests.training.made import pairs_of_texts

BUDGET = Budget(steps=4, pairs_per_step=8)


def texts(n: int = 24) -> dict[str, Document]:
    """q0, t0, q1, t1, ...; q and t of a number have half of their words in common."""
    return {document.doc_id: document for document in pairs_of_texts(n)}


def labelled(first: int, stop: int) -> list[Pair]:
    """For each number a match, and a mismatch with the next number."""
    numbers = list(range(first, stop))
    pairs = []
    for number, following in zip(numbers, [*numbers[1:], first], strict=True):
        pairs += [Pair(f"q{number}", f"t{number}", True), Pair(f"q{number}", f"t{following}", False)]
    return pairs


TRAIN, VALID, TEST = labelled(0, 12), labelled(12, 18), labelled(18, 24)


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


DOCUMENTS = texts()
BCE = FineTuningSettings(losses={Loss.BCE: 1.0})
SMITH = {
    "block_tokens": "12",
    "max_blocks": "4",
    "width": "32",
    "sentence_layers": "1",
    "sentence_ffn": "64",
    "sentence_positions": "16",
    "document_layers": "1",
    "document_ffn": "64",
    "document_positions": "4",
}
COLDE = {"chunk_tokens": "12", "max_chunks": "2", "lstm_width": "16", "projection_width": "24"}
TDE = {"n_topics": "3", "topic_width": "6", "topic_hidden_width": "8", "min_df": "1", "max_df": "1.0"}


def made(folder: Path, name: str) -> Recipe:
    def new(kind: NewKind, sizes: dict[str, str]) -> Start:
        return Start(str(folder), NewEncoder(kind, sizes=sizes))

    both = frozenset(Objective)
    return {
        "bce": Recipe(Start(str(folder)), BCE, Comparison.COSINE, 1e-4),
        "smith": Recipe(new(NewKind.SMITH, SMITH), BCE, Comparison.COSINE, 1e-3),
        "pretrained smith": Recipe(new(NewKind.SMITH, SMITH), BCE, Comparison.COSINE, 1e-3, pretraining=both),
        "colde": Recipe(new(NewKind.COLDE, COLDE), ContrastSettings(), Comparison.COSINE, 1e-4, 1e-3),
        "colde by bce": Recipe(new(NewKind.COLDE, COLDE), ContrastSettings(contrastive=False), Comparison.COSINE, 1e-4),
        "tde": Recipe(new(NewKind.TDE, TDE), TextPairsSettings(), Comparison.HEAD, 1e-4, 1e-3),
    }[name]


def trained(recipe: Recipe, budget: Budget = BUDGET, *, seed: int = 0) -> Learned:
    scorer = trained_scorer("mine", recipe, training_tokens=28, device="cpu")
    return scorer.learn(Fit(DOCUMENTS, TRAIN, VALID, budget, seed))


def given(folder: Path, work: Path) -> Learned:
    scorer = given_scorer(Comparison.COSINE, str(folder), "made@0a", work, device="cpu")
    return scorer.learn(Fit(DOCUMENTS, TRAIN, VALID, BUDGET, 0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bce", "smith", "pretrained smith", "colde", "colde by bce", "tde"])
def test_every_kind_learns_within_its_budget_and_scores(bert_folder: Path, name: str) -> None:
    one = trained(made(bert_folder, name))
    course = one.course
    assert course is not None and course.valid_accuracy is not None
    pretraining = 2 if name == "pretrained smith" else 0
    assert course.pretraining_steps == pretraining
    assert course.best_step <= course.n_steps in range(1, 5 - pretraining)
    assert 0.5 <= course.valid_accuracy <= 1
    scores = one.score(TEST)
    assert scores.shape == (len(TEST),)
    assert np.ptp(scores) > 0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_scores(bert_folder: Path) -> None:
    recipe = made(bert_folder, "smith")
    first, again, other = (trained(recipe, seed=seed).score(TEST) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.slow
def test_training_separates_pairs_that_were_alike(bert_folder: Path, tmp_path: Path) -> None:
    recipe = replace(made(bert_folder, "bce"), start=Start(str(bert_folder), dropout=0.0), learning_rate=3e-3)
    before = given(bert_folder, tmp_path)
    scorer = trained_scorer("after", recipe, training_tokens=200, device="cpu")
    after = scorer.learn(Fit(DOCUMENTS, TRAIN, TRAIN, Budget(steps=30, pairs_per_step=24), 0))
    labels = [pair.is_match for pair in TRAIN]
    accuracies = [
        judge(scores, labels, accuracy_threshold(scores, labels)).accuracy
        for scores in (one.score(TRAIN) for one in (before, after))
    ]
    assert accuracies[0] + 0.1 < accuracies[1]


def test_valid_accuracy_is_that_of_the_best_threshold(mean_encoder: MeanEncoder) -> None:
    whole = ValidAccuracy(mean_encoder, DOCUMENTS, VALID, Comparison.COSINE, chunks=100)
    vectors = {doc_id: mean_encoder.encode([DOCUMENTS[doc_id]])[0].document for doc_id in DOCUMENTS}
    scores = np.array([float(vectors[pair.first] @ vectors[pair.second]) for pair in VALID])
    labels = np.array([pair.is_match for pair in VALID])
    tried = [np.mean((scores > threshold) == labels) for threshold in [-2, *scores]]
    assert whole() == pytest.approx(max(tried))


@pytest.mark.slow
def test_steps_of_pretraining_are_those_that_were_made(bert_folder: Path) -> None:
    one = trained(made(bert_folder, "pretrained smith"), Budget(steps=5, pairs_per_step=8))
    assert one.course is not None
    assert (one.course.pretraining_steps, one.course.n_steps) == (2, 3)
    with pytest.raises(TrainingError, match="a budget of 1 steps has no half for pretraining; give at least 2"):
        trained(made(bert_folder, "pretrained smith"), Budget(steps=1, pairs_per_step=8))


@pytest.mark.slow
def test_settings_name_the_backbone_and_what_is_taken_from_it(bert_folder: Path) -> None:
    label = f"bert@{weights_sha256(bert_folder)[:12]}"
    expected = {"bce": label, "colde": f"{label}, under new layers", "smith": f"{label} (the word embeddings alone)"}
    for name, begins_with in expected.items():
        one = trained(made(bert_folder, name), Budget(steps=1, pairs_per_step=8))
        assert (one.encoder, one.settings["begins_with"]) == (label, begins_with)
    wide = replace(
        made(bert_folder, "smith"),
        start=Start(str(bert_folder), NewEncoder(NewKind.SMITH, sizes={**SMITH, "width": "16"})),
    )
    one = trained(wide, Budget(steps=1, pairs_per_step=8))
    assert (one.encoder, one.settings["begins_with"]) == (label, "random weights")


def test_pretraining_of_other_encoders_than_smith_is_refused(bert_folder: Path) -> None:
    recipe = replace(made(bert_folder, "bce"), pretraining=frozenset({Objective.WORDS}))
    with pytest.raises(TrainingError, match="pretraining by hidden words and blocks is SMITH's, not that of mean"):
        trained(recipe)


def test_settings_describe_the_recipe(bert_folder: Path) -> None:
    colde = trained_scorer("colde", made(bert_folder, "colde"), training_tokens=28).settings
    assert (colde["new"], colde["variant"], colde["labels_alone"]) == ("colde", "fixed", False)
    assert (colde["losses"], colde["size_chunk_tokens"], colde["head_learning_rate"]) == ("sections", "12", 1e-3)
    assert colde.items() >= {"selection_pairs": 100, "selection_looks": 10, "selection_patience": 5}.items()
    smith = trained_scorer("smith", made(bert_folder, "pretrained smith"), training_tokens=28).settings
    assert (smith["losses"], smith["pretraining"], smith["labels_alone"]) == ("bce=1", "sp,wp", True)


TEXTS = texts(12)


def task(encoder: TrainableEncoder, learned: Objectives) -> Task[object]:
    return pair_task(encoder, learned, TEXTS, Fit(TEXTS, TRAIN, [], BUDGET, 0), 28)


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


@pytest.mark.parametrize(
    ("losses", "is_by_labels"),
    [
        ({Loss.BCE: 1.0}, True),
        ({Loss.BCE: 0.5, Loss.DOCUMENT: 0.0}, True),
        *(({loss: 1.0, Loss.BCE: 1.0}, False) for loss in (Loss.DOCUMENT, Loss.MAXSIM)),
    ],
)
def test_pairs_without_a_label_are_mismatches_to_all_losses_but_bce(
    mean_encoder: MeanEncoder, losses: dict[Loss, float], is_by_labels: bool
) -> None:
    learned = FineTuningSettings(losses=losses)
    made, labels = task(mean_encoder, learned), {frozenset((pair.first, pair.second)): pair.is_match for pair in TRAIN}
    assert isinstance(made, FineTuning) and labels_alone(learned) == is_by_labels
    for step in range(5):
        pairs = made.batch(step).pairs
        for row, query in enumerate(pairs.queries):
            for column, target in enumerate(pairs.targets):
                label = labels.get(frozenset((query.document.doc_id, target.document.doc_id)))
                assert pairs.excluded[row, column] == (is_by_labels and label is None)
                assert pairs.positives[row, column] == (label is True)


def test_pair_heads_and_contrasts_of_sections_learn_by_more_than_labels() -> None:
    assert not labels_alone(ContrastSettings(contrastive=False)) and not labels_alone(TextPairsSettings())


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


def begun(name: str, folder: Path, training_tokens: int = 1536) -> TrainableEncoder:
    start = recipe(name, str(folder), training_tokens).start
    return starting_encoder(start, [], seed=0, device="cpu", is_resumed=False, log=lambda line: None).encoder


def test_the_smiths_differ_in_their_pretraining_and_blocks(bert_folder: Path) -> None:
    names = ("smith-np", "smith-wp", "smith-wp-sp", "smith-short")
    pretraining = [recipe(name, str(bert_folder), 1).pretraining for name in names]
    assert pretraining == [frozenset(), {Objective.WORDS}, {Objective.WORDS, Objective.BLOCKS}, frozenset()]
    configs = [encoder.config for name in names if isinstance(encoder := begun(name, bert_folder), SmithEncoder)]
    # A block of SMITH-Short has 48 tokens here, as many positions as the backbone has.
    assert [(config.block_tokens, config.max_blocks) for config in configs] == [(32, 48)] * 3 + [(48, 4)]


def test_sizes_replace_those_of_a_recipe(bert_folder: Path) -> None:
    new = recipe("smith-np", str(bert_folder), 1536, sizes={"max_blocks": "16"}).start.new
    assert new is not None
    assert (new.sizes["max_blocks"], new.sizes["width"]) == ("16", "32")
    with pytest.raises(TrainingError, match="cosine-infonce makes no new encoder, so that max_blocks cannot be set"):
        recipe("cosine-infonce", str(bert_folder), 1536, sizes={"max_blocks": "16"})


def test_a_colde_and_its_ablations_have_their_sections_chunks_and_layers(bert_folder: Path) -> None:
    names = ("colde", "colde-without-aug", "colde-without-lstm", "colde-without-cl")
    encoders = [begun(name, bert_folder) for name in names]
    assert all(isinstance(encoder, ColdeEncoder) for encoder in encoders)
    configs = [encoder.config for encoder in encoders if isinstance(encoder, ColdeEncoder)]
    assert [config.n_sections for config in configs] == [2, 1, 2, 1]
    assert [config.max_chunks for config in configs] == [6, 12, 6, 12]
    assert [config.without_positions for config in configs] == [False, True, False, True]
    assert [config.without_lstm for config in configs] == [False, False, True, False]
    learned = [recipe(name, str(bert_folder), 1536).learned for name in names]
    assert [isinstance(one, ContrastSettings) and one.contrastive for one in learned] == [True, True, True, False]


@pytest.mark.parametrize(("tokens", "twice"), [(512, False), (1024, True)])
def test_a_colde_computes_the_layers_of_long_documents_twice(bert_folder: Path, tokens: int, twice: bool) -> None:
    assert recipe("colde", str(bert_folder), tokens).start.checkpoint_gradients is twice


def test_only_a_tde_is_compared_by_its_head(bert_folder: Path) -> None:
    by_head = {name for name in RECIPES if recipe(name, str(bert_folder), 1536).comparison is Comparison.HEAD}
    assert by_head == {"tde", "tde-without-topics"}


def test_smith_short_refuses_a_backbone_that_is_not_a_bert(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "mpnet"}')
    with pytest.raises(EncoderError, match="holds no BERT, which SMITH reads sentences by; name one: --encoder"):
        recipe("smith-short", str(tmp_path), 1536)


PAIRS = [Pair(f"a{number}", f"b{number}", number % 3 == 0) for number in range(30)]


def test_a_score_that_is_no_number_ends_training() -> None:
    with pytest.raises(TrainingError, match="2 of 30 valid pairs have a score that is no finite number; lower the"):
        best_accuracy([float("nan"), float("inf"), *[0.0] * 28], PAIRS)


def test_valid_pairs_are_sampled_by_a_seed_as_many_of_either_kind() -> None:
    drawn = sample_valid(PAIRS, 8, seed=1)
    assert [pair.is_match for pair in drawn].count(True) == 4
    assert drawn == sample_valid(PAIRS, 8, seed=1) != sample_valid(PAIRS, 8, seed=2)
    assert [PAIRS.index(pair) for pair in drawn] == sorted(PAIRS.index(pair) for pair in drawn)
    assert sample_valid(PAIRS, 100, seed=1) == PAIRS


class Counting:
    """A `Task` and its model: one number, which each step raises; `validate` returns the given values in turn."""

    def __init__(self, values: Sequence[float]) -> None:
        self.module = nn.Linear(1, 1, bias=False)
        nn.init.zeros_(self.module.weight)
        self.validated_at: list[float] = []
        self._values = values

    def batch(self, step: int) -> int:
        return step

    def n_tokens(self, batch: int) -> int:
        return 1

    def backward(self, batch: int, backward: Backward) -> Mapping[str, float]:
        backward(-self.module.weight.sum())
        return {"loss": 1.0}

    def validate(self) -> float:
        self.validated_at.append(round(self.module.weight.item()))
        return self._values[len(self.validated_at) - 1]

    def train(self, *, steps: int = 6, patience: int = 9, between: int = 1, is_validated: bool = True) -> Course:
        # Adam moves a number by the learning rate where gradients are all the same.
        settings = TrainerSettings(steps=steps, learning_rate=1.0, weight_decay=0.0)
        selection = Selection(looks=3, between=between, patience=patience)
        validate = self.validate if is_validated else None
        rate = lambda step, of: 1.0  # noqa: E731
        return train_to_best(self, self, validate, settings, selection=selection, rate=rate)


@pytest.mark.parametrize(
    ("values", "options", "course", "validated_at"),
    [
        ([0.5, 0.9, 0.6, 0.8], {}, Course(6, 2, 0.9, n_tokens=6), [0, 2, 4, 6]),
        ([0.5, 0.9, 0.6], {"between": 3}, Course(6, 3, 0.9, n_tokens=6), [0, 3, 6]),
        ([0.5, 0.5, 0.5], {"patience": 2}, Course(4, 0, 0.5, n_tokens=4), [0, 2, 4]),
        ([], {"is_validated": False}, Course(6, 6, None, n_tokens=6), []),
    ],
    ids=[
        "the best weights are taken",
        "evaluations are some steps apart",
        "patience ends it",
        "nothing to validate by",
    ],
)
def test_training_ends_with_the_weights_of_its_best_step(
    values: list[float], options: dict[str, Any], course: Course, validated_at: list[int]
) -> None:
    task = Counting(values)
    assert (task.train(**options), task.validated_at) == (course, validated_at)
    assert task.module.weight.item() == pytest.approx(course.best_step, abs=1e-3)


def test_a_selection_that_chooses_nothing_is_refused() -> None:
    with pytest.raises(TrainingError, match="1 pairs, 10 looks and a patience of 5 choose nothing; take at least 2"):
        Selection(pairs=1)
