"""A shard read again is what was written, in half precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from engine.encoders.encoder import EncodedDocument
from engine.errors import StorageError
from engine.store.durable import checksum
from engine.store.shards import Shard, map_file, parse_shard, part_digests, shard_arrays, shard_file, write_shard
from engine.text.segmentation import Chunk, Coverage
from engine.words.counts import PackedTable, PackedWords, WordTables, count_documents, unpacked
from engine.words.segmenter import WordSegmenter
from tests.fakes import FakeEncoder, make_corpus

_COLUMNS = ("lows", "middles", "highs", "counts", "starts", "count_starts", "occurrences")


@pytest.fixture
def encoded(encoder: FakeEncoder) -> list[EncodedDocument]:
    return encoder.encode(make_corpus(5))


def words_of(n_documents: int) -> WordTables:
    return count_documents(WordSegmenter("english"), make_corpus(n_documents))


def view(path: Path) -> Shard:
    content = map_file(path)
    assert content is not None
    return parse_shard(content)


def test_a_shard_lays_documents_one_after_another(encoded: list[EncodedDocument]) -> None:
    shard = shard_arrays(encoded, words_of(5))
    first = 0
    for number, one in enumerate(encoded):
        stop = first + len(one.chunks)
        assert np.array_equal(shard.chunks[first:stop], one.chunks.astype(np.float16))
        assert np.array_equal(shard.documents[number], one.document.astype(np.float16))
        spans = [[span.section, span.start, span.stop, span.n_tokens] for span in one.chunk_spans]
        assert shard.spans[first:stop].tolist() == spans
        first = stop
    assert np.array_equal(shard.sections, np.concatenate([one.sections for one in encoded]).astype(np.float16))


def _assert_equal(one: Shard, other: Shard) -> None:
    for name in ("documents", "sections", "chunks", "spans"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert getattr(one, name).dtype == getattr(other, name).dtype
    for kind in ("words", "pairs"):
        for column in ("terms", "counts", "starts"):
            mine, theirs = (getattr(getattr(unpacked(words), kind), column) for words in (one.words, other.words))
            assert np.array_equal(mine, theirs) and mine.dtype == theirs.dtype


def test_a_mapped_shard_equals_the_written_one(encoded: list[EncodedDocument], tmp_path: Path) -> None:
    shard = shard_arrays(encoded, words_of(5))
    written = write_shard(tmp_path / "s", shard)
    _assert_equal(view(tmp_path / "s"), shard)
    assert written == checksum(tmp_path / "s")


@pytest.mark.parametrize("width", [1, 3, 32])
def test_our_reading_of_safetensors_is_that_of_its_library(tmp_path: Path, width: int) -> None:
    rows = np.random.default_rng(0).standard_normal((3, width)).astype(np.float32)
    one = EncodedDocument(rows[0], rows[:1], rows, (Chunk(0, 0, 1, 1),) * 3, Coverage(3, 3))
    write_shard(tmp_path / "s", shard_arrays([one], words_of(1)))
    read = load_file(tmp_path / "s")
    vectors = {name: read[name] for name in ("documents", "sections", "chunks", "spans")}
    packed = [PackedTable(*(read[f"{kind}_{column}"] for column in _COLUMNS)) for kind in ("words", "pairs")]
    _assert_equal(view(tmp_path / "s"), Shard(**vectors, words=PackedWords(*packed)))


def test_a_mapped_shard_cannot_be_written_to(encoded: list[EncodedDocument], tmp_path: Path) -> None:
    write_shard(tmp_path / "s", shard_arrays(encoded, words_of(5)))
    with pytest.raises(ValueError, match="read-only"):
        view(tmp_path / "s").chunks[0, 0] = 1


def test_shards_are_named_by_number() -> None:
    assert shard_file(7) == "shards/000007.safetensors"


def test_the_error_for_a_shard_that_vanishes_names_it(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"000001\.safetensors has vanished; check that no other program"):
        part_digests(tmp_path / "000001.safetensors")
