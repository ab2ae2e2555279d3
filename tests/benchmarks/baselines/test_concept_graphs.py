from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np

from benchmarks.baselines.concept_graphs import ConceptText, concept_graph, read_concept_text, weigh_terms
from benchmarks.baselines.concepts import Grouping
from benchmarks.baselines.text_inputs import Vocabulary, read_words
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


def test_a_sentence_without_a_keyword_goes_to_the_vertex_without_keywords() -> None:
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
