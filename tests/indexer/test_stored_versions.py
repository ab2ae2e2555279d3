"""A writer reads the chunk vectors of single documents as they were written, and refuses damaged ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import IndexDamaged
from engine.store.writer import Writer
from indexer.building.builder import build
from indexer.building.reuse import StoredVersions
from tests.fakes import FakeEncoder, make_corpus, make_document

CORPUS = make_corpus(5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(tmp_path / "x.lm", CORPUS, encoder=FakeEncoder(), language="english", publish=False)
    return tmp_path / "x.lm"


def test_each_document_comes_with_its_own_chunks(folder: Path) -> None:
    encoded = FakeEncoder().encode(CORPUS)
    with Writer(folder) as writer:
        stored = StoredVersions(writer)
        known = writer.indexed([document.doc_id for document in CORPUS])
        for document, vectors in zip(CORPUS, encoded, strict=True):
            found = stored.find(known[document.doc_id].id)
            assert found is not None and found.document == document
            assert np.array_equal(found.chunks, vectors.chunks.astype(np.float16))
            spans = [[one.section, one.start, one.stop, one.n_tokens] for one in vectors.chunk_spans]
            assert found.spans.tolist() == spans


def test_a_document_that_is_gone_or_without_vectors_has_none(folder: Path) -> None:
    build(folder, [make_document("bare", "words alone")], encode="none", publish=False)
    with Writer(folder) as writer:
        assert StoredVersions(writer).find(writer.indexed(["bare"])["bare"].id) is None
        gone = writer.indexed(["doc001"])["doc001"].id
        writer.remove([gone])
        assert StoredVersions(writer).find(gone) is None


def test_a_damaged_shard_is_refused(folder: Path) -> None:
    (shard,) = (folder / "shards").glob("*")
    shard.write_bytes(shard.read_bytes()[:-1])
    with Writer(folder) as writer, pytest.raises(IndexDamaged, match="repair it: longmatch upkeep repair INDEX"):
        StoredVersions(writer).find(writer.indexed(["doc000"])["doc000"].id)
