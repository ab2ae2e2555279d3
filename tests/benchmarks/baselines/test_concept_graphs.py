from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.baselines.concept_graphs import (
    K1,
    B,
    ConceptText,
    concept_graph,
    content_words,
    cosines,
    keywords,
    read_concept_text,
    term_similarities,
    weigh_terms,
)
from benchmarks.baselines.concepts import Grouping
from benchmarks.baselines.text_inputs import Vocabulary, read_words
from engine.errors import MissingExtra
from tests.benchmarks.baselines.small_words import random_documents
from tests.fakes import make_document

VOCABULARY = Vocabulary({"kernel": 2, "garden": 3})
STARS = "Orbit telescope galaxy. Telescope galaxy comet. Galaxy comet orbit."
SOUP = "Onion carrot broth. Carrot broth pepper. Broth pepper onion."
CORPUS = [make_document(f"d{number}", text) for number, text in enumerate((STARS, SOUP, STARS + " " + SOUP))]


def read(text: str, *, max_words: int = 100, max_keywords: int = 20) -> ConceptText:
    document = make_document("one", text)
    return read_concept_text(document, VOCABULARY, weigh_terms(CORPUS), max_words=max_words, max_keywords=max_keywords)


def test_a_document_of_two_topics_has_two_concepts_with_their_sentences() -> None:
    graph = concept_graph(read(STARS + " " + SOUP), read("A comet! The broth of an onion."), Grouping())
    assert graph.concepts == (("broth", "carrot", "onion", "pepper"), ("comet", "galaxy", "orbit", "telescope"))
    assert (graph.first.tolist(), graph.second.tolist()) == ([1, 1, 1, 0, 0, 0], [1, 0])


def test_a_sentence_without_a_keyword_goes_to_the_vertex_of_none() -> None:
    graph = concept_graph(read(STARS + " It was so."), read("Comet."), Grouping())
    assert graph.concepts == (("comet", "galaxy", "orbit", "telescope"), ())
    assert (graph.first.tolist(), graph.second.tolist()) == ([0, 0, 0, 1], [0])


def test_without_grouping_each_keyword_is_a_concept() -> None:
    graph = concept_graph(read("Onion onion broth. Comet."), read("Comet."), None)
    assert graph.concepts == (("comet",), ("onion",))  # no sentence is nearest to broth
    assert graph.first.tolist() == [1, 0]


def test_edges_and_similarities_are_those_of_the_sentences_at_each_vertex() -> None:
    first, second = STARS + " " + SOUP + " Broth under a comet.", "Pepper comet pepper. Orbit broth comet."
    graph = concept_graph(read(first), read(second), Grouping())
    weights = weigh_terms(CORPUS)
    at_vertices: list[Counter[str]] = [Counter() for _ in graph.concepts]
    for text, vertices in ((first, graph.first), (second, graph.second)):
        for sentence, vertex in zip(text.lower().split("."), vertices.tolist(), strict=False):
            at_vertices[vertex].update(word for word in sentence.split() if word not in ("under", "a"))

    def dot(a: Counter[str], b: Counter[str]) -> float:
        return sum(count * b[word] * weights.idf(word) ** 2 for word, count in a.items())

    assert graph.n_vertices == 2
    one, other = at_vertices
    expected = dot(one, other) / math.sqrt(dot(one, one) * dot(other, other))
    np.testing.assert_allclose(graph.edges, [[0, expected], [expected, 0]], rtol=1e-6)
    assert 0 < expected < 1


def test_exchanging_the_documents_exchanges_the_sides_alone() -> None:
    documents = random_documents(6, 60, 80)
    texts = [read(document.text.replace("z ", "z. "), max_keywords=10) for document in documents]
    for one, other in pairwise(texts):
        graph, turned = (concept_graph(a, b, Grouping()) for a, b in ((one, other), (other, one)))
        assert graph.concepts == turned.concepts
        assert (graph.first.tolist(), graph.second.tolist()) == (turned.second.tolist(), turned.first.tolist())
        np.testing.assert_allclose(graph.edges, turned.edges, atol=1e-6)
        np.testing.assert_allclose(graph.similarities, turned.similarities, atol=1e-6)
        np.testing.assert_allclose(graph.of_documents, turned.of_documents, atol=1e-6)


def test_two_copies_of_a_document_are_wholly_alike_at_each_concept() -> None:
    text = read(STARS + " " + SOUP)
    graph = concept_graph(text, text, Grouping())
    np.testing.assert_allclose(graph.similarities, np.ones((2, 5)), rtol=1e-6)
    np.testing.assert_allclose(graph.of_documents, np.ones(5), rtol=1e-6)


def test_documents_without_words_or_keywords_are_one_vertex() -> None:
    for first, second in (("", ""), ("!", "It was so. And so."), ("of the", "")):
        graph = concept_graph(read(first), read(second), Grouping())
        assert (graph.concepts, graph.edges.tolist()) == (((),), [[0.0]])
        assert (graph.similarities.tolist(), set(graph.first.tolist())) == ([[0.0] * 5], {0})


def test_a_document_without_words_beside_one_with_words_has_its_own_vertex() -> None:
    graph = concept_graph(read(""), read(SOUP), Grouping())
    assert graph.concepts == (("broth", "carrot", "onion", "pepper"), ())
    assert (graph.first.tolist(), graph.second.tolist()) == ([1], [0, 0, 0])


