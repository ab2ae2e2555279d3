"""Results and similarities of sections as lines of a terminal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.comparison import compare_alone
from engine.report.lines import SHADES, columns, plain
from engine.report.table import coverage_note, encoding_lines, matrix_lines, result_table, shade_bounds
from engine.result import Encoding
from engine.scoring.evidence import Floor
from engine.text.segmentation import Coverage
from engine.views import SectionMatrix
from tests.fakes import FakeEncoder, make_document

NOW = Encoding(
    n_missing=0,
    n_candidates=5,
    n_encoded=5,
    n_encoded_now=2,
    tokens_now=9_000,
    seconds_now=4.5,
    tokens_missing=0,
    seconds_missing=0.0,
)


@pytest.mark.parametrize(
    ("coverage", "note"),
    [
        (Coverage(0, 0), "searched by words alone"),
        (Coverage(0, 500), "searched by words alone"),
        (Coverage(500, 500), "all 500 tokens read"),
        (Coverage(500, 500, 3), "all 500 tokens read, up to 3 chunks pooled into one"),
        (Coverage(250, 1_000), "250 of 1,000 tokens read (25.0%)"),
    ],
)
def test_a_note_shows_how_many_tokens_were_read(coverage: Coverage, note: str) -> None:
    assert coverage_note(coverage) == note


def test_documents_without_vectors_are_counted_where_there_are_some() -> None:
    assert encoding_lines(NOW) == ["5 of 5 candidates encoded, 2 of them now"]
    some = Encoding(7, 5, 5, 0, 0, 0.0, 12_000, None)
    assert encoding_lines(some) == [
        "5 of 5 candidates encoded",
        "7 documents scored by words alone: about 12,000 tokens to encode",
    ]


def _matrix(n_rows: int, n_columns: int) -> SectionMatrix:
    query = make_document("q", [(f"Mine {number}", "fox") for number in range(1, n_rows + 1)], title="The query")
    target = make_document("t", [(f"Theirs {number}", "dog") for number in range(1, n_columns + 1)], title="The target")
    cosines = np.linspace(0.1, 0.9, n_rows * n_columns, dtype=np.float32).reshape(n_rows, n_columns)
    return SectionMatrix(query, target, cosines)


def test_a_small_matrix_has_numbers() -> None:
    lines = plain(matrix_lines(_matrix(2, 3), width=80)).splitlines()
    assert lines[:2] == ["cosine x 100: The query (rows)", "          and The target (columns)"]
    assert lines[2].split() == ["1", "2", "3"]
    assert lines[3].split() == ["1", "Mine", "1", "10", "26", "42"]
    assert lines[4].split() == ["2", "Mine", "2", "58", "74", "90"]
    assert lines[5:] == ["", "  1 Theirs 1                              3 Theirs 3", "  2 Theirs 2"]


def test_names_give_way_to_numbers() -> None:
    lines = plain(matrix_lines(_matrix(1, 14), width=80)).splitlines()
    assert lines[3].split()[-14:] == [str(round(100 * value)) for value in np.linspace(0.1, 0.9, 14, dtype=np.float32)]


@pytest.mark.parametrize(("n_columns", "cell"), [(20, 2), (49, 1)])
def test_a_wide_matrix_has_shades_in_one_band(n_columns: int, cell: int) -> None:
    lines = plain(matrix_lines(_matrix(1, n_columns), width=80)).splitlines()
    assert lines[2] == "shades: ░░ from 26   ▒▒ from 42   ▓▓ from 58   ██ from 74"
    assert lines[4].startswith("  1 Mine 1")
    cells = lines[4][31:]
    assert len(cells) == n_columns * cell and cells[-1] == "█" and cells[0] == " "
    assert list(cells) == sorted(cells, key=" ░▒▓█".index)
    for number in range(5, n_columns + 1, 5):
        assert lines[3][31:][: number * cell].endswith(str(number))  # it ends above its column


def test_a_wider_matrix_is_continued_in_bands() -> None:
    lines = plain(matrix_lines(_matrix(2, 60), width=80)).splitlines()
    rows = [line for line in lines if line[4:10] == "Mine 1"]
    assert [len(row[31:]) for row in rows] == [49, 11]


@pytest.mark.parametrize("shape", [(1, 1), (3, 13), (2, 30), (40, 120)])
def test_no_line_is_wider_than_the_terminal(shape: tuple[int, int]) -> None:
    for width in (60, 80, 120):
        lines = matrix_lines(_matrix(*shape), width=width)
        assert max(map(columns, lines)) <= width
        legend = [run.text for line in lines for run in line]
        assert any(f"Theirs {shape[1]}" in text for text in legend)


def test_shades_are_equal_steps_and_cells_have_their_style() -> None:
    assert shade_bounds(np.array([[10, 90]])) == (26, 42, 58, 74)
    cells = [run.style for run in matrix_lines(_matrix(1, 5), width=80)[3] if run.style in SHADES]
    assert cells == list(SHADES)


def test_documents_without_vectors_have_no_cosines() -> None:
    matrix = SectionMatrix(make_document("q", "fox"), make_document("t", "dog"), np.zeros((0, 0), np.float32))
    assert plain(matrix_lines(matrix, width=80)) == "no cosines of sections: the documents have no vectors"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_notes_are_on_as_many_lines_as_they_need(width: int) -> None:
    compared = compare_alone(make_document("q", "A heron waits."), make_document("t", "A heron hunts."), FakeEncoder())
    found = replace(compared, background=None, floor=Floor(0.1, 0.2, 0.3), encoding=NOW)
    notes = [
        (
            compared,
            "the score is high for any two texts, and serves to order the parts below; --index INDEX takes some",
        ),
        (found, "1 searched, certified"),
        (found, "unrelated documents of this index reach 0.30; 1 of 1 hits shown are above"),
        (found, "5 of 5 candidates encoded, 2 of them now"),
    ]
    for result, note in notes:
        table = result_table(result, width=width)
        assert note in " ".join(table.split()) and max(map(columns, table.splitlines())) <= width


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("- The *heron* waits for `trout` at the weir of the mill.", ["="]),
        ("The heron waits for trout at the weir of a mill.", ["<", ">"]),
    ],
)
def test_two_quotes_of_the_same_words_are_one_line(text: str, signs: list[str]) -> None:
    query = make_document("q", "The heron waits for trout at the weir of the mill.")
    table = result_table(compare_alone(query, make_document("t", text), FakeEncoder()))
    assert [line.split()[0] for line in table.splitlines() if line.startswith(" " * 14)] == [*signs, "words:"]
