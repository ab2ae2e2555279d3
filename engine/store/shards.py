"""Immutable safetensors files of vectors and term counts, written array by array, read as views of a memory map.

A shard holds one committed batch. Vectors are float16 in shards, float32 where they are multiplied, and one byte a
number in samples. The catalog holds a checksum of each file, and digests of its parts: the header, and each tensor. A
reader compares a part with its digest before its first use, so that a query for document vectors does not read all
chunks. The separate counts by kind of section are read by searches that leave a kind out, and by copies.

Letters in shapes: N documents of a shard, S their sections, C their chunks, D width, T their terms (W words or P
pairs).
"""

from __future__ import annotations

import json
import math
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
from engine.errors import StorageError, damaged_file
from engine.store.catalog import NamedRow
from engine.store.durable import Checksum, check_part, check_size, is_loss, write_durably
from engine.words.apart import Apart
from engine.words.counts import PackedTable, PackedWords, WordTables, pack

_DTYPES: dict[str, type[np.generic]] = {  # in the order in which safetensors writes them, so every array is aligned
    "I64": np.int64,
    "F32": np.float32,
    "U32": np.uint32,
    "I32": np.int32,
    "F16": np.float16,
    "U16": np.uint16,
    "I8": np.int8,
    "U8": np.uint8,
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor lies in a file."""

    dtype: type[np.generic]
    shape: tuple[int, ...]
    start: int
    stop: int

    def view(self, content: mmap.mmap) -> NDArray[Any]:
        """The tensor as an array that views the map."""
        return np.frombuffer(content, self.dtype, math.prod(self.shape), self.start).reshape(self.shape)


def save_file(tensors: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write arrays, byte for byte as `safetensors.numpy.save_file` does, which copies all of them into memory first."""
    names = {np.dtype(of): name for name, of in _DTYPES.items()}
    order = sorted(tensors, key=lambda name: ([*names].index(tensors[name].dtype), name))
    header, stop = dict[str, Any](), 0
    for name in order:
        array, start = tensors[name], stop
        stop = start + array.nbytes
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [start, stop]}
    written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    written += b" " * (-len(written) % 8)
    with path.open("wb") as stream:
        stream.write(len(written).to_bytes(8, "little"))
        stream.write(written)
        for name in order:
            stream.write(np.ascontiguousarray(tensors[name]).data)


def map_file(path: Path) -> mmap.mmap | None:
    """Map a file for reading, so that it stays readable after it is deleted; None if it is lost or empty.

    Raises:
        OSError: the file exists, but the system refuses to open it.
    """
    try:
        with path.open("rb") as stream:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        return None
    except OSError as error:
        if not is_loss(error):
            raise
        return None


def header_stop(content: mmap.mmap) -> int:
    """Bytes of the header, the length in front of it included."""
    return 8 + int.from_bytes(content[:8], "little")


def read_header(content: mmap.mmap) -> dict[str, Tensor]:
    """The tensors of a file by name; parsed here, because the arrays of safetensors are copies."""
    stop = header_stop(content)
    header = json.loads(content[8:stop])
    return {
        name: Tensor(
            _DTYPES[entry["dtype"]], tuple(entry["shape"]), *(stop + offset for offset in entry["data_offsets"])
        )
        for name, entry in header.items()
        if name != "__metadata__"
    }


def mapped_tensors(content: mmap.mmap) -> dict[str, NDArray[Any]]:
    """All arrays of a file whose checksum was already compared."""
    return {name: tensor.view(content) for name, tensor in read_header(content).items()}


_SIGNIFICANT = np.int32(-0x70002000)  # 0x8fffe000: the sign, five bits of exponent, ten of fraction
_REBIAS = np.float32(2.0**112)  # 127 - 15, the difference between the exponent biases of float32 and float16
_INFINITE = 0x7C00  # bits of a half from here on are infinity or NaN
_MINUS_INFINITE = 0xFC00
_BLOCK = 1 << 17  # numbers at a time: they stay in the processor's cache between steps


def as_float32(halves: NDArray[np.float16]) -> NDArray[np.float32]:
    """The same values in float32, all of them exactly; numpy takes up to several times as long.

    The bits of a half are shifted to their places in float32. A product corrects the exponent, and also
    normalizes subnormal numbers.
    """
    flat = np.ascontiguousarray(halves).reshape(-1)
    signed, unsigned = flat.view(np.int16), flat.view(np.uint16)
    if signed.max(initial=0) >= _INFINITE or unsigned.max(initial=0) >= _MINUS_INFINITE:
        return halves.astype(np.float32)
    values = np.empty(len(flat), np.float32)
    bits = values.view(np.int32)
    for first in range(0, len(flat), _BLOCK):
        block = slice(first, first + _BLOCK)
        np.left_shift(signed[block], 13, out=bits[block], dtype=np.int32)
        bits[block] &= _SIGNIFICANT
        values[block] *= _REBIAS
    return values.reshape(halves.shape)


