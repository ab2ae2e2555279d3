"""A sample represents a whole corpus: long and short documents, wherever they are in it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from engine.errors import DocumentError
from engine.readers import Unreadable
from engine.text.document import Document
from indexer.building.corpus import read_corpus
from indexer.plan import Unit, draw, units_of


def unit(number: int, size: int, suffix: str = ".txt") -> Unit:
    return Unit(f"{number}{suffix}", f"{number}{suffix}", size)


def test_of_few_units_all_are_drawn_and_stand_for_themselves() -> None:
    units = [unit(number, 10 + number) for number in range(12)]
    drawn = draw(units)
    assert sorted(one.unit.doc_id for one in drawn) == sorted(one.doc_id for one in units)
    assert {(one.n_units, one.share) for one in drawn} == {(1.0, 1.0)}


def test_a_sample_adds_up_to_the_counts_and_bytes_of_the_corpus() -> None:
    units = [unit(number, 100 + 7 * number) for number in range(5_000)]
    drawn = draw(units)
    assert len(drawn) < 150
    assert sum(one.n_units for one in drawn) == pytest.approx(5_000)
    assert sum(one.share * one.unit.size_bytes for one in drawn) == pytest.approx(sum(one.size_bytes for one in units))


def test_a_long_document_at_the_end_is_drawn() -> None:
    units = [*(unit(number, 1_000) for number in range(3_000)), unit(3_000, 5_000_000)]
    (long,) = [one for one in draw(units) if one.unit.size_bytes == 5_000_000]
    assert (long.n_units, long.share) == (1.0, 1.0)


def test_other_formats_and_files_outside_of_the_index_are_sampled_separately() -> None:
    units = [*(unit(number, 1_000) for number in range(500)), unit(500, 1_000, ".pdf"), unit(501, 1_000)]
    drawn = draw(units, known={f"{number}.txt" for number in range(500)})
    alone = [one.unit.doc_id for one in drawn if one.n_units == 1]
    assert sorted(alone) == ["500.pdf", "501.txt"]


def test_a_draw_depends_on_its_seed_alone_and_covers_the_corpus() -> None:
    units = [unit(number, 1_000) for number in range(1_000)]
    assert draw(units, seed=3) == draw(units, seed=3) != draw(units, seed=4)
    numbers = [int(one.unit.doc_id.removesuffix(".txt")) for one in draw(units)]
    assert 300 < sum(numbers) / len(numbers) < 700


def test_every_unit_is_drawn_as_likely_as_the_others() -> None:
    units = [unit(number, 64) for number in range(48)]
    times = [0] * 48
    for seed in range(600):
        for one in draw(units, seed=seed):
            times[int(one.unit.doc_id.removesuffix(".txt"))] += 1
    assert all(140 < count < 260 for count in times)  # 600 * 16 / 48 = 200


@pytest.mark.parametrize("packed", [False, True])
def test_lines_and_files_are_read_as_a_run_reads_them(tmp_path: Path, packed: bool) -> None:
    lines = "".join(json.dumps({"_id": f"j{number}", "text": "word " * number}) + "\n" for number in range(1, 6))
    if packed:
        (tmp_path / "many.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    else:
        (tmp_path / "many.jsonl").write_text(lines + "\n\n")
    (tmp_path / "one.md").write_text("# A heading\n\nA text.\n")
    read = [one.unit.read() for one in draw(units_of([str(tmp_path)]))]
    expected = [one for one in read_corpus([str(tmp_path)]) if isinstance(one, Document)]
    assert {one.doc_id: one.text for one in read if isinstance(one, Document)} == {
        one.doc_id: one.text for one in expected
    }


def test_an_unreadable_line_is_reported_and_a_torn_file_does_not_end_the_draw(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('no json\n{"_id": "a", "text": "words"}\n')
    (tmp_path / "torn.jsonl.gz").write_bytes(gzip.compress(b'{"_id": "b", "text": "words"}\n' * 3)[:-12])
    read = [one.unit.read() for one in draw(units_of([str(tmp_path)]))]
    assert sum(isinstance(one, Unreadable) for one in read) == 1
    assert {one.doc_id for one in read if isinstance(one, Document)} >= {"a"}


def test_a_missing_path_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="does not exist"):
        list(units_of([str(tmp_path / "none")]))
