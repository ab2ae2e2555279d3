"""Indexes whose documents have no vectors, or get them when they are candidates of a query."""

import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from engine.errors import IndexMismatch
from engine.index import Index
from engine.on_demand import BY_WORDS
from engine.result import Result, Status
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer, open_writers
from engine.text.document import Document
from indexer.building.builder import EncodeNow, build
from indexer.generation.generations import compact
from indexer.upkeep.repair import repair
from indexer.upkeep.verify import verify
from tests.fakes import FakeEncoder, few_first_vectors, make_corpus

N = 60
SAMPLE = 8


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    few_first_vectors(monkeypatch, SAMPLE)


@pytest.fixture
def corpus() -> list[Document]:
    return make_corpus(N)


def built(folder: Path, corpus: list[Document], encode: EncodeNow, encoder: FakeEncoder | None = None) -> Path:
    build(folder, corpus, encoder=encoder or FakeEncoder(), encode=encode)
    return folder


@pytest.fixture(scope="module")
def built_later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        few_first_vectors(patch)
        return built(tmp_path_factory.mktemp("later") / "x.lm", make_corpus(N), "later")


@pytest.fixture
def folder(built_later: Path, tmp_path: Path) -> Path:
    """An index of a corpus of which a sample has vectors."""
    return Path(shutil.copytree(built_later, tmp_path / "x.lm"))


def opened(folder: Path, encoder: FakeEncoder | None = None, **options: bool) -> Index:
    return Index.open(folder, encoder=encoder or FakeEncoder(), **options)  # type: ignore[arg-type]


def ranks(result: Result) -> list[tuple[str, float]]:
    return [(hit.doc_id, hit.score) for hit in result.hits]


def encoded_documents(folder: Path) -> set[str]:
    with IndexSnapshot(folder) as snapshot:
        names = np.array(snapshot.doc_ids())
        found: set[str] = set(names[snapshot.has_vectors].tolist())
        return found


def best_by_words(folder: Path, query: Document, k: int) -> list[str]:
    with opened(folder) as index:
        return [hit.doc_id for hit in index.search(query, Request(k=k, scoring=BY_WORDS, with_itself=True)).hits]


def test_an_index_of_words_needs_no_encoder(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus, encode="none")
    with Index.open(tmp_path / "x.lm") as index:
        result = index.search(corpus[5], Request(k=5, with_itself=True))
        with pytest.raises(IndexMismatch, match="holds words alone"):
            assert index.encoder
    assert (result.hits[0].doc_id, result.hits[0].score) == (corpus[5].doc_id, pytest.approx(1))
    assert (result.status, result.encoding, result.n_searched) == (Status.CERTIFIED, None, N)
    for hit in result.hits:
        assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-5)
        assert hit.breakdown.terms
    assert verify(tmp_path / "x.lm") == []


def test_later_encodes_a_sample_and_then_the_best_candidates(tmp_path: Path, corpus: list[Document]) -> None:
    folder = built(tmp_path / "x.lm", corpus, "later", encoder := FakeEncoder())
    assert len(encoder.encoded) == SAMPLE
    wanted = best_by_words(folder, corpus[7], 5)
    before = encoded_documents(folder)
    with opened(folder, searching := FakeEncoder()) as index:
        result = index.search(corpus[7], Request(k=5, candidates=5, with_itself=True))
    assert searching.encoded == [corpus[7].doc_id, *[name for name in wanted if name not in before]]
    assert (result.encoding.n_candidates, result.encoding.n_encoded) == (5, 5)
    assert result.encoding.n_missing == N - len(encoded_documents(folder))
    assert result.encoding.tokens_missing > 0
    assert result.status is Status.ESTIMATED
    assert {hit.doc_id for hit in result.hits if not hit.has_vectors} == {
        hit.doc_id for hit in result.hits if hit.doc_id not in encoded_documents(folder)
    }
    assert encoded_documents(folder) == before | set(wanted)
    assert verify(folder) == []


def test_a_hit_that_its_query_encoded_was_read(folder: Path, corpus: list[Document]) -> None:
    before = encoded_documents(folder)
    for _ in range(2):  # encoded for this query, and then read from the shards
        with opened(folder) as index:
            hits = index.search(corpus[7], Request(k=5, candidates=5, with_itself=True)).hits
        added = [hit for hit in hits if hit.doc_id in encoded_documents(folder) - before]
        assert added and all(0 < hit.coverage.tokens_read == hit.coverage.tokens_total for hit in added)


