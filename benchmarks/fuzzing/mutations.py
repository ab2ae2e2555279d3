"""Ways to damage a file. Pure functions of bytes and a generator of random numbers."""

from __future__ import annotations

import gzip
import io
import random
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence

from benchmarks.fuzzing.seeds import packed

MOST_BYTES = 2**20  # of a damaged file, unpacked
_MOST_REPEATS = 20_000
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_HUGE = (
    b"0",
    b"-1",
    b"99999999999999999999",
    b"2147483647",
    b"-2147483648",
    b"4294967296",
    b"1e999",
    b"65536",
    b"0.0000001",
)
_MARK = re.compile(rb"<[^<>]{1,80}>|\\begin\{\w+\}|\\\w+\{|[\[{(]|^[ ]*(?:[-*>#]+|\d+\.) |<<|\[\[", re.MULTILINE)
_CONTROLS = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x1a",
    b"\r",
    b"\x0c",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"&#0;",
    b"\xf0\x9f",
)


def damaged(seed: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """A damaged copy of a file; of an archive, in half of the cases, one with a damaged member.

    Args:
        seed: a valid file.
        others: files from which blocks are spliced in.
        rng: decides everything.
    """
    if rng.random() < 0.5 and (inside := _opened(seed)):
        name = rng.choice(sorted(inside))
        member = _mutated(inside[name], [*inside.values(), *others], rng)
        return gzip.compress(member, 1, mtime=0) if name == _GZIPPED else packed(inside | {name: member})
    return _mutated(seed, others, rng)


_GZIPPED = ""  # the name of what a gzip file holds


def _opened(data: bytes) -> dict[str, bytes]:
    """The members of an archive; none of another file."""
    if data.startswith(b"\x1f\x8b"):
        return {_GZIPPED: zlib.decompress(data, wbits=31)}
    if not data.startswith(b"PK"):
        return {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _mutated(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        data = rng.choice(_MUTATIONS)(data, others, rng)[:MOST_BYTES]
    return data


def _flip_bits(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _place in range(rng.choice([1, 1, 2, 8, 64])):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _copy_block(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    start, stop = _block(data, rng)
    times = rng.choice([1, 1, 2, 10, 300])
    return data[:stop] + data[start:stop] * times + data[stop:]


def _remove_block(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    start, stop = _block(data, rng)
    return data[:start] + data[stop:]


def _splice(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    other = rng.choice(others) if others else data
    start, stop = _block(other, rng)
    place = rng.randint(0, len(data))
    return data[:place] + other[start:stop] + data[place:]


def _nest(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    """Repeat a mark that opens something."""
    marks = list(_MARK.finditer(data))
    if not marks:
        return data
    mark = rng.choice(marks)
    times = min(rng.choice([10, 300, _MOST_REPEATS]), MOST_BYTES // len(mark.group()))
    return data[: mark.start()] + mark.group() * times + data[mark.start() :]


def _make_huge(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    """Replace numbers by huge, negative or no numbers."""
    share = rng.choice([0.02, 0.1, 1.0])
    return _NUMBER.sub(lambda found: rng.choice(_HUGE) if rng.random() < share else found.group(), data)


def _add_controls(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    place = rng.randint(0, len(data))
    return data[:place] + rng.choice(_CONTROLS) * rng.choice([1, 1, 5, 5_000]) + data[place:]


def _block(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randint(0, len(data))
    return start, min(len(data), start + rng.choice([1, 16, 256, 4_096]))


_MUTATIONS: tuple[Callable[[bytes, Sequence[bytes], random.Random], bytes], ...] = (
    _flip_bits,
    _cut,
    _copy_block,
    _remove_block,
    _splice,
    _nest,
    _make_huge,
    _add_controls,
)
