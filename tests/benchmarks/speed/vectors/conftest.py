"""A small synthetic collection of 60 documents of 6 chunks, with queries of the same law."""

from __future__ import annotations

import pytest

from benchmarks.speed.vectors.collection import Collection, Law, synthetic

LAW = Law(n_documents=60, n_chunks=6, width=16, n_topics=12)


@pytest.fixture(scope="session")
def collection() -> Collection:
    return synthetic(LAW, n_queries=4, seed=0)
