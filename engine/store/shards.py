"""Immutable files of float16 vectors and term counts, one per committed batch, memory-mapped for reading.

The catalog holds a checksum of each file, and digests of its parts: the header, and each
tensor. A reader compares a part with its digest before its first use, so that a query for
document vectors does not read all chunks. Term counts are packed. The separate counts by kind
of section are read by searches that leave a kind out, and by copies.

Letters in shapes: N documents of a shard, S their sections, C their chunks, D width, T their
terms (W words or P pairs).
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexDamaged, StorageError
from engine.store.catalog import NamedRow
from engine.store.durable import Checksum, check_mapped, check_part, check_size, write_durably
from engine.store.tensors import header_stop, map_file, mapped_tensors, read_header, save_file
from engine.words.apart import Apart
from engine.words.counts import PackedTable, PackedWords, WordTables, pack

SHARD_FOLDER = "shards"
_VECTORS = ("documents", "sections", "chunks", "spans")
_KINDS = ("words", "pairs")
_COLUMNS = ("lows", "middles", "highs", "counts", "starts", "count_starts", "occurrences")
_APART_ARRAYS = ("kinds", "section_starts", "groups", "group_starts")
_APART = "apart_"  # prefix of the tensors with separate counts by kind of section
_HEADER = "header"


@dataclass(frozen=True, slots=True)
class Shard:
    """The arrays of one shard, mapped from disk."""

    documents: NDArray[np.float16]  # (N, D)
    sections: NDArray[np.float16]  # (S, D)
    chunks: NDArray[np.float16]  # (C, D)
    spans: NDArray[np.int32]  # (C, 4): section in its document, start, stop, tokens
    words: PackedWords  # of N documents


class ShardSet:
    """The shards that one reader is pinned to: all mapped at once, each part checked and parsed at first use."""

    def __init__(self, folder: Path, rows: Iterable[NamedRow]) -> None:
        """Map the shards of an index folder that rows of its catalog name."""
        self._rows = {row.id: row for row in rows}
        self._paths = {number: folder / row.file for number, row in self._rows.items()}
        self._mapped = {number: map_file(path) for number, path in self._paths.items()}
        self._whole: dict[int, Shard] = {}
        self._parts: dict[int, _Parts] = {}
        self._words: dict[tuple[int, bool], PackedWords] = {}

    @property
    def is_whole(self) -> bool:
        """Whether all files existed."""
        return all(content is not None for content in self._mapped.values())

    def __getitem__(self, number: int) -> Shard:
        """All arrays of a shard, the whole file checked.

        Raises:
            IndexDamaged: the file is not the one that was written.
        """
        if number not in self._whole:
            path = self._paths[number]
            content = check_mapped(self._mapped[number], path, self._written(number))
            with _named_faults(path):
                self._whole[number] = parse_shard(content)
        return self._whole[number]

    def add(self, shard: Shard) -> int:
        """Add a shard that is only in memory; returns its number, which no file has."""
        number = min(0, *self._whole) - 1 if self._whole else -1
        self._whole[number] = shard
        return number

    def documents(self, number: int) -> NDArray[np.float16]:
        """Document vectors (N, D) of a shard; like all parts, raises IndexDamaged if it is not what was written."""
        return self._part(number, "documents")

    def sections(self, number: int) -> NDArray[np.float16]:
        """Section vectors (S, D) of a shard."""
        return self._part(number, "sections")

    def chunks(self, number: int) -> NDArray[np.float16]:
        """Chunk vectors (C, D) of a shard."""
        return self._part(number, "chunks")

    def spans(self, number: int) -> NDArray[np.int32]:
        """Spans (C, 4) of the chunks of a shard, see `Shard`."""
        return self._part(number, "spans")

    def words(self, number: int, *, apart: bool = False) -> PackedWords:
        """The term counts of a shard; with `apart`, with the separate counts by kind of section."""
        if number in self._whole:
            words = self._whole[number].words
            return words if apart else replace(words, apart=None)
        if (number, apart) not in self._words:
            self._words[number, apart] = _stored_words(self._opened(number), apart=apart)
        return self._words[number, apart]

    def _part(self, number: int, name: str) -> NDArray[Any]:
        if number in self._whole:
            whole: NDArray[Any] = getattr(self._whole[number], name)
            return whole
        return self._opened(number)[name]

    def _opened(self, number: int) -> _Parts:
        if number not in self._parts:
            path, digests = self._paths[number], json.loads(self._rows[number].part_digests)
            with _named_faults(path):
                self._parts[number] = _Parts(self._mapped[number], path, self._written(number), digests)
        return self._parts[number]

    def _written(self, number: int) -> Checksum:
        return Checksum(self._rows[number].size_bytes, self._rows[number].digest)


@contextmanager
def _named_faults(path: Path) -> Iterator[None]:
    """Name the file in the error for a forged file, whose checksum is right but whose content is no shard."""
    try:
        yield
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise IndexDamaged(f"{path} is no shard ({error}); repair the index: longmatch upkeep repair INDEX") from error


class _Parts:
    """The tensors of one mapped file, each compared with its digest once."""

    def __init__(self, content: mmap.mmap | None, path: Path, expected: Checksum, digests: Mapping[str, str]) -> None:
        self._content = check_size(content, path, expected)
        self._path = path
        self._digests = digests
        self._checked: dict[str, NDArray[Any]] = {}
        stop = header_stop(self._content)
        check_part(self._content, 0, stop, path, digests[_HEADER])
        self._tensors = read_header(self._content)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._checked:
            with _named_faults(self._path):
                tensor = self._tensors[name]
                check_part(self._content, tensor.start, tensor.stop, self._path, self._digests[name])
                self._checked[name] = tensor.view(self._content)
        return self._checked[name]


def _stored_words(arrays: Mapping[str, NDArray[Any]] | _Parts, *, apart: bool) -> PackedWords:
    """The term counts among the tensors of a shard."""
    if not apart:
        return _packed_words(arrays, "", None)
    by_kind = {name: arrays[f"{_APART}{name}"] for name in _APART_ARRAYS}
    return _packed_words(arrays, "", Apart(**by_kind, counts=_packed_words(arrays, _APART, None)))


def _packed_words(
    arrays: Mapping[str, NDArray[Any]] | _Parts, prefix: str, apart: Apart[PackedWords] | None
) -> PackedWords:
    words, pairs = (PackedTable(*(arrays[f"{prefix}{kind}_{column}"] for column in _COLUMNS)) for kind in _KINDS)
    return PackedWords(words, pairs, apart)


def shard_arrays(encoded: Sequence[EncodedDocument], words: WordTables) -> Shard:
    """Concatenate vectors and term counts of documents to the arrays of a shard."""
    spans = [
        (span.section, span.start, span.stop, span.n_tokens) for document in encoded for span in document.chunk_spans
    ]
    return Shard(
        documents=np.stack([document.document for document in encoded]).astype(np.float16),
        sections=np.concatenate([one.sections for one in encoded]).astype(np.float16),
        chunks=np.concatenate([one.chunks for one in encoded]).astype(np.float16),
        spans=np.array(spans, np.int32).reshape(-1, 4),
        words=pack(words),
    )


def shard_file(number: int) -> str:
    """Name of a shard relative to the index folder."""
    return f"{SHARD_FOLDER}/{number:06d}.safetensors"


def write_shard(path: Path, shard: Shard) -> Checksum:
    """Write a shard durably; it belongs to the index only when the catalog names it."""
    tensors: dict[str, NDArray[Any]] = {name: getattr(shard, name) for name in _VECTORS}
    tensors |= _word_tensors(shard.words, "")
    assert shard.words.apart is not None
    tensors |= {f"{_APART}{name}": getattr(shard.words.apart, name) for name in _APART_ARRAYS}
    tensors |= _word_tensors(shard.words.apart.counts, _APART)
    return write_durably(path, lambda unfinished: save_file(tensors, unfinished))


def _word_tensors(words: PackedWords, prefix: str) -> dict[str, NDArray[Any]]:
    return {f"{prefix}{kind}_{column}": getattr(getattr(words, kind), column) for kind in _KINDS for column in _COLUMNS}


def parse_shard(content: mmap.mmap) -> Shard:
    """View a mapped shard, whose checksum was already compared with the catalog, as arrays."""
    arrays = mapped_tensors(content)
    return Shard(**{name: arrays[name] for name in _VECTORS}, words=_stored_words(arrays, apart=True))


def part_digests(path: Path) -> dict[str, str]:
    """Digests of the parts of a shard that was just written: of its header, and of each tensor by name."""
    content = _mapped(path)
    whole = memoryview(content)
    parts = {name: (tensor.start, tensor.stop) for name, tensor in read_header(content).items()}
    parts[_HEADER] = 0, header_stop(content)
    return {name: xxhash.xxh3_128_hexdigest(whole[start:stop]) for name, (start, stop) in parts.items()}


def _mapped(path: Path) -> mmap.mmap:
    """Map a shard that must exist."""
    content = map_file(path)
    if content is None:
        raise StorageError(
            f"{path} has vanished; check that no other program moves or deletes files of the index, then run the "
            "command again"
        )
    return content
