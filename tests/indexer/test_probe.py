"""Counts of a sample are those of a run, and speeds are measured on the sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine.encoders.encoder import EncodedDocument, SegmentedDocument
from engine.readers import Unreadable
from engine.store.catalog import CATALOG_FILE
from engine.store.documents import content_hash
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.encoding_speed import tokens_per_second
from indexer.building.pipeline import Pipeline
from indexer.plan.sample import Drawn, Unit
from indexer.plan.sample_measurement import (
    Counts,
    Known,
    Sample,
    catalog_bytes,
    read_sample,
    store_seconds_per_char,
)
from tests.fakes import FakeEncoder, make_corpus, make_document

CORPUS = make_corpus(12)


class Made(Unit):
    """A unit that holds its document; nothing is read."""

    def __init__(self, document: Document | Unreadable) -> None:
        super().__init__("made", document.doc_id, 1)
        object.__setattr__(self, "made", document)

    def read(self) -> Document | Unreadable:
        made: Document | Unreadable = self.made  # type: ignore[attr-defined]
        return made


def drawn(documents: list[Document | Unreadable], n: float = 1.0) -> list[Drawn]:
    return [Drawn(Made(one), n, n) for one in documents]


def counted(documents: list[Document | Unreadable], known: Known | None = None, n: float = 1.0) -> Counts:
    return read_sample(drawn(documents, n), FakeEncoder(), known or Known()).counts


def test_a_sample_of_all_documents_has_the_counts_of_a_run(tmp_path: Path) -> None:
    counts = counted([*CORPUS, Unreadable("x", "bad", "x"), make_document("void", " ")])
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim({"name": "fake", "fingerprint": "f" * 32, "width": 32})
        report = Pipeline(writer, FakeEncoder()).run(CORPUS)
    assert (counts.n_new, counts.n_unreadable, counts.is_all) == (12, 2, True)
    assert (counts.n_tokens, counts.n_chunks) == (report.n_tokens, report.n_chunks)
    assert counts.n_chars == sum(len(one.text) for one in CORPUS)


def test_new_changed_and_unchanged_documents_are_counted_separately() -> None:
    hashes = {one.doc_id: content_hash(one) for one in CORPUS[:8]}
    known = Known(hashes, dict.fromkeys(hashes, 5))
    counts = counted([*CORPUS[:7], replace(CORPUS[7], text=CORPUS[7].text.upper()), *CORPUS[8:]], known)
    assert (counts.n_unchanged, counts.n_changed, counts.n_new, counts.n_chunks_replaced) == (7, 1, 4, 5)
    assert counts.n_chars == sum(len(one.text) for one in CORPUS[7:])


def test_a_document_that_stands_for_ten_counts_ten_times() -> None:
    one, ten = counted(list(CORPUS)), counted(list(CORPUS), n=10.0)
    assert (ten.n_new, ten.n_tokens, ten.is_all) == (120, 10 * one.n_tokens, False)
    assert ten.catalog_bytes == pytest.approx(10 * one.catalog_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("n_words", [30, 400, 3_000])
def test_the_size_of_the_catalog_is_that_of_sqlite(tmp_path: Path, n_words: int) -> None:
    documents = [
        make_document(
            f"folder/document-{number:03d}.md",
            [
                (f"Section {part}", " ".join(f"{(number * 31 + word * part) % 9973:x}" for word in range(n_words // 4)))
                for part in range(1, 5)
            ],
            metadata={"year": 2000 + number},
        )
        for number in range(80)
    ]
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim({"name": "fake", "fingerprint": "f" * 32, "width": 32})
    empty = (tmp_path / "x.lm" / CATALOG_FILE).stat().st_size
    with Writer(tmp_path / "x.lm") as writer:
        Pipeline(writer, FakeEncoder()).run(documents)
    grown = (tmp_path / "x.lm" / CATALOG_FILE).stat().st_size - empty
    assert sum(map(catalog_bytes, documents)) == pytest.approx(grown, rel=0.15)


def test_speeds_are_measured_on_the_documents_that_were_kept() -> None:
    sample: Sample = read_sample(drawn(list(CORPUS)), FakeEncoder(), Known())
    encoder = FakeEncoder()
    assert tokens_per_second(sample.kept, encoder) > 0
    assert set(encoder.encoded) == {one.doc_id for one in CORPUS}
    assert store_seconds_per_char(sample.kept, 32) > 0


@pytest.mark.parametrize(("enough_seconds", "largest"), [(1000.0, 8 * 4096), (0.0, 2 * 4096)])
def test_speed_is_that_of_a_large_group_unless_encoding_is_slow(
    enough_seconds: float, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.building.encoding_speed._ENOUGH_SECONDS", enough_seconds)
    long = " ".join(f"word{number}" for number in range(5_000))
    sample = read_sample(drawn([make_document(f"long{number}", long) for number in range(12)]), FakeEncoder(), Known())
    groups: list[int] = []

    class Counting(FakeEncoder):
        def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
            groups.append(sum(document.coverage.tokens_read for document in documents))
            return super().encode_segmented(documents)

    tokens_per_second(sample.kept, Counting())
    assert groups[-1] == largest


def test_of_a_long_document_only_the_first_chunks_are_encoded() -> None:
    long = make_document("long", " ".join(f"word{number}" for number in range(20_000)))
    sample = read_sample(drawn([long]), FakeEncoder(), Known())
    read: list[int] = []

    class Counting(FakeEncoder):
        def _one(self, segmented: SegmentedDocument) -> EncodedDocument:
            read.append(segmented.coverage.tokens_read)
            return super()._one(segmented)

    tokens_per_second(sample.kept, Counting())
    assert read == [512, 4096]
    assert sample.counts.n_tokens == 20_000
