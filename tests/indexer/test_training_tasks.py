"""Which documents belong together: graphs, classes, pairs that match and pairs that do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.training.corpus import TrainingCorpus
from engine.training.pair_tasks import Classes, Graph
from indexer.building.report import BuildReport
from indexer.training.recipe import SectionsObjective, TextPairsObjective
from indexer.training.run import _IndexProgress, negatives, section_contrast, text_pairs
from indexer.training.start import Kind, NewEncoder, make_encoder
from tests.fakes import make_corpus as make_documents
from tests.fakes import make_document
from tests.indexer.training_sizes import COLDE, TDE

TEXT = "The old fox runs over the river bank. A young dog sleeps."
SECTIONS = SectionsObjective()


def make_corpus(
    name: str, pairs: dict[str, list[str]] | None = None, topics: list[object] | None = None
) -> TrainingCorpus:
    """Documents a to f, of which f is blank."""
    documents = {
        doc_id: make_document(doc_id, " " if doc_id == "f" else f"{TEXT} {name} {doc_id}.", metadata={"topic": topic})
        for doc_id, topic in zip("abcdef", topics or range(6), strict=True)
    }
    judged = {query: dict.fromkeys(targets, 1) for query, targets in (pairs or {}).items()}
    return TrainingCorpus(name, documents, pairs=judged, related=judged)


@pytest.fixture(scope="module")
def colde(bert_folder: Path) -> TrainableEncoder:
    new = NewEncoder(Kind.COLDE, sizes=COLDE)
    return make_encoder(new, str(bert_folder), (), seed=0, device="cpu").encoder


@pytest.fixture(scope="module")
def tde(bert_folder: Path) -> TrainableEncoder:
    new = NewEncoder(Kind.TDE, sizes={**TDE, "max_df": "1", "min_df": "1"})
    return make_encoder(new, str(bert_folder), [TEXT], seed=0, device="cpu").encoder


def test_pairs_of_several_corpora_make_one_graph(colde: TrainableEncoder) -> None:
    corpora = [make_corpus("one", {"a": ["b", "f"]}), make_corpus("two", {"a": ["c"]})]
    task = section_contrast(colde, corpora, SECTIONS, seed=5)
    assert [one.document.text[-6:] for one in task.documents] == ["one a.", "one b.", "two a.", "two c."]
    assert isinstance(task.relation, Graph) and task.settings.seed == 5
    assert task.relation.neighbours == [{1}, {0}, {3}, {2}]


def test_labels_make_classes_that_corpora_do_not_share(colde: TrainableEncoder) -> None:
    topics = [1, 1, ["x", "y"], ["x"], None, 1]
    corpora = [make_corpus("one", topics=topics), make_corpus("two", topics=topics)]
    task = section_contrast(colde, corpora, replace(SECTIONS, label="topic"), seed=0)
    assert isinstance(task.relation, Classes) and task.relation.labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [one.document.doc_id for one in task.documents] == list("abcd") * 2


def test_an_unknown_label_is_refused_with_the_names_of_the_fields(colde: TrainableEncoder) -> None:
    with pytest.raises(TrainingError, match=r"^no document has the metadata field 'colour'; they have topic$"):
        section_contrast(colde, [make_corpus("one")], replace(SECTIONS, label="colour"), seed=0)


def test_pairs_and_labels_do_not_mix(colde: TrainableEncoder) -> None:
    message = r"^two has no pairs, the other corpora have; train on one kind at a time$"
    with pytest.raises(TrainingError, match=message):
        section_contrast(
            colde, [make_corpus("one", {"a": ["b"]}), make_corpus("two")], replace(SECTIONS, label="topic"), seed=0
        )


def test_negatives_are_hard_first_and_never_related() -> None:
    corpus = make_corpus("one", {"a": ["b"]})
    for seed in range(20):
        drawn = negatives(corpus, "a", ["c", "d"], 3, np.random.default_rng(seed))
        assert set(drawn[:2]) == {"c", "d"} and drawn[2] in ("e", "f")
    assert set(negatives(corpus, "a", (), 9, np.random.default_rng(0))) == set("cdef")
    assert negatives(corpus, "a", ["c"], 0, np.random.default_rng(0)) == []


def test_text_pairs_are_the_pairs_and_negatives_of_their_corpus(tde: TrainableEncoder) -> None:
    corpora = [make_corpus("one", {"a": ["b", "c"], "b": ["f"]}), make_corpus("two", {"a": ["b"]})]
    objective = TextPairsObjective(negatives_per_positive=2)
    task = text_pairs(tde, corpora, [lambda query_id: ["e"], None], objective, seed=0)
    ids = [text.document.text[-6:-1] for text in task._texts]
    found = [(ids[pair.query], ids[pair.target], pair.matches) for pair in task.pairs]
    assert {pair for pair in found if pair[2]} == {
        ("one a", "one b", True),
        ("one a", "one c", True),
        ("two a", "two b", True),
    }
    unmatched: dict[str, list[str]] = {}
    for query, target, matches in found:
        if not matches:
            unmatched.setdefault(query, []).append(target)
    assert sorted(unmatched) == ["one a", "one b", "two a"]
    assert sorted(unmatched["one a"]) == ["one d", "one e"]  # wanted: 4; there are d, e and the blank f
    hard, drawn = unmatched["one b"]
    assert hard == "one e" and drawn in ("one a", "one c", "one d")
    assert set(unmatched["two a"]) < {"two c", "two d", "two e"}
    assert len(set(unmatched["two a"])) == len(unmatched["two a"])  # 2, or 1 where the blank f is drawn
    assert not any("f" in target for _, target, _ in found)  # blank


def test_of_many_positives_some_are_drawn(tde: TrainableEncoder) -> None:
    objective = TextPairsObjective(positives_per_query=2)
    everyone = {doc_id: [other for other in "abcde" if other != doc_id] for doc_id in "abcde"}
    task = text_pairs(tde, [make_corpus("one", everyone)], [None], objective, seed=0)
    assert sum(pair.matches for pair in task.pairs) == 10
    assert torch.tensor([pair.query for pair in task.pairs if pair.matches]).bincount().tolist() == [2] * 5


def test_progress_of_indexing_is_logged_at_intervals() -> None:
    lines: list[str] = []
    documents = {one.doc_id: one for one in make_documents(40)}
    progress = _IndexProgress(TrainingCorpus("papers", documents), lines.append)
    progress(BuildReport(n_unchanged=10))
    assert lines == []  # too soon
    progress._last -= 60
    progress(BuildReport(n_unchanged=20))
    progress(BuildReport(n_unchanged=30))
    assert lines == ["papers: 20 of 40 documents indexed"]
