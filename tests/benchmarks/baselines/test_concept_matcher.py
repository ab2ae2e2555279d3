from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.baselines.concept_graphs import ConceptText, concept_graph, read_concept_text, weigh_terms
from benchmarks.baselines.concept_matcher import (
    ConceptMatcher,
    ConceptMatcherConfig,
    GraphConvolutions,
    concept_matcher,
    normalized,
)
from benchmarks.baselines.concepts import Grouping
from benchmarks.baselines.pair_model import TrainedScorer, n_parameters
from benchmarks.baselines.text_inputs import make_vocabulary
from benchmarks.pairs.scorer import Budget, Fit, Pair
from engine.text.document import Document
from tests.benchmarks.baselines.pair_cases import OVERFITTING, TINY_WORDS, random_table, share_right, turned
from tests.benchmarks.baselines.small_words import WORDS, random_documents
from tests.fakes import make_document

SMALL = ConceptMatcherConfig(
    TINY_WORDS, max_keywords=6, filters=4, encoder_width=6, similarity_width=5, width=3, dropout=0.0
)


def texts_of(documents: Sequence[Document]) -> list[ConceptText]:
    vocabulary = make_vocabulary(dict.fromkeys(WORDS[:40], 1), min_count=1, max_words=100)
    weights = weigh_terms(documents)
    return [
        read_concept_text(document, vocabulary, weights, max_words=60, max_keywords=SMALL.max_keywords)
        for document in documents
    ]


def sentenced(documents: Sequence[Document]) -> list[Document]:
    """Documents with a full stop and a capital letter after every word that ends in z."""
    return [
        make_document(document.doc_id, ". ".join(part.capitalize() for part in document.text.split("z ")))
        for document in documents
    ]


TEXTS = texts_of(
    [*sentenced(random_documents(6, 60, 50)), make_document("empty", ""), make_document("short", "Baldur.")]
)


def convolved_by_hand(layers: GraphConvolutions, rows: Any, edges: Any) -> Any:  # noqa: ANN401
    """The equation, one entry of A' at a time."""
    looped = np.asarray(edges, np.float64) + np.eye(len(edges))
    degree = looped.sum(1)
    adjacency = [[looped[i, j] / np.sqrt(degree[i] * degree[j]) for j in range(len(edges))] for i in range(len(edges))]
    for number, (weight, bias) in enumerate(zip(layers.weights, layers.biases, strict=True)):
        rows = np.maximum(rows, 0) if number else rows
        rows = np.array(adjacency) @ rows @ weight.detach().numpy() + bias.detach().numpy()
    return rows


def score_by_hand(model: ConceptMatcher, first: ConceptText, second: ConceptText) -> float:
    """The equations over a single pair, vertex by vertex."""
    graph = concept_graph(first, second, Grouping())
    matched = []
    for vertex in range(graph.n_vertices):
        encoded = []
        for text, places in ((first, graph.first), (second, graph.second)):
            sentences = torch.from_numpy(text.words.ids).split(text.words.sentences.tolist())
            words = [
                word for sentence, place in zip(sentences, places, strict=True) if place == vertex for word in sentence
            ]
            rows = [torch.relu(model.filters(model.embedding(word))) for word in words]
            encoded.append(torch.stack(rows).amax(0) if rows else torch.zeros(model.filters.out_features))
        a, b = encoded
        matched.append(torch.cat([(a - b).abs(), a * b]).detach().numpy())
    rows = np.concatenate(
        [
            convolved_by_hand(model.of_encoded, np.stack(matched), graph.edges),
            convolved_by_hand(model.of_similarities, graph.similarities, graph.edges),
        ],
        1,
    )
    features = np.concatenate([rows.mean(0), graph.of_documents])
    return float(model.layers(torch.from_numpy(features).float()).detach())


def random_model(config: ConceptMatcherConfig = SMALL) -> ConceptMatcher:
    torch.manual_seed(0)
    model = ConceptMatcher(config, random_table(width=5)).eval()
    for bias in (*model.of_encoded.biases, *model.of_similarities.biases):
        torch.nn.init.normal_(bias)
    return model


def test_graph_convolutions_are_those_of_the_equation() -> None:
    torch.manual_seed(0)
    layers = GraphConvolutions((4, 6, 3), 0.0).double()
    for bias in layers.biases:
        torch.nn.init.normal_(bias)
    edges = np.abs(np.random.default_rng(0).standard_normal((5, 5)))
    edges = np.triu(edges, 1) + np.triu(edges, 1).T
    rows = torch.randn(5, 4, dtype=torch.float64)
    found = layers(rows[None], torch.from_numpy(normalized(edges))[None])[0]
    np.testing.assert_allclose(found.detach(), convolved_by_hand(layers, rows.numpy(), edges), rtol=1e-9)


def test_a_vertex_without_edges_is_convolved_alone() -> None:
    np.testing.assert_array_equal(normalized(np.zeros((3, 3), np.float32)), np.eye(3))


