"""Word mover's distance (Kusner et al. 2015): how far the words of one document are from those of another."""

from __future__ import annotations

import numpy as np

from benchmarks.baselines.transport import Ground
from benchmarks.baselines.transport_baseline import TransportBaseline
from benchmarks.baselines.vector_file import WordVectors
from engine.encoders.encoder import unit


class WordMovers(TransportBaseline):
    """Optimal transport between normalised counts, at the cost of Euclidean distances between unit word vectors.

        WMD = min_T sum_ij T_ij |x_i - y_j|,  sum_j T_ij = count_i / sum of counts

    The paper takes word vectors as they are, gensim's `wmdistance` those of unit length,
    as here. English stop words are dropped, as in the paper, by another list.
    """

    name = "wmd"

    def _ground_of(self, vectors: WordVectors) -> Ground:
        return Ground(unit(vectors.vectors), np.ones(len(vectors.vectors)), lambda distance: distance, 2.0)
