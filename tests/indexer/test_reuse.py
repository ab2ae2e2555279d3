"""Of a changed document only the changed chunks are encoded, and the result is that of a new index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument, Vectors, unit
from engine.errors import EncoderError
from engine.readers import read_file
from engine.store.catalog import index_folders
from engine.store.partitioned import open_snapshot
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from indexer.building.builder import EncodeNow, build
from indexer.building.report import BuildReport
from indexer.upkeep.verify import verify
from tests.fakes import FakeEncoder, make_document

_LEAST_COSINE = 1 - 1e-6  # of a section or document vector with that of an encoding of the whole document
_DEMO = Path(__file__).parents[2] / "demo" / "corpus"


class ChunkEncoder(FakeEncoder):
    """Chunk by chunk: sections and documents are means of chunk vectors. Remembers the texts of chunks it encoded."""

    has_independent_chunks = True

    def __init__(self, **given: str) -> None:
        super().__init__(**given)  # type: ignore[arg-type]
        self.texts: list[str] = []

    def _one(self, segmented: SegmentedDocument) -> EncodedDocument:
        text = segmented.document.text
        texts = [text[chunk.start : chunk.stop] for chunk in segmented.chunks]
        self.texts += [" ".join(one.split()) for one in texts]
        return self.from_chunks(segmented, unit(np.stack([self._sum(one) for one in texts])))

    def from_chunks(self, document: SegmentedDocument, chunks: Vectors) -> EncodedDocument:
        tokens = np.array([[chunk.n_tokens] for chunk in document.chunks], np.float32)
        sections = np.zeros((len(document.document.sections), self.width), np.float32)
        np.add.at(sections, [chunk.section for chunk in document.chunks], tokens * chunks)
        whole = unit((tokens * chunks).sum(0))
        return EncodedDocument(whole, unit(sections), chunks, document.chunks, document.coverage)


class TitleEncoder(ChunkEncoder):
    """The first chunk says the title too."""

    def segment(self, document: Document) -> SegmentedDocument:
        return replace(super().segment(document), title_ids=tuple(document.title.encode()))


def words(name: str, count: int) -> str:
    return " ".join(f"{name}{number}" for number in range(count))


BEFORE = make_document("a", [("one", words("x", 15)), ("two", words("y", 7)), ("three", words("z", 7))])
OTHER = make_document("b", [("one", words("v", 7))])
# The second section is new, so only its chunk is.
AFTER = make_document("a", [("one", words("x", 15)), ("two", words("new", 7)), ("three", words("z", 7))])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "x.lm"


def indexed(folder: Path, documents: Sequence[Document], encoder: Encoder, encode: EncodeNow = "all") -> BuildReport:
    return build(folder, documents, encoder=encoder, encode=encode, language="english")


def changed(
    folder: Path, documents: Sequence[Document], encode: EncodeNow = "all", **given: str
) -> tuple[BuildReport, list[str]]:
    """Index documents by a new encoder; return the report, and the texts of the chunks that it encoded."""
    encoder = ChunkEncoder(**given)
    return indexed(folder, documents, encoder, encode), encoder.texts


def vectors(folder: Path, doc_id: str) -> tuple[Vectors, Vectors, Vectors, list[list[int]]]:
    with IndexSnapshot(folder) as snapshot:
        position = snapshot.position(doc_id)
        assert position is not None
        at = np.array([position])
        rows = snapshot.document_vectors[at], snapshot.section_vectors(position), snapshot.chunk_vectors(at)[0]
        return *rows, snapshot.spans(position).tolist()


def assert_close(folder: Path, fresh: Path, doc_id: str) -> None:
    """The same chunks, spans and counts; vectors within the bound."""
    *found, spans = vectors(folder, doc_id)
    *expected, expected_spans = vectors(fresh, doc_id)
    assert spans == expected_spans
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert (unit(one) * unit(other)).sum(1).min() > _LEAST_COSINE


@pytest.mark.slow
def test_only_changed_chunks_are_encoded(folder: Path, tmp_path: Path) -> None:
    indexed(folder, [BEFORE, OTHER], ChunkEncoder())
    stored = vectors(folder, "a")[2]
    report, texts = changed(folder, [AFTER, OTHER])
    assert texts == ["two " + words("new", 7)]
    assert (report.n_replaced, report.n_unchanged, report.n_encoded) == (1, 1, 1)
    assert (report.n_chunks, report.n_chunks_reused, report.n_tokens) == (4, 3, 8)
    now = vectors(folder, "a")[2]
    assert np.array_equal(now[[0, 1, 3]], stored[[0, 1, 3]])
    indexed(tmp_path / "fresh.lm", [AFTER, OTHER], ChunkEncoder())
    assert_close(folder, tmp_path / "fresh.lm", "a")
    assert verify(folder) == []


def test_a_new_title_or_order_encodes_nothing(folder: Path, tmp_path: Path) -> None:
    indexed(folder, [BEFORE], ChunkEncoder())
    sections = [("three", words("z", 7)), ("one", words("x", 15))]  # the second section was removed
    report, texts = changed(folder, [make_document("a", sections, title="another")])
    assert (texts, report.n_chunks, report.n_chunks_reused, report.n_tokens) == ([], 3, 3, 0)
    indexed(tmp_path / "fresh.lm", [make_document("a", sections, title="another")], ChunkEncoder())
    assert_close(folder, tmp_path / "fresh.lm", "a")


def test_a_new_title_encodes_the_first_chunk_where_the_encoder_reads_it(folder: Path) -> None:
    indexed(folder, [BEFORE], TitleEncoder())
    encoder = TitleEncoder()
    report = indexed(folder, [replace(BEFORE, title="another")], encoder)
    assert encoder.texts == ["one " + words("x", 7)] and report.n_chunks_reused == report.n_chunks - 1


def test_equal_chunks_take_one_stored_row(folder: Path, tmp_path: Path) -> None:
    indexed(folder, [make_document("a", words("x", 8) + " " + words("y", 8) + " " + words("x", 8))], ChunkEncoder())
    again = make_document("a", " ".join([words("x", 8), words("x", 8), words("q", 8), words("q", 8), words("x", 8)]))
    report, texts = changed(folder, [again])
    assert (texts, report.n_chunks_reused) == ([words("q", 8)] * 2, 3)
    indexed(tmp_path / "fresh.lm", [again], ChunkEncoder())
    assert_close(folder, tmp_path / "fresh.lm", "a")


def test_reused_rows_are_reused_again(folder: Path) -> None:
    indexed(folder, [BEFORE], ChunkEncoder())
    stored = vectors(folder, "a")[2]
    changed(folder, [AFTER])
    report, texts = changed(folder, [BEFORE])
    assert (texts, report.n_chunks_reused) == (["two " + words("y", 7)], 3)
    assert np.array_equal(vectors(folder, "a")[2], stored)


def test_an_encoder_whose_chunks_depend_on_their_document_encodes_all_chunks(folder: Path) -> None:
    encoder = FakeEncoder()
    indexed(folder, [BEFORE], encoder)
    report = indexed(folder, [AFTER], encoder)
    assert (encoder.encoded, report.n_chunks_reused, report.n_tokens) == (["a", "a"], 0, 32)
    with pytest.raises(EncoderError, match="chunks of fake depend on their document"):
        encoder.from_chunks(encoder.segment(AFTER), np.zeros((4, 32), np.float32))


def test_vectors_of_another_fingerprint_are_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    indexed(folder, [BEFORE], ChunkEncoder())
    monkeypatch.setattr("engine.store.writer.Writer.claim", lambda *_: None)  # it refuses another encoder
    report, texts = changed(folder, [AFTER], fingerprint="e" * 32)
    assert (len(texts), report.n_chunks_reused) == (4, 0)


def test_a_document_without_vectors_is_encoded(folder: Path) -> None:
    build(folder, [BEFORE, OTHER], encode="none", language="english")
    report, texts = changed(folder, [AFTER])
    assert sorted(texts)[0] == "one " + words("v", 7)
    assert (len(texts), report.n_encoded, report.n_chunks_reused) == (5, 2, 0)


def test_encoding_later_reuses_vectors_of_small_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.building.builder.sample_documents", lambda _: np.empty(0, np.int64))
    indexed(folder, [BEFORE, OTHER], ChunkEncoder())
    rewritten = make_document("b", [("one", words("u", 7))])
    report, texts = changed(folder, [AFTER, rewritten], "later")
    assert texts == ["two " + words("new", 7)]
    assert (report.n_replaced, report.n_encoded, report.n_missing, report.n_chunks_reused) == (2, 1, 1, 3)
    with IndexSnapshot(folder) as snapshot:
        assert dict(zip(snapshot.doc_ids(), snapshot.has_vectors.tolist(), strict=True)) == {"a": True, "b": False}


@pytest.mark.slow
def test_partitions_reuse_their_own_chunks(tmp_path: Path) -> None:
    folder, documents = tmp_path / "x.parts", [BEFORE, OTHER, replace(BEFORE, doc_id="c"), replace(BEFORE, doc_id="d")]
    build(folder, documents, encoder=ChunkEncoder(), language="english", partitions=2)
    with open_snapshot(folder) as snapshot:
        assert all(len(part.doc_ids()) for part in snapshot.parts) and len(index_folders(folder)) == 2
    report, texts = changed(folder, [AFTER, OTHER, replace(AFTER, doc_id="c"), replace(AFTER, doc_id="d")])
    assert texts == ["two " + words("new", 7)] * 3
    assert (report.n_replaced, report.n_chunks_reused) == (3, 9)


def test_a_damaged_stored_version_is_encoded_whole(folder: Path) -> None:
    indexed(folder, [BEFORE], ChunkEncoder())
    (shard,) = (folder / "shards").glob("*")
    content = bytearray(shard.read_bytes())
    at = content.index(vectors(folder, "a")[2].astype(np.float16).tobytes())
    content[at] ^= 1
    shard.write_bytes(content)
    logged: list[str] = []
    encoder = ChunkEncoder()
    report = build(folder, [AFTER], encoder=encoder, log=logged.append)
    assert (len(encoder.texts), report.n_replaced, report.n_chunks_reused) == (4, 1, 0)
    assert [line for line in logged if line.startswith("all chunks of a are encoded, as its stored version cannot")]


@pytest.mark.slow
def test_the_bundled_encoder_stays_within_the_bound(folder: Path, tmp_path: Path) -> None:
    from engine.encoders.loading import DEFAULT_ENCODER, load_encoder

    encoder = load_encoder(DEFAULT_ENCODER, device="cpu")
    (document,) = read_file(_DEMO / "peps" / "pep-0487.txt")
    assert isinstance(document, Document)
    half = document.sections[len(document.sections) // 2]
    before = replace(document, text=document.text[: half.start].ljust(len(document.text)))  # the rest is empty
    indexed(folder, [before], encoder)
    n_read = encoder.n_read
    report = indexed(folder, [document], encoder)
    assert 10 < report.n_chunks_reused < report.n_chunks - 10
    assert encoder.n_read - n_read == report.n_chunks - report.n_chunks_reused
    indexed(tmp_path / "fresh.lm", [document], encoder)
    assert_close(folder, tmp_path / "fresh.lm", document.doc_id)
