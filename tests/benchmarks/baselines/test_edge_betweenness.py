from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from benchmarks.baselines.edge_betweenness import edge_betweenness


@pytest.mark.parametrize("density", [0.0, 0.08, 0.3, 1.0])
def test_betweenness_is_that_of_networkx(density: float) -> None:
    upper = np.triu(np.random.default_rng(3).random((25, 25)) < density, 1)
    graph = nx.from_numpy_array((upper | upper.T).astype(int))
    passed, reached = edge_betweenness(upper | upper.T)
    expected = np.zeros((25, 25))
    for (u, v), paths in nx.edge_betweenness_centrality(graph, normalized=False).items():
        expected[u, v] = expected[v, u] = paths
    np.testing.assert_allclose(passed, expected, atol=1e-9)
    components = [nx.node_connected_component(graph, vertex) for vertex in range(25)]
    assert [set(np.flatnonzero(row).tolist()) for row in reached] == components


def test_betweenness_of_a_chain_and_a_square_equals_the_counts_by_hand() -> None:
    chain = np.eye(4, k=1) + np.eye(4, k=-1) > 0
    assert [edge_betweenness(chain)[0][at, at + 1] for at in range(3)] == [3, 4, 3]
    square = chain | (np.eye(4, k=3) + np.eye(4, k=-3) > 0)
    assert set(edge_betweenness(square)[0][square].tolist()) == {2.0}  # one for its ends, half of each diagonal


def test_a_graph_of_one_vertex_has_no_paths() -> None:
    passed, reached = edge_betweenness(np.zeros((1, 1), np.bool_))
    assert (passed.tolist(), reached.tolist()) == ([[0.0]], [[True]])
