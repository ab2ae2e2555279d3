"""Settings and history of a run, and its validation, which is compared with search and with ir_measures."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch

from engine.encoders.colde import ColdeConfig
from engine.encoders.cpu import MeanConfig
from engine.encoders.encoder import EncodedDocument, SegmentedDocument
from engine.encoders.smith_config import SmithConfig
from engine.encoders.tde import TdeConfig
from engine.encoders.trainable import MeanEncoder
from engine.errors import TrainingError
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.query import as_stored
from engine.search.request import Request
from engine.settings import Checked, Range, parse, shown_value
from engine.training.corpus import TrainingCorpus
from engine.training.fine_tuning import FineTuningSettings, Loss
from engine.training.history import History, Number, validation_values
from engine.training.trainer import TrainerSettings, Validation, ndcg
from indexer.building.builder import build
from indexer.training.recipe import (
    PairsObjective,
    Recipe,
    SectionsObjective,
    SmithObjective,
    TensionObjective,
    TextPairsObjective,
    ViewsObjective,
)
from indexer.training.start import LongSizes, NewEncoder, NewKind, Start
from tests.fakes import make_corpus, make_document
from tests.training.made import pairs_of_texts, plain_encoder, training_corpus

DOCUMENTS = pairs_of_texts(25, n_words=60)
CHUNKS = Scoring(word_weight=0, pair_weight=0)
IDS = [document.doc_id for document in DOCUMENTS]


class Stored(MeanEncoder):
    """Rounds vectors as an index does, so that near ties are ranked in the same way."""

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        return [as_stored(encoded) for encoded in super().encode_segmented(documents)]


@pytest.fixture(scope="module")
def encoder(mean_encoder: MeanEncoder) -> Stored:
    return Stored(mean_encoder.backbone, window_tokens=12)


@pytest.fixture(scope="module")
def corpus() -> TrainingCorpus:
    """Graded judgments of the other half of a pair and of some other documents, one of which is in no corpus."""
    rng = np.random.default_rng(1)
    valid = {
        f"q{number}": {
            f"t{number}": 2,
            **{one: int(rng.integers(0, 4)) for one in rng.choice(IDS, 4).tolist() if one != f"q{number}"},
            "gone": 1,
        }
        for number in range(0, 20, 2)
    }
    return training_corpus(DOCUMENTS, {}, valid=valid)


@pytest.mark.slow
@pytest.mark.parametrize("scoring", [CHUNKS, replace(CHUNKS, exceeding=5, power=1.0)])
def test_validation_equals_the_ndcg_of_exact_search_by_chunks(
    tmp_path: Path, encoder: Stored, corpus: TrainingCorpus, scoring: Scoring
) -> None:
    pytest.importorskip("ir_measures")
    from benchmarks.metrics import PRIMARY, evaluate

    build(tmp_path / "x.lm", DOCUMENTS, encoder=encoder)
    with Index.open(tmp_path / "x.lm", encoder=encoder) as index:
        rankings = {
            query_id: [hit.doc_id for hit in index.search(query_id, Request(k=10, exact=True, scoring=scoring)).hits]
            for query_id in corpus.valid
        }
    expected = evaluate(corpus.valid, rankings)[PRIMARY]
    validation = Validation(corpus, encoder, scoring=scoring)
    found = validation.by_query()
    assert len(set(expected.values())) > 3
    differences = sorted(abs(found[query_id] - expected[query_id]) for query_id in expected)
    # An index rounds its reference to bytes, which moves scores by 0.0002: it may swap two documents of one query.
    assert differences[-2] < 1e-6 and differences[-1] < 0.1
    assert validation.ndcg() == pytest.approx(np.mean(list(found.values())), abs=1e-6)


def test_documents_are_cut_to_chunks_spread_over_them(encoder: Stored, corpus: TrainingCorpus) -> None:
    cut = [encoder.segment(one) for one in DOCUMENTS]
    kept = [[one.chunks[0], one.chunks[-1]] for one in cut]
    assert min(len(one.chunks) for one in cut) > 2
    validation = Validation(corpus, encoder, chunks=2)
    assert validation.n_tokens == sum(chunk.n_tokens for chunks in kept for chunk in chunks)
    assert Validation(corpus, encoder).n_tokens == sum(one.coverage.tokens_read for one in cut)


def test_only_the_first_queries_are_searched(encoder: Stored, corpus: TrainingCorpus) -> None:
    first = Validation(corpus, encoder, queries=3).by_query()
    assert list(first) == ["q0", "q2", "q4"]
    whole = Validation(corpus, encoder).by_query()
    assert first == {query_id: whole[query_id] for query_id in first}


def test_all_judged_documents_are_ranked_whatever_the_number_and_the_same_others_each_time(
    encoder: Stored, corpus: TrainingCorpus
) -> None:
    class Recording(Stored):
        def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
            ranked.append([one.document.doc_id for one in documents])
            return super().encode_segmented(documents)

    ranked: list[list[str]] = []
    recording = Recording(encoder.backbone, window_tokens=12)
    for most in (1, 30, 30, 49, 50, 51):
        Validation(corpus, recording, queries=4, documents=most).by_query()
    judged = {one for query, targets in list(corpus.valid.items())[:4] for one in (query, *targets)} - {"gone"}
    assert set(ranked[0]) == judged and len(judged) < 25
    assert [len(own) for own in ranked] == [len(judged), 29, 29, 48, 50, 50]  # "gone" takes a place
    assert ranked[1] == ranked[2] and judged < set(ranked[1]) and ranked[4] == ranked[5] == IDS
    assert all(own == [one for one in IDS if one in own] for own in ranked)


def test_a_query_without_a_token_finds_nothing_and_others_rank_without_it(encoder: Stored) -> None:
    documents = [*DOCUMENTS[:4], make_document("void", "  ")]
    valid = {"void": {"q0": 1}, "q0": {"t0": 1, "void": 1}}
    found = Validation(training_corpus(documents, {}, valid=valid), encoder).by_query()
    assert found["void"] == 0.0
    assert 0 < found["q0"] < 1


def test_validation_follows_changes_of_the_parameters(bert_folder: Path, corpus: TrainingCorpus) -> None:
    encoder = plain_encoder(bert_folder)
    validation = Validation(corpus, encoder)
    before = validation.by_query()
    assert validation.by_query() == before
    with torch.no_grad():
        for weight in encoder.module.parameters():
            weight.normal_(generator=torch.Generator().manual_seed(0))
    assert validation.by_query() != before


def test_a_corpus_without_valid_queries_is_refused(encoder: Stored) -> None:
    with pytest.raises(TrainingError) as raised:
        Validation(training_corpus(make_corpus(3), {}), encoder)
    assert str(raised.value) == (
        "corpus made has no valid queries; give it splits.json and qrels.tsv, or train without"
    )


@pytest.mark.parametrize(
    ("ranking", "judged", "expected"),
    [
        (["a", "b"], {"a": 1, "b": 1}, 1.0),
        (["a", "b"], {"a": 1, "b": 1, "c": 1}, 1.0),
        (["b", "a"], {"a": 2, "b": 1}, (1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3))),
        (["x", "a"], {"a": 1}, 1 / np.log2(3)),
        (["x", "y", "a"], {"a": 1}, 0.0),  # below the depth of 2
        (["a"], {"a": 0, "b": -1}, 0.0),
        (["b", "a"], {"a": 1, "b": -2}, 1 / np.log2(3)),
    ],
)
def test_ndcg_of_small_rankings_by_hand(ranking: list[str], judged: dict[str, int], expected: float) -> None:
    assert ndcg(ranking, judged, 2) == pytest.approx(expected)


SETTINGS = [
    *(PairsObjective(), SectionsObjective(), TextPairsObjective()),
    *(ViewsObjective(), TensionObjective(), SmithObjective()),
    *(TrainerSettings(), Start(), NewEncoder(NewKind.TDE), Recipe()),
    *(SmithConfig(), ColdeConfig(), TdeConfig(), MeanConfig(), LongSizes()),
]
FIELDS = [(settings, one) for settings in SETTINGS for one in fields(settings) if "meaning" in one.metadata]
NAMES = [f"{type(settings).__name__}.{one.name}" for settings, one in FIELDS]


def outside(within: Range) -> list[float]:
    numbers = [(within.least, -1), (within.above, 0), (within.below, 0), (within.most, 1)]
    return [end + step for end, step in numbers if end is not None]


@pytest.mark.parametrize(("settings", "one"), FIELDS, ids=NAMES)
def test_every_number_is_refused_outside_of_its_range(settings: Checked, one: Field[Any]) -> None:
    kinds = str(get_type_hints(type(settings))[one.name])
    within = one.metadata["range"]
    assert ("int" in kinds or "float" in kinds) == (within is not None) or "Mapping" in kinds
    required = {"kind": NewKind.TDE} if isinstance(settings, NewEncoder) else {}
    for value in outside(within) if within else ():
        with pytest.raises(settings.error) as raised:
            type(settings)(**required, **{one.name: value})
        assert str(raised.value) == f"{one.name} is {value}; it must be {within}"


@pytest.mark.parametrize(("settings", "one"), FIELDS, ids=NAMES)
def test_every_default_is_read_from_the_text_that_is_listed(settings: Checked, one: Field[Any]) -> None:
    value = getattr(settings, one.name)
    assert parse(one.name, shown_value(value), get_type_hints(type(settings))[one.name]) == value
    assert one.metadata["meaning"][-1] != "."


def test_ranges_are_written_out() -> None:
    assert (
        str(Range(least=0, below=1)) == "at least 0 and below 1"
        and str(Range(above=0, most=2)) == "above 0 and at most 2"
        and str(Range(least=1, most=8)) == "from 1 to 8"
    )


@pytest.mark.parametrize("losses", [{}, {Loss.BCE: 0.0}, {Loss.BCE: 1.0, Loss.MAXSIM: -1.0}])
def test_losses_without_weight_are_refused(losses: dict[Loss, float]) -> None:
    with pytest.raises(TrainingError, match=r"give each a weight of at least 0, and one of them more$"):
        FineTuningSettings(losses=losses)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.csv"


def numbers(step: int, values: Mapping[str, float]) -> list[Number]:
    return [Number(step, name, value) for name, value in values.items()]


def three_steps() -> History:
    rows = numbers(0, validation_values({"rfc": 0.25, "proposals": 0.5}))
    for step in (1, 2, 3):
        losses = {"loss": 3.0 / step, "loss/words": 1.0 / step}
        rows += numbers(step, {**losses, "learning rate": 0.1, "tokens per second": 900.0, "seconds": 2.0 * step})
    return History(rows)


def test_the_file_is_plain_csv_a_row_for_each_number(path: Path) -> None:
    three_steps().write(path)
    assert path.read_bytes().split(b"\r\n")[:9] == [
        b"step,name,value",
        b"0,valid nDCG@10/rfc,0.25",
        b"0,valid nDCG@10/proposals,0.5",
        b"0,valid nDCG@10/mean,0.375",
        b"1,loss,3.0",
        b"1,loss/words,1.0",
        b"1,learning rate,0.1",
        b"1,tokens per second,900.0",
        b"1,seconds,2.0",
    ]
    assert [file.name for file in path.parent.iterdir()] == ["history.csv"]


def test_every_number_and_name_comes_back_as_it_was(path: Path) -> None:
    values = [0.1 + 0.2, 1e-300, 5e-324, -0.0, math.inf, float(np.float32(0.1)), math.nan]
    names = [f'valid R@5/"a", b{number}' for number in range(len(values))]
    History(Number(1, name, value) for name, value in zip(names, values, strict=True)).write(path)
    with path.open(newline="") as stream:
        _, *rows = csv.reader(stream)
    assert [row[1] for row in rows] == names
    np.testing.assert_array_equal([float(row[2]) for row in rows], values)


def test_metrics_are_found_by_corpus_and_step() -> None:
    assert three_steps().validation == {"rfc": {0: 0.25}, "proposals": {0: 0.5}, "mean": {0: 0.375}}
