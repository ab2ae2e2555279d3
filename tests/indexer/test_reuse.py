"""Of a changed document only the changed chunks are encoded, and the result is that of a new index."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument, Vectors, unit
from engine.errors import EncoderError
from engine.readers import Unreadable, read_file
from engine.store.catalog import CATALOG_FILE, index_folders, open_catalog
from engine.store.checks import record_documents, record_tables
from engine.store.partitioned import open_snapshot, stored_sources
from engine.store.snapshot import IndexSnapshot
from engine.store.writable import engine_of
from engine.text.document import Document
from indexer.building.builder import EncodeNow, build
from indexer.building.corpus import FileIds, list_corpus, read_corpus
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


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def index(tmp_path: Path, *names: str, prefix: str = "", prune: bool = False, replace: bool = False) -> BuildReport:
    ids = FileIds(prefix, tmp_path / "x.lm")
    documents = read_corpus([str(tmp_path / name) for name in names], ids=ids)
    return build(tmp_path / "x.lm", documents, encoder=FakeEncoder(), prune=prune, replace_files=replace)


def held(tmp_path: Path) -> dict[str, str]:
    """Each doc_id of the index with its file, below the folder of the test."""
    return {
        doc_id: Path(source).relative_to(tmp_path).as_posix() for doc_id, source in stored_sources(tmp_path / "x.lm")
    }


def test_a_file_of_another_folder_never_replaces_one_of_the_same_name(tmp_path: Path) -> None:
    write(tmp_path, **{"2021__x": "foxes and rivers", "2022__x": "dogs and houses", "2022__y": "light"})
    index(tmp_path, "2021")
    report = index(tmp_path, "2022")
    assert (report.n_added, report.n_replaced) == (1, 0)
    assert report.failures == [
        Unreadable(
            str(tmp_path / "2022/x.txt"),
            f"doc_id 'x.txt' belongs to another file, {tmp_path}/2021/x.txt, which stays indexed; keep both with "
            "--id-prefix 2022/ (Python: id_prefix=), or put this one in its place with --replace (index.update)",
            "x.txt",
        )
    ]
    assert held(tmp_path) == {"x.txt": "2021/x.txt", "y.txt": "2022/y.txt"}


@pytest.mark.slow
def test_a_prefix_keeps_both_and_leaves_known_files_their_doc_ids(tmp_path: Path) -> None:
    write(tmp_path, **{"2021__x": "foxes and rivers", "2022__x": "dogs and houses"})
    index(tmp_path, "2021")
    assert index(tmp_path, "2022", prefix="2022/").n_added == 1
    both = {"x.txt": "2021/x.txt", "2022/x.txt": "2022/x.txt"}
    assert held(tmp_path) == both
    again = [index(tmp_path, "2022"), index(tmp_path, "2021", prefix="2021/"), index(tmp_path, "2021", "2022")]
    assert [one.n_unchanged for one in again] == [1, 1, 2] and held(tmp_path) == both


def test_a_file_replaces_another_one_on_request(tmp_path: Path) -> None:
    write(tmp_path, **{"v1__x": "foxes and rivers", "v2__x": "dogs and houses"})
    index(tmp_path, "v1")
    report = index(tmp_path, "v2", replace=True)
    assert (report.n_replaced, report.failures) == (1, []) and held(tmp_path) == {"x.txt": "v2/x.txt"}


def test_files_of_one_run_keep_the_names_of_their_folders(tmp_path: Path) -> None:
    write(tmp_path, **{"c1__x": "foxes", "c2__x": "dogs", "c2__sub__y": "light"})
    report = index(tmp_path, "c1", "c2")
    assert (report.n_added, report.failures) == (3, [])
    assert held(tmp_path) == {name: name for name in ("c1/x.txt", "c2/x.txt", "c2/sub/y.txt")}


def test_a_part_of_an_indexed_folder_is_not_indexed_twice(tmp_path: Path) -> None:
    write(tmp_path, **{"corpus__papers__a": "foxes", "corpus__b": "dogs"})
    index(tmp_path, "corpus")
    write(tmp_path, **{"corpus__papers__a": "foxes that changed"})
    report = index(tmp_path, "corpus/papers")
    assert (report.n_added, report.n_replaced) == (0, 1)
    assert sorted(held(tmp_path)) == ["b.txt", "papers/a.txt"]


def test_a_folder_and_its_part_give_the_names_of_the_folder_and_others_paths_below_each(tmp_path: Path) -> None:
    write(tmp_path, **{"corpus__papers__a": "foxes", "corpus__b": "dogs"})
    for names in (["corpus", "corpus/papers"], ["corpus/papers", "corpus"]):
        assert [name for _, name in list_corpus([str(tmp_path / name) for name in names]).named()] == [
            "b.txt",
            "papers/a.txt",
        ]
    write(tmp_path, **{"c1__x": "foxes", "c2__y": "dogs"})
    assert [name for _, name in list_corpus([str(tmp_path / "c1"), str(tmp_path / "c2")]).named()] == ["x.txt", "y.txt"]


def test_a_copy_leaves_the_document_to_the_first_file(tmp_path: Path) -> None:
    write(tmp_path, **{"2021__x": "foxes and rivers", "2022__x": "foxes and rivers"})
    index(tmp_path, "2021")
    assert index(tmp_path, "2022").n_unchanged == 1
    assert held(tmp_path) == {"x.txt": "2021/x.txt"}
    write(tmp_path, **{"2022__x": "dogs and houses"})
    assert len(index(tmp_path, "2022").failures) == 1


def test_a_corpus_that_was_moved_is_still_the_same(tmp_path: Path) -> None:
    write(tmp_path, old__x="foxes and rivers", old__y="light")
    index(tmp_path, "old")
    (tmp_path / "old").rename(tmp_path / "new")
    write(tmp_path, new__x="foxes and houses")
    lines: list[str] = []
    documents = read_corpus([str(tmp_path / "new")], ids=FileIds(index=tmp_path / "x.lm"))
    report = build(tmp_path / "x.lm", documents, encoder=FakeEncoder(), log=lines.append)
    assert (report.n_added, report.n_replaced, report.n_unchanged) == (0, 1, 1)
    assert held(tmp_path) == {"x.txt": "new/x.txt", "y.txt": "new/y.txt"}
    assert any(f"{tmp_path}/old/x.txt by {tmp_path}/new/x.txt" in line for line in lines)


@pytest.mark.slow
def test_an_index_of_relative_paths_finds_everything_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, **{"corpus__papers__a": "foxes", "corpus__b": "dogs"})
    index(tmp_path, "corpus")
    with (
        closing(open_catalog(tmp_path / "x.lm" / CATALOG_FILE, read_only=False)) as catalog,
        engine_of(catalog).begin(),
    ):
        catalog.execute("UPDATE documents SET source = replace(source, ?, '')", [f"{tmp_path}/"])
        record_documents(catalog)
        record_tables(catalog)
    monkeypatch.chdir(tmp_path)
    for folder in ("corpus/papers", "corpus"):
        report = build("x.lm", read_corpus([folder], ids=FileIds(index=Path("x.lm"))), encoder=FakeEncoder())
        assert (report.n_added, report.n_replaced, len(report.failures)) == (0, 0, 0)
    assert held(tmp_path) == {"papers/a.txt": "corpus/papers/a.txt", "b.txt": "corpus/b.txt"}


def test_a_prefix_stands_before_the_doc_ids_of_json_lines(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"id": "a", "text": "foxes"}\n{"id": "b", "text": "dogs"}\n')
    write(tmp_path, t="light")
    documents = read_corpus([str(tmp_path / "c.jsonl"), str(tmp_path / "t.txt")], ids=FileIds("p-"))
    assert [one.doc_id for one in documents] == ["p-a", "p-b", "p-t.txt"]