def test_documents_encoded_for_one_query_are_not_encoded_again(folder: Path, corpus: list[Document]) -> None:
    with opened(folder) as index:
        first, again = (ranks(index.search(corpus[7], Request(k=9, with_itself=True))) for _ in range(2))
    with opened(folder, encoder := FakeEncoder()) as index:
        reopened = index.search(corpus[7], Request(k=9, with_itself=True))
    assert encoder.encoded == [corpus[7].doc_id]  # the query alone
    assert first == again == ranks(reopened)
    assert reopened.encoding.n_encoded_now == 0


def test_other_scores_stay_when_a_document_is_encoded(folder: Path, corpus: list[Document]) -> None:
    with opened(folder) as index:
        none = {hit.doc_id: hit for hit in index.search(corpus[7], Request(k=N, candidates=0, with_itself=True)).hits}
        some = {hit.doc_id: hit for hit in index.search(corpus[7], Request(k=N, candidates=3, with_itself=True)).hits}
    changed = {name for name, hit in some.items() if name not in none or hit.score != none[name].score}
    assert changed
    assert changed <= {name for name, hit in some.items() if hit.has_vectors and not none[name].has_vectors}
    assert all(some[name].score >= none[name].score for name in none)  # vectors only add


@pytest.mark.slow
def test_an_index_encoded_later_equals_one_encoded_at_once(tmp_path: Path, corpus: list[Document]) -> None:
    later, whole = built(tmp_path / "later.lm", corpus, "later"), built(tmp_path / "all.lm", corpus, "all")
    with opened(later) as index:
        index.search(corpus[7], Request(with_itself=True))
    build(later, (), encoder=(encoder := FakeEncoder()))
    assert len(encoder.encoded) == len(set(encoder.encoded)) < N - SAMPLE
    with opened(later) as one, opened(whole) as other:
        for query in (corpus[3], corpus[31]):
            mine, theirs = (
                one.search(query, Request(k=N, with_itself=True)),
                other.search(query, Request(k=N, with_itself=True)),
            )
            assert ranks(mine) == ranks(theirs)
            assert mine.status is theirs.status is Status.CERTIFIED
            assert mine.encoding is None
        for document in corpus:
            assert np.array_equal(one.chunk_vectors(document.doc_id), other.chunk_vectors(document.doc_id))
        assert one.snapshot.reference.n_documents == other.snapshot.reference.n_documents
    assert verify(later) == []


@pytest.mark.slow
def test_words_alone_become_an_index_of_all(tmp_path: Path, corpus: list[Document]) -> None:
    words, whole = tmp_path / "words.lm", built(tmp_path / "all.lm", corpus, "all")
    build(words, corpus, encode="none")
    build(words, (), encoder=FakeEncoder())
    compact(words)
    with opened(words) as one, opened(whole) as other:
        assert ranks(one.search(corpus[3], Request(k=N, with_itself=True))) == ranks(
            other.search(corpus[3], Request(k=N, with_itself=True))
        )
    assert verify(words) == []


def test_a_query_beside_a_writer_keeps_its_vectors_for_itself(folder: Path, corpus: list[Document]) -> None:
    with opened(folder, store=False) as index:
        expected = ranks(index.search(corpus[7], Request(with_itself=True)))
    before, lines = encoded_documents(folder), list[str]()
    with Writer(folder), Index.open(folder, encoder=FakeEncoder(), log=lines.append) as index:
        assert ranks(index.search(corpus[7], Request(with_itself=True))) == expected
        assert ranks(index.search(corpus[7], Request(with_itself=True))) == expected
    assert encoded_documents(folder) == before
    assert "these vectors serve this process alone" in lines[1]
    assert len(lines) == 2  # the second search had nothing to encode


def test_an_index_that_cannot_be_written_is_searched(folder: Path, corpus: list[Document]) -> None:
    (folder / "writer.lock").unlink()
    (folder / "writer.lock").mkdir()  # nobody can take the lock
    with opened(folder) as index:
        result = index.search(corpus[7], Request(with_itself=True))
    assert result.encoding.n_encoded == result.encoding.n_candidates == 20


