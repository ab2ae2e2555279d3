"""Word rotator's distance (Yokoi et al. 2020): how far words must turn, the long ones counting most."""

from __future__ import annotations

import numpy as np

from benchmarks.baselines.transport import Ground
from benchmarks.baselines.transport_baseline import TransportBaseline
from benchmarks.baselines.vector_file import WordVectors
from engine.encoders.encoder import unit


class WordRotators(TransportBaseline):
    """Optimal transport between the lengths of word vectors, at the cost of their angles.

        WRD = min_T sum_ij T_ij (1 - cos(x_i, y_j)),  sum_j T_ij = count_i |x_i| / sum of the same

    (arXiv:2004.15003), where 1 - cos = |u - v|^2 / 2 of unit vectors u, v. Words are those
    of `WordMovers`: the two differ in mass and cost alone.
    """

    name = "wrd"

    def _ground_of(self, vectors: WordVectors) -> Ground:
        lengths = np.linalg.norm(vectors.vectors.astype(np.float64), axis=1)
        return Ground(unit(vectors.vectors), lengths, lambda distance: distance**2 / 2, 2.0)
