"""Reads damaged files of every format as an indexing run does, and records the outcome of each."""

from __future__ import annotations

import gzip
import io
import random
import re
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.store.fuzz_seeds import packed, seeds
from benchmarks.store.records import FuzzRecord, FuzzRow, Outcome
from engine.readers import Unreadable
from engine.text.document import Document
from indexer.reading.reader import DocumentReader, ReadLimits
from indexer.reading.requests import Request

N_FILES, N_QUICK = 20_000, 160
LIMITS = ReadLimits(seconds=5.0, memory_bytes=256 * 2**20)
_MOST_REASONS = 5
_ORDER = (Outcome.LOST, Outcome.HUNG, Outcome.DIED, Outcome.LIMIT, Outcome.READ, Outcome.FAILED, Outcome.REFUSED)
_WORDS = (
    ("no answer within", Outcome.HUNG),
    ("reading needs more than", Outcome.LIMIT),
    ("the parser crashed", Outcome.DIED),
    ("the process that read it was killed", Outcome.DIED),
    ("the reader failed", Outcome.DIED),
    ("the parser gave no document", Outcome.FAILED),
)


def outcome_of(results: Sequence[Document | Unreadable]) -> tuple[Outcome, str]:
    """The worst outcome of a file, and its reason; a file of JSON lines can give several results."""
    found = [_outcome(one) for one in results] or [(Outcome.READ, "")]
    return min(found, key=lambda one: _ORDER.index(one[0]))


def _outcome(result: Document | Unreadable) -> tuple[Outcome, str]:
    if isinstance(result, Document):
        return Outcome.READ, ""
    for words, outcome in _WORDS:
        if result.reason.startswith(words):
            return outcome, result.reason
    is_exception = " parser failed (" in result.reason
    return Outcome.FAILED if is_exception else Outcome.REFUSED, result.reason


def fuzz(suffix: str, n_files: int, seed: int, folder: Path, limits: ReadLimits = LIMITS) -> FuzzRow:
    """Damage the seed of a format `n_files` times in an empty folder, and read all copies, one after another.

    File `number` of a format is the same in every run with the same seed of random numbers.
    """
    counts: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    slowest, known = 0.0, seeds()
    with DocumentReader(limits) as reader:
        for number in range(n_files):
            path = folder / f"{number}{suffix}"
            rng = random.Random(f"{seed} {suffix} {number}")
            path.write_bytes(damaged(known[suffix], list(known.values()), rng))
            started = time.perf_counter()
            try:
                outcome, reason = outcome_of(list(reader.read([Request(str(path))])))
            except Exception as error:  # noqa: BLE001 - whatever ends a run of indexing is what is counted
                outcome, reason = Outcome.LOST, repr(error)
            slowest = max(slowest, time.perf_counter() - started)
            counts[outcome] += 1
            if outcome not in (Outcome.READ, Outcome.REFUSED) and len(reasons) < _MOST_REASONS:
                reasons.setdefault(reason, f"{number}: {reason}")
            path.unlink()
    return FuzzRow(suffix, n_files, dict(counts), round(slowest, 2), list(reasons.values()))


MOST_BYTES = 2**20  # of a damaged file, unpacked
_MOST_REPEATS = 20_000
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_HUGE = b"0 -1 99999999999999999999 2147483647 -2147483648 4294967296 1e999 65536 0.0000001".split()
_MARK = re.compile(rb"<[^<>]{1,80}>|\\begin\{\w+\}|\\\w+\{|[\[{(]|^[ ]*(?:[-*>#]+|\d+\.) |<<|\[\[", re.MULTILINE)
_CONTROLS = [
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1a", b"\r"),
    *(b"\x0c", b"\xc0\x80", b"\xed\xa0\x80", b"&#0;", b"\xf0\x9f"),
]


def damaged(seed: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """A damaged copy of a file, with blocks of others; in half of the archives, one of the members is damaged."""
    if rng.random() < 0.5 and (inside := _opened(seed)):
        name = rng.choice(sorted(inside))
        member = _mutated(inside[name], [*inside.values(), *others], rng)
        return gzip.compress(member, 1, mtime=0) if name == _GZIPPED else packed(inside | {name: member})
    return _mutated(seed, others, rng)


_GZIPPED = ""  # the name of the content of a gzip file


def _opened(data: bytes) -> dict[str, bytes]:
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
    share = rng.choice([0.02, 0.1, 1.0])
    return _NUMBER.sub(lambda found: rng.choice(_HUGE) if rng.random() < share else found.group(), data)


def _add_controls(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    place = rng.randint(0, len(data))
    return data[:place] + rng.choice(_CONTROLS) * rng.choice([1, 1, 5, 5_000]) + data[place:]


def _block(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randint(0, len(data))
    return start, min(len(data), start + rng.choice([1, 16, 256, 4_096]))


_MUTATIONS: tuple[Callable[[bytes, Sequence[bytes], random.Random], bytes], ...] = (
    *(_flip_bits, _cut, _copy_block, _remove_block),
    *(_splice, _nest, _make_huge, _add_controls),
)


_NOTE = (
    "Files are made from a small seed of each format by one to four changes: flipped bits, truncation, blocks copied, "
    "removed or spliced, nested markup repeated, numbers made huge, and control characters. In half of the archives a "
    "member is damaged and packed again. Each file is read in the process that `longmatch index` uses, within "
    "{seconds:g} s of processor time and {memory:,} MiB. Refused: the reader gave a reason. Failed: the reason is the "
    "exception of a parser. Hung: no result in ten times the limit. Lost: no result, or a failure of the process that "
    "indexes."
)


def fuzz_table(records: Sequence[FuzzRecord]) -> str:
    """A row for each format, and their sum; shows only the largest run."""
    record = max(records, key=lambda one: one.n_files)
    sums = {one.value: sum(row.outcomes.get(one, 0) for row in record.rows) for one in Outcome}
    whole = FuzzRow("all", record.n_files, sums, max(row.slowest_seconds for row in record.rows), [])
    rows = [
        [
            row.format,
            f"{row.n_files:,}",
            *(f"{row.outcomes.get(one, 0):,}" for one in Outcome),
            f"{row.slowest_seconds:.1f}",
        ]
        for row in [*record.rows, whole]
    ]
    head = ["Format", "Files", *(one.value.capitalize() for one in Outcome), "Slowest, s"]
    note = _NOTE.format(seconds=record.read_seconds, memory=record.read_memory_bytes // 2**20)
    return "\n".join([*markdown(head, rows), "", note, "", *origins([record])])


@program
@click.option("--files", "n_files", default=N_FILES, type=click.IntRange(1), help="Files of all formats together.")
@measurement(seed="Seed of the damage.", quick=f"{N_QUICK} files")
def main(run: Measurement, n_files: int) -> None:
    """Read damaged files of every format within limits, and record the outcome of each.

    \b
    Example:
        python -m benchmarks study fuzz --files 20000
    """
    n_files = min(n_files, N_QUICK) if run.is_quick else n_files
    suffixes, rows = list(seeds()), []
    with tempfile.TemporaryDirectory(prefix="longmatch-fuzz-") as files:
        for place, suffix in enumerate(suffixes):
            n_own = n_files // len(suffixes) + (place < n_files % len(suffixes))
            rows += [fuzz(suffix, n_own, run.seed, Path(files))] if n_own else []
            log(f"{suffix}: {n_own:,} files")
    record = FuzzRecord(n_files, LIMITS.seconds, LIMITS.memory_bytes, rows, run.seconds, run.origin, run.is_quick)
    run.publish([record], fuzz_table)
