from __future__ import annotations

import gzip
import random
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.records import read_records
from benchmarks.store.fuzz import MOST_BYTES, damaged, fuzz, main, outcome_of
from benchmarks.store.fuzz_seeds import seeds
from benchmarks.store.records import FuzzRecord, Outcome
from engine.readers import FORMATS, Unreadable, read_bytes
from engine.text.document import Document
from indexer.reading.reader import ReadLimits
from tests.indexer.hostile_readers import FORMATS as HOSTILE

READ = Document("a", "a", "a", ())


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("it holds no text", Outcome.REFUSED),
        ("the HTML parser failed (ValueError: x); the file may be damaged", Outcome.FAILED),
        ("the parser gave no document (x)", Outcome.FAILED),
        ("reading needs more than 5 s of processor time; leave it out", Outcome.LIMIT),
        ("the parser crashed (SIGSEGV): the file is damaged", Outcome.DIED),
        ("the process that read it was killed twice (SIGKILL)", Outcome.DIED),
        ("the reader failed (exit status 82)", Outcome.DIED),
        ("no answer within 50 s; leave it out", Outcome.HUNG),
    ],
)
def test_the_outcome_of_a_file_follows_from_the_reason(reason: str, outcome: Outcome) -> None:
    assert outcome_of([Unreadable("a", reason)]) == (outcome, reason)


def test_the_worst_of_several_results_counts() -> None:
    assert outcome_of([READ, Unreadable("a", "it holds no text")])[0] is Outcome.READ
    assert outcome_of([READ, Unreadable("a", "reading needs more than 5 s")])[0] is Outcome.LIMIT
    assert outcome_of([]) == (Outcome.READ, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "outcome"), [(".loop", Outcome.LIMIT), (".crash", Outcome.DIED), (".sleep", Outcome.HUNG)]
)
def test_harm_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, outcome: Outcome) -> None:
    monkeypatch.setattr("indexer.reading.reader._MODULE", "tests.indexer.hostile_readers")
    monkeypatch.setattr("engine.readers.reader.FORMATS", HOSTILE)
    monkeypatch.setattr("benchmarks.store.fuzz.seeds", lambda: {suffix: b"words"})
    row = fuzz(suffix, 1, 0, tmp_path, ReadLimits(0.2, 150 * 2**20))
    assert row.outcomes == {outcome: 1}
    assert len(row.reasons) == 1 and row.reasons[0].startswith("0: ")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_of_the_caller_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.reading.reader._MODULE", "no_such_module")
    assert fuzz(".txt", 2, 0, tmp_path).outcomes == {Outcome.LOST: 2}


@pytest.mark.slow
def test_a_quick_run_writes_its_record(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--quick", "--files", "48", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (record,) = read_records(tmp_path)
    assert isinstance(record, FuzzRecord) and record.is_quick
    assert sum(row.n_files for row in record.rows) == record.n_files == 48
    assert all(sum(row.outcomes.values()) == row.n_files for row in record.rows)
    assert sum(row.outcomes.get(Outcome.LOST, 0) + row.outcomes.get(Outcome.HUNG, 0) for row in record.rows) == 0


def copies(suffix: str, n_copies: int) -> list[bytes]:
    known = seeds()
    return [damaged(known[suffix], list(known.values()), random.Random(number)) for number in range(n_copies)]


def test_damage_is_that_of_its_seed() -> None:
    assert copies(".tex", 50) == copies(".tex", 50)
    assert len(set(copies(".tex", 50))) > 40


def test_every_kind_of_damage_occurs() -> None:
    seed, made = seeds()[".html"], copies(".html", 400)
    assert any(len(one) < len(seed) / 2 for one in made)
    assert any(len(one) > 20 * len(seed) for one in made)
    assert any(b"99999999999999999999" in one for one in made)
    assert any(b"<td><td><td>" in one or b"<ul><ul><ul>" in one or b"<p><p><p>" in one for one in made)
    assert any(b"%PDF" in one or b"\\section" in one or b"PK" in one for one in made)
    assert any(b"\x00" in one for one in made)
    assert any(len(one) == len(seed) and sum(map(int.__ne__, one, seed)) == 1 for one in made)
    assert max(map(len, made)) <= MOST_BYTES


def test_damaged_members_are_packed_again() -> None:
    contents = {_content(one) for one in copies(".odt", 60)}
    assert len(contents - {None}) > 10
    gzipped = {one for one in copies(".txt.gz", 60) if one.startswith(b"\x1f\x8b\x08\0\0\0\0\0\x04")}
    assert len({gzip.decompress(one) for one in gzipped}) > 10


def _content(data: bytes) -> bytes | None:
    """The content of an intact archive."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            return None if archive.testzip() else archive.read("content.xml")
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, NotImplementedError, RuntimeError):
        return None


@pytest.mark.parametrize("suffix", seeds())
def test_a_seed_is_read_whole(suffix: str) -> None:
    found = list(read_bytes(seeds()[suffix], f"a{suffix}"))
    assert all(isinstance(one, Document) and "A pump moves 12 litres" in one.text for one in found)
    assert len(found) == (4 if "jsonl" in suffix else 1)


def test_every_reader_has_a_seed() -> None:
    known = {form.name for suffix, form in FORMATS.items() if any(suffix in f"{seed}." for seed in seeds())}
    assert {form.name for form in FORMATS.values()} == known
