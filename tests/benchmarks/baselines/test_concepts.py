from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from benchmarks.baselines.concepts import Concept, Grouping, group


def grouped(sentences: Sequence[Sequence[int]], n_keywords: int, grouping: Grouping | None = None) -> list[Concept]:
    """Concepts of keywords given by the sentences they stand in."""
    occurs = np.zeros((len(sentences), n_keywords), np.bool_)
    for number, keywords in enumerate(sentences):
        occurs[number, list(keywords)] = True
    return group(occurs, grouping or Grouping())


def group_by_networkx(sentences: Sequence[Sequence[int]], n_keywords: int, grouping: Grouping) -> list[Concept]:
    """The algorithm over one graph of networkx, without copies."""
    graph = nx.Graph()
    graph.add_nodes_from(range(n_keywords))
    for keywords in sentences:
        for u, v in combinations(sorted(keywords), 2):
            graph.add_edge(u, v, weight=graph.edges[u, v]["weight"] + 1 if graph.has_edge(u, v) else 1)
    while True:
        for nodes in sorted(map(sorted, nx.connected_components(graph))):
            part = graph.subgraph(nodes)
            passed = {
                (min(edge), max(edge)): paths
                for edge, paths in nx.edge_betweenness_centrality(part, normalized=False).items()
            }
            if passed and not grouping.is_concept(len(nodes), max(passed.values())):
                edges = sorted(passed, key=lambda edge: (-round(passed[edge], 6), graph.edges[edge]["weight"], edge))
                graph.remove_edge(*edges[0])
                break
        else:
            return sorted(tuple(sorted(nodes)) for nodes in nx.connected_components(graph))


def test_keywords_of_two_topics_that_a_sentence_joins_are_two_concepts() -> None:
    topics = [(0, 1, 2, 3), (0, 1, 2, 3), (4, 5, 6, 7), (4, 5, 6, 7)]
    assert grouped([*topics, (3, 4)], 8) == [(0, 1, 2, 3), (4, 5, 6, 7)]


@pytest.mark.parametrize("seed", range(4))
def test_concepts_without_copies_are_those_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sentences = [rng.choice(18, rng.integers(1, 4), replace=False).tolist() for _ in range(25)]
    grouping = Grouping(most=5, least=2, overlap=1.0)
    assert grouped(sentences, 18, grouping) == group_by_networkx(sentences, 18, grouping)


def test_a_group_is_cut_by_its_size_and_by_its_busiest_edge() -> None:
    grouping = Grouping(most=6, least=2)
    assert grouping.is_concept(2, 100.0) and grouping.is_concept(1, 0.0)
    assert (grouping.is_concept(4, 3.58), grouping.is_concept(4, 3.59)) == (True, False)  # log2(6) + 1 = 3.585
    assert (grouping.is_concept(6, 4.9), grouping.is_concept(7, 1.0)) == (True, False)  # log2(15) + 1 = 4.907


def test_a_keyword_of_two_topics_belongs_to_both_concepts() -> None:
    # Three of the four sentences with 4 also hold 3; three of the five sentences with 3 hold 4.
    sentences = [(0, 1, 2, 3), (0, 1, 2, 3), (3, 4), (3, 4), (3, 4), (4, 5)]
    grouping = Grouping(most=4)
    assert grouped(sentences, 6, grouping) == [(0, 1, 2, 3), (3, 4, 5)]
    assert grouped(sentences, 6, Grouping(most=4, overlap=0.8)) == [(0, 1, 2, 3), (4, 5)]


def test_no_concept_is_larger_than_the_limit_and_no_keyword_is_lost() -> None:
    occurs = np.random.default_rng(0).random((60, 40)) < 0.2
    concepts = group(occurs, Grouping(most=5))
    assert max(map(len, concepts)) <= 5
    assert {keyword for concept in concepts for keyword in concept} == set(range(40))


def test_a_keyword_that_stands_alone_is_a_concept() -> None:
    assert grouped([(0,), (1, 2), ()], 4) == [(0,), (1, 2), (3,)]


def test_no_keywords_are_no_concepts() -> None:
    assert group(np.zeros((3, 0), np.bool_), Grouping()) == []
