"""The scores of the teacher are compared with plain loops over the vectors of its index."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.errors import QueryError
from engine.index import Index
from engine.text.document import Document
from engine.training.selection import PairBatch, keep_chunks
from engine.training.tasks.teacher import IndexTeacher
from tests.fakes import FakeEncoder, make_document


def batch_of(queries: list[Document], targets: list[Document]) -> PairBatch:
    """A batch of which the student reads one chunk of each document."""
    none = np.zeros((len(queries), len(targets)), np.bool_)
    cut = [keep_chunks(FakeEncoder().segment(document), [0]) for document in (*queries, *targets)]
    return PairBatch(cut[: len(queries)], cut[len(queries) :], none, none)


def test_scores_are_mean_best_matches_over_all_chunks(index: Index, corpus: list[Document]) -> None:
    queries, targets = corpus[3:6], corpus[10:17]
    encoded = {one.doc_id: FakeEncoder().encode([one])[0].chunks for one in (*queries, *targets)}
    expected = [
        [
            sum(max(float(a @ b) for b in encoded[target.doc_id]) for a in encoded[query.doc_id])
            / len(encoded[query.doc_id])
            for target in targets
        ]
        for query in queries
    ]
    scores = IndexTeacher(index).scores(batch_of(queries, targets))
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores, torch.tensor(expected), atol=1e-3, rtol=0)  # stored in half precision


def test_a_document_missing_from_the_index_of_the_teacher_raises_an_error(index: Index, corpus: list[Document]) -> None:
    with pytest.raises(QueryError, match=r"^no document 'new' among 60 in "):
        IndexTeacher(index).scores(batch_of(corpus[:1], [make_document("new", "text")]))