_MOST = 127  # of an int8, on both sides of 0
_ROWS_AT_ONCE = 4_096


@dataclass(frozen=True, slots=True)
class CoarseRows:
    """Rows as integers times a scale; similarities to them are off by under 0.002 for unit rows 384 wide."""

    steps: NDArray[np.int8]  # (C, D)
    scales: NDArray[np.float32]  # (C,)

    def __len__(self) -> int:
        """C."""
        return len(self.steps)

    def as_float32(self) -> NDArray[np.float32]:
        """(C, D) the rows, each number exactly the product of its step and the scale of its row."""
        rows = self.steps.astype(np.float32)
        rows *= self.scales[:, None]
        return rows


def coarse(rows: NDArray[np.float16]) -> CoarseRows:
    """Round each row to 127 steps up to its largest number; rows of zeros stay zeros.

    The scale of a row is chosen so that the inner product of the rounded row with the original equals the squared
    norm of the original. So a passage that many documents share has the same similarity to itself here as in a shard.
    """
    steps, scales = np.empty(rows.shape, np.int8), np.empty(len(rows), np.float32)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        block = slice(first, first + _ROWS_AT_ONCE)
        wide = rows[block].astype(np.float64)
        largest = np.abs(wide).max(axis=1, initial=0)
        whole = np.rint(wide * (_MOST / np.where(largest > 0, largest, 1))[:, None])
        products = np.einsum("cd,cd->c", whole, wide)
        scales[block] = np.einsum("cd,cd->c", wide, wide) / np.where(products > 0, products, 1)
        steps[block] = whole
    return CoarseRows(steps, scales)


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
        self._added: dict[int, Shard] = {}
        self._parts: dict[int, _Parts] = {}
        self._words: dict[tuple[int, bool], PackedWords] = {}

    @property
    def is_whole(self) -> bool:
        """Whether all files existed."""
        return all(content is not None for content in self._mapped.values())

    def __getitem__(self, number: int) -> Shard:
        """All arrays of a shard.

        Raises:
            IndexDamaged: the file is not the one that was written.
        """
        if number in self._added:
            return self._added[number]
        arrays = {name: self.part(number, name) for name in _VECTORS}
        return Shard(**arrays, words=self.words(number, apart=True))

    def add(self, shard: Shard) -> int:
        """Add a shard that is only in memory; returns its number, which no file has."""
        number = -1 - len(self._added)
        self._added[number] = shard
        return number

    def words(self, number: int, *, apart: bool = False) -> PackedWords:
        """The term counts of a shard; with `apart`, with the separate counts by kind of section."""
        if number in self._added:
            words = self._added[number].words
            return words if apart else replace(words, apart=None)
        if (number, apart) not in self._words:
            self._words[number, apart] = _stored_words(self._opened(number), apart=apart)
        return self._words[number, apart]

    def part(self, number: int, name: str) -> NDArray[Any]:
        """The documents, sections, chunks or spans of a shard, see `Shard`; raises IndexDamaged as `[]` does."""
        if number in self._added:
            added: NDArray[Any] = getattr(self._added[number], name)
            return added
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
        raise damaged_file(f"{path} is no shard ({error})") from error


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


def _stored_words(arrays: _Parts, *, apart: bool) -> PackedWords:
    """The term counts among the tensors of a shard."""
    if not apart:
        return _packed_words(arrays, "", None)
    by_kind = {name: arrays[f"{_APART}{name}"] for name in _APART_ARRAYS}
    return _packed_words(arrays, "", Apart(**by_kind, counts=_packed_words(arrays, _APART, None)))


def _packed_words(arrays: _Parts, prefix: str, apart: Apart[PackedWords] | None) -> PackedWords:
    words, pairs = (PackedTable(*(arrays[f"{prefix}{kind}_{column}"] for column in _COLUMNS)) for kind in _KINDS)
    return PackedWords(words, pairs, apart)


def shard_arrays(encoded: Sequence[EncodedDocument], words: WordTables) -> Shard:
    """Concatenate vectors and term counts of documents to the arrays of a shard."""
    spans = [
        (span.section, span.start, span.stop, span.n_tokens) for document in encoded for span in document.chunk_spans
    ]
    return Shard(
        documents=np.stack([document.document for document in encoded]).astype(np.float16),
        sections=np.concatenate([document.sections for document in encoded]).astype(np.float16),
        chunks=np.concatenate([document.chunks for document in encoded]).astype(np.float16),
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
