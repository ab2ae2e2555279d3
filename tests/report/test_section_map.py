"""The heat map of section pairs: shades by contribution, names where there is room."""

from __future__ import annotations

from engine.report.page import MOST_CELLS, section_map
from engine.scoring.parts import SectionPair, pair_columns
from engine.text.document import Document
from tests.fakes import make_document


def document(n_sections: int) -> Document:
    return make_document("d", [(f"Part {number}", "fox and river. ") for number in range(n_sections)])


def test_cells_are_shaded_by_the_root_of_their_share() -> None:
    pairs = [SectionPair(1, 0, 0.08, ()), SectionPair(0, 1, 0.02, ()), SectionPair(0, 2, 0.0199, ())]
    found = section_map(document(2), document(3), pair_columns(pairs), [(1, 0)])
    assert (found.n_rows, found.n_columns, found.cell, found.most) == (2, 3, 24, 0.08)
    assert found.shades == ((4, "M24 0h48v24h-48z"), (8, "M0 24h24v24h-24z"))
    assert found.cells == ((1, 0, 0.08), (0, 1, 0.02), (0, 2, 0.0199))


def test_matches_that_are_shown_are_numbered_and_named() -> None:
    pairs = pair_columns([SectionPair(1, 2, 0.08, ()), SectionPair(0, 1, 0.04, ())])
    found = section_map(document(2), document(3), pairs, [(1, 2)])
    (shown,) = found.shown
    assert (shown.x, shown.y, shown.match, shown.title) == (48, 24, 1, "match 1: Part 1 → Part 2")
    assert found.is_numbered


def test_a_large_map_names_as_many_rows_as_there_is_room_for() -> None:
    large = document(300)
    pairs = [SectionPair(row, column, 0.001, ()) for row in range(300) for column in range(0, 300, 2)]
    found = section_map(large, large, pair_columns(pairs), [])
    assert found.cell == 3 and not found.is_numbered
    assert [label.text for label in found.rows][:2] == ["1 Part 0", "6 Part 5"]
    assert len(found.shades) == 1
    assert (len(found.cells), found.n_cells) == (MOST_CELLS, 45_000)


def test_a_hit_without_parts_has_an_empty_map() -> None:
    found = section_map(document(1), document(1), pair_columns([]), [])
    assert (found.shades, found.shown, found.most) == ((), (), 0.0)