def test_many_queries_at_once_agree(folder: Path, corpus: list[Document]) -> None:
    with opened(folder, store=False) as index:
        expected = {one.doc_id: ranks(index.search(one, Request(candidates=9, with_itself=True))) for one in corpus[:1]}
    found: dict[str, list[tuple[str, float]]] = {}

    def search_one(document: Document) -> None:
        with opened(folder) as index:
            found[document.doc_id] = ranks(index.search(document, Request(candidates=9, with_itself=True)))

    threads = [threading.Thread(target=search_one, args=(document,)) for document in corpus[:6]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert found[corpus[0].doc_id][:5] == expected[corpus[0].doc_id][:5]
    assert verify(folder) == []


def test_tokens_are_a_limit(folder: Path, corpus: list[Document]) -> None:
    with opened(folder) as index:
        result = index.search(corpus[7], Request(candidates=20, encode_tokens=1, with_itself=True))
    assert result.encoding.n_encoded_now == 1
    assert result.encoding.n_encoded < result.encoding.n_candidates == 20


@pytest.mark.slow
def test_a_stopped_run_is_continued(tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.building.pipeline.BATCH_CHARS", 2_000)
    folder = built(tmp_path / "x.lm", corpus, "later")
    with Writer(folder) as writer:
        names = {one.id: name for name, one in writer.indexed([one.doc_id for one in corpus]).items()}
        waiting = [names[one] for one in writer.unencoded()]
    encoder = FakeEncoder(breaks_on=[waiting[-1]])
    with pytest.raises(RuntimeError):
        build(folder, (), encoder=encoder)
    assert encoder.encoded
    build(folder, (), encoder=(second := FakeEncoder()))
    assert not set(encoder.encoded) & set(second.encoded)
    assert encoded_documents(folder) == {one.doc_id for one in corpus}


def test_an_indexed_document_without_vectors_is_a_query(folder: Path, corpus: list[Document]) -> None:
    name = sorted(set(names.doc_id for names in corpus) - encoded_documents(folder))[0]
    with opened(folder) as index:
        result = index.search(name, Request(k=3))
        assert len(index.chunk_vectors(name))
    assert name not in [hit.doc_id for hit in result.hits]
    assert name in encoded_documents(folder)


def test_documents_added_later_to_a_whole_index_are_found(tmp_path: Path, corpus: list[Document]) -> None:
    folder = built(tmp_path / "x.lm", corpus[:40], "all")
    build(folder, corpus, encoder=(encoder := FakeEncoder()), encode="later")
    assert len(encoder.encoded) < 20
    with opened(folder) as index:
        result = index.search(corpus[55], Request(k=3, with_itself=True))
    assert result.hits[0].doc_id == corpus[55].doc_id
    assert result.hits[0].has_vectors


def test_a_damaged_shard_of_words_loses_no_document(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus, encode="none")
    (shard,) = (tmp_path / "x.lm" / "shards").iterdir()
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with Index.open(tmp_path / "x.lm") as index, pytest.raises(Exception, match="checksum"):
        index.search(corpus[0], Request(with_itself=True))
    report = repair(tmp_path / "x.lm")
    assert report.lost == []
    with Index.open(tmp_path / "x.lm") as index:
        assert index.search(corpus[0], Request(with_itself=True)).hits[0].doc_id == corpus[0].doc_id
    assert verify(tmp_path / "x.lm") == []


def test_a_filter_holds_for_candidates_too(folder: Path, corpus: list[Document]) -> None:
    before = encoded_documents(folder)
    with opened(folder) as index:
        result = index.search(corpus[8], Request(where="topic = 3", with_itself=True))
        allowed = {corpus[position].doc_id for position in np.flatnonzero(index.snapshot.matching("topic = 3"))}
    assert {hit.doc_id for hit in result.hits} <= allowed
    assert encoded_documents(folder) - before <= allowed


@pytest.mark.parametrize("partitions", [None, 2])
@pytest.mark.parametrize("n_encoded", [0, 7])
def test_an_index_of_words_that_is_gaining_vectors_answers_by_words(
    tmp_path: Path, corpus: list[Document], partitions: int | None, n_encoded: int
) -> None:
    """Its reference has no vectors until the run ends, or the run was killed."""
    folder, encoder = tmp_path / "x.lm", FakeEncoder()
    build(folder, corpus, encode="none", partitions=partitions, language="none")
    with opened(folder) as index:
        by_words = [ranks(index.search(corpus[3], Request(with_itself=True))), ranks(index.search("doc003"))]
    with open_writers(folder) as writers:
        writers.claim({"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width})
        writer = writers.parts[0]
        ids = writer.unencoded()[:n_encoded]
        documents = writer.documents(ids)
        if ids:
            writer.add_vectors(ids, encoder.encode(documents), writer.count_words(documents))
    with opened(folder) as index:
        found = [index.search(corpus[3], Request(with_itself=True)), index.search("doc003")]
        assert [ranks(result) for result in found] == by_words
        assert {result.status for result in found} == {Status.PARTIAL}
        assert index.search(corpus[3], Request(skip=("references",), exact=True, with_itself=True)).hits
    build(folder, corpus, encoder=FakeEncoder())
    with opened(folder) as index:
        assert index.search(corpus[3], Request(with_itself=True)).status is not Status.PARTIAL