def test_logits_equal_the_equations_in_any_batch() -> None:
    model = random_model()
    pairs = [*pairwise(TEXTS), (TEXTS[-1], TEXTS[0]), (TEXTS[-2], TEXTS[-2])]
    assert len({concept_graph(*pair, Grouping()).n_vertices for pair in pairs}) > 2
    found = model([one for one, _ in pairs], [other for _, other in pairs])
    np.testing.assert_allclose(found.detach(), [score_by_hand(model, *pair) for pair in pairs], atol=1e-5, rtol=1e-4)


def test_the_score_does_not_depend_on_which_document_is_first() -> None:
    model = random_model()
    found = model(TEXTS[:-1], TEXTS[1:])
    torch.testing.assert_close(found, model(TEXTS[1:], TEXTS[:-1]), atol=1e-5, rtol=1e-5)
    assert len(set(found.tolist())) > 3


@pytest.mark.parametrize("changed", [{"is_grouped": False}, {"compares_documents": False}])
def test_switching_off_a_part_changes_the_score(changed: dict[str, bool]) -> None:
    def logits(config: ConceptMatcherConfig) -> Tensor:
        return random_model(config)(TEXTS[:4], TEXTS[1:5])

    assert not torch.allclose(logits(SMALL), logits(replace(SMALL, **changed)))  # type: ignore[arg-type]


def test_the_model_has_as_many_parameters_as_the_released_code() -> None:
    model = ConceptMatcher(ConceptMatcherConfig(), random_table(width=200).requires_grad_(False))
    encoder = 200 * 32 + 32
    convolutions = (64 * 128 + 128) + (128 * 16 + 16) + (5 * 16 + 16) + (16 * 16 + 16)
    assert n_parameters(model) == encoder + convolutions + (37 * 16 + 16) + (16 + 1)


def topical_documents() -> dict[str, Document]:
    """Eight topics of ten words each, five documents a topic; a sentence has three words of the topic."""
    rng = np.random.default_rng(0)
    documents = {}
    for topic in range(8):
        for number in range(5):
            words = [WORDS[10 * topic + at] for at in rng.integers(0, 10, 24)]
            text = " ".join(" ".join(words[at : at + 3]).capitalize() + "." for at in range(0, 24, 3))
            documents[f"t{topic}d{number}"] = make_document(f"t{topic}d{number}", text)
    return documents


def pairs_of(numbers: tuple[int, int], topics: Sequence[int] = range(8)) -> list[Pair]:
    one, other = numbers
    matching = [Pair(f"t{topic}d{one}", f"t{topic}d{other}", True) for topic in topics]
    return matching + [Pair(f"t{topic}d{one}", f"t{(topic + 3) % 8}d{other}", False) for topic in topics]


def fitted_matcher(config: ConceptMatcherConfig = SMALL, *, steps: int = 30) -> TrainedScorer[ConceptText]:
    scorer = concept_matcher(config, OVERFITTING)
    scorer.fit(Fit(topical_documents(), [*pairs_of((0, 1)), *pairs_of((1, 2))], [], Budget(steps, 32), 0))
    return scorer


@pytest.mark.slow
def test_a_few_training_steps_suffice_to_match_unseen_documents() -> None:
    scorer, unseen = fitted_matcher(), pairs_of((3, 4))
    assert share_right(scorer, unseen) == 1
    np.testing.assert_allclose(scorer.score(unseen), scorer.score(turned(unseen)), atol=1e-4)


def test_the_sentences_alone_are_enough_to_learn_pairs_by_heart() -> None:
    torch.manual_seed(0)
    config = replace(SMALL, filters=16, encoder_width=16, compares_documents=False)
    model = ConceptMatcher(config, random_table(width=8))
    for weight in model.of_similarities.weights:
        torch.nn.init.zeros_(weight.requires_grad_(False))
    first, second = TEXTS[:5], TEXTS[1:6]
    labels = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0])
    optimizer = torch.optim.Adam([weight for weight in model.parameters() if weight.requires_grad], 1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(model(first, second), labels).backward()
        optimizer.step()
    assert ((model(first, second) > 0) == labels.bool()).all()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_scores() -> None:
    pairs = pairs_of((3, 4))
    dropping = replace(SMALL, dropout=0.3)
    scores = [fitted_matcher(dropping, steps=4).score(pairs) for _ in range(2)]
    np.testing.assert_array_equal(*scores)


def test_documents_without_words_have_finite_scores() -> None:
    documents = topical_documents() | {name: make_document(name, text) for name, text in (("no", ""), ("the", "the."))}
    scorer = concept_matcher(SMALL, OVERFITTING)
    train = [*pairs_of((0, 1)), Pair("no", "t0d0", False), Pair("the", "no", False)]
    scorer.fit(Fit(documents, train, [], Budget(3, 32), 0))
    pairs = [Pair("no", "the", False), Pair("the", "t1d1", False), Pair("no", "no", True)]
    assert np.isfinite(scorer.score(pairs)).all()


def test_settings_hold_the_sizes_and_the_limits_of_grouping() -> None:
    settings = concept_matcher().settings
    assert {"max_keywords": 20, "grouping_most": 6, "grouping_least": 2, "is_grouped": True}.items() <= settings.items()