def test_words_behind_the_limit_are_not_read() -> None:
    text = read(STARS + " " + SOUP, max_words=6)
    assert text.terms == ("comet", "galaxy", "orbit", "telescope")
    assert (len(text), text.n_sentences) == (6, 2)
    assert text.words.sentences.tolist() == read_words(make_document("one", STARS), VOCABULARY, 6).sentences.tolist()


def test_a_term_that_no_document_holds_is_the_rarest() -> None:
    weights = weigh_terms(CORPUS)
    assert weights.idf("comet") == math.log(4 / 3) + 1
    assert weights.idf("nowhere") == math.log(4) + 1


SENTENCES = [
    "graph vertex edge graph path".split(),
    "vertex graph kernel".split(),
    "path tree".split(),
    "lonely".split(),
]


def ranks_by_hand(sentences: list[list[str]], window: int) -> dict[str, float]:
    """The equation as a linear system."""
    words = sorted({word for sentence in sentences for word in sentence})
    joined = np.zeros((len(words), len(words)))
    for sentence in sentences:
        for at, word in enumerate(sentence):
            for other in sentence[at + 1 : at + window]:
                if other != word:
                    joined[words.index(word), words.index(other)] = joined[words.index(other), words.index(word)] = 1
    degree = joined.sum(0)
    share = np.divide(joined, degree, out=np.full_like(joined, 1 / len(words)), where=degree > 0)
    start = np.full(len(words), 0.15 / len(words))
    return dict(zip(words, np.linalg.solve(np.eye(len(words)) - 0.85 * share, start), strict=True))


def test_keywords_are_those_of_the_highest_pagerank() -> None:
    ranks = ranks_by_hand(SENTENCES, 5)
    expected = sorted(ranks, key=lambda word: (-round(ranks[word], 6), word))
    assert keywords(SENTENCES, 100) == expected
    assert keywords(SENTENCES, 2) == expected[:2] == ["path", "graph"]


def test_words_of_equal_rank_are_in_the_order_of_their_names() -> None:
    assert keywords([["cat", "ant"], ["bee", "dog"]], 3) == ["ant", "bee", "cat"]


def test_words_far_apart_are_not_joined() -> None:
    sentence = [f"word{letter}" for letter in "abcdefghi"]
    near, far = (ranks_by_hand([sentence], window) for window in (5, 9))
    order = keywords([sentence], 9)
    assert order == sorted(near, key=lambda word: (-round(near[word], 6), word))
    assert order != sorted(far, key=lambda word: (-round(far[word], 6), word))


def test_a_text_without_words_has_no_keywords() -> None:
    assert keywords([], 5) == keywords([[], []], 5) == []


def test_stop_words_digits_and_letters_are_no_content() -> None:
    assert content_words([["the", "graph", "x", "b2", "of"], ["and"]]) == [["graph"], []]


def test_a_missing_networkx_is_reported_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtra, match=r"TextRank needs networkx; install it: .* 'longmatch\[baselines\]'$"):
        keywords(SENTENCES, 2)


RNG = np.random.default_rng(0)
FIRST, SECOND = (RNG.poisson(0.8, (6, 9)).astype(np.float64) for _ in range(2))
FIRST[2] = 0
SECOND[3] = 0
FIRST[4] = SECOND[4] = 0
IDF = RNG.uniform(1, 4, 9)


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    lengths = math.sqrt(sum(x * x for x in a) * sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def by_hand(a: list[float], b: list[float], mean: float) -> list[float]:
    """The equations for one pair, term by term."""

    def bm25(text: list[float]) -> list[float]:
        norm = K1 * (1 - B + B * sum(text) / mean)
        return [idf * tf * (K1 + 1) / (tf + norm) for idf, tf in zip(IDF, text, strict=True)]

    held = {at for at, tf in enumerate(a) if tf}, {at for at, tf in enumerate(b) if tf}
    shared = len(held[0] & held[1])
    tf_idf = [[idf * tf for idf, tf in zip(IDF, text, strict=True)] for text in (a, b)]
    either, product = len(held[0] | held[1]), len(held[0]) * len(held[1])
    return [
        cosine(*tf_idf),
        cosine(a, b),
        cosine(bm25(a), bm25(b)),
        shared / either if either else 0.0,
        shared / math.sqrt(product) if product else 0.0,
    ]


def test_similarities_are_those_of_the_equations() -> None:
    lengths = [length for length in [*FIRST.sum(1), *SECOND.sum(1)] if length]
    mean = sum(lengths) / len(lengths)
    expected = [by_hand(a, b, mean) for a, b in zip(FIRST.tolist(), SECOND.tolist(), strict=True)]
    found = term_similarities(FIRST, SECOND, IDF)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (found[[2, 3, 4]] == 0).all() and (found[[0, 1, 5]] > 0).all()


def test_cosines_of_rows_are_those_of_a_loop() -> None:
    expected = [[cosine(a, b) for b in FIRST.tolist()] for a in FIRST.tolist()]
    np.testing.assert_allclose(cosines(FIRST), expected, atol=1e-12)


def test_texts_without_terms_have_no_similarity() -> None:
    empty = np.zeros((2, 0))
    assert term_similarities(empty, empty, np.zeros(0)).tolist() == [[0.0] * 5] * 2
