"""Edge betweenness of a small graph, from all vertices at once. A pure function of an adjacency matrix.

networkx computes it in a loop over vertices; concepts need it a hundred times for a pair of documents.
Letters in shapes: V vertices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def edge_betweenness(joined: NDArray[np.bool_]) -> tuple[Matrix, NDArray[np.bool_]]:
    """The number of shortest paths through each edge, and which vertices reach each other.

    Girvan & Newman (2002, PNAS 99(12)): where two vertices have several shortest paths, each path counts its share. By
    Brandes' (2001) accumulation, with s(u, v) the number of shortest paths from u to v:

        d(u, v) = sum_{w one step beyond v} s(u, v) / s(u, w) (1 + d(u, w))

    Args:
        joined: (V, V), symmetric, False on the diagonal.

    Returns:
        (V, V) float64, symmetric, 0 where there is no edge; and (V, V) bool, True on the diagonal.
    """
    adjacency = joined.astype(np.float64)
    levels = [np.eye(len(joined))]  # by distance: number of shortest paths between vertices at that distance
    reached = levels[0] > 0
    while True:
        steps = np.where(reached, 0.0, levels[-1] @ adjacency)
        if not steps.any():
            break
        levels.append(steps)
        reached = reached | (steps > 0)
    passed = np.zeros_like(adjacency)
    beyond = np.zeros_like(adjacency)  # d of the level below
    for nearer, farther in zip(levels[-2::-1], levels[:0:-1], strict=True):
        share = np.divide(1 + beyond, farther, out=np.zeros_like(farther), where=farther > 0)
        passed += nearer.T @ share
        beyond = nearer * (share @ adjacency)
    passed *= adjacency
    return (passed + passed.T) / 2, reached
