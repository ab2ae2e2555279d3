"""Lines measured, cut and padded in columns of a terminal."""

from __future__ import annotations

import pytest

from engine.report.lines import Run, Style, columns, counted, cut, cut_text, line, pad, plain, shortened, table


@pytest.mark.parametrize(
    ("text", "width"),
    [("fox", 3), ("狐狸", 4), ("cafe\u0301", 4), ("नि", 2), ("a\u200bb", 2), ("…", 1), ("한글", 4), ("", 0)],
)
def test_columns_are_those_of_a_terminal(text: str, width: int) -> None:
    assert columns(text) == width
    assert columns(line(text, Run(text, Style.TITLE))) == width * 2


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("the fox", 7, "the fox"),
        ("the fox", 6, "the f…"),
        ("the fox", 5, "the…"),
        ("狐狸狐狸", 6, "狐狸…"),
        ("狐狸", 3, "狐…"),
    ],
)
def test_a_line_is_cut_to_a_width(text: str, width: int, shown: str) -> None:
    assert shortened(text, width) == shown
    assert columns(shown) <= width


def test_a_cut_keeps_the_styles() -> None:
    whole = line("the ", Run("quick", Style.MATCH), " fox")
    assert cut(whole, 8) == (Run("the "), Run("qui…", Style.MATCH))
    assert cut(whole, 10) == (Run("the "), Run("quick…", Style.MATCH))
    assert cut(whole, 13) == whole


def test_line_breaks_become_blanks_and_control_characters_are_replaced() -> None:
    assert plain([line("a\x1b[31mb\nc")]) == "a\ufffd[31mb c"


def test_padding_counts_wide_characters() -> None:
    assert plain([pad(line("狐"), 4)]) == "狐  "


def test_text_is_cut_between_characters() -> None:
    assert cut_text("狐狸", 3) == "狐"


def test_a_table_is_as_wide_as_its_cells() -> None:
    rows = [("年", "2019"), ("venue", "ACL")]
    assert plain(table(rows)) == "年     2019\nvenue  ACL"
    assert plain(table(rows, head=("a", "b"))).splitlines()[0] == "a      b"
    assert table([]) == []


def test_a_count_agrees_with_its_noun() -> None:
    assert [counted(n, "section") for n in (0, 1, 1234)] == ["0 sections", "1 section", "1,234 sections"]
