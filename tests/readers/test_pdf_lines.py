"""Characters and lines of PDF pages."""

import re

import pytest

from engine.errors import DocumentError
from engine.readers.pdf import read
from engine.readers.pdf_layout import rejoined
from engine.readers.pdf_lines import Line
from tests.readers.made import pdf_bytes
from tests.readers.made_pdf import HELVETICA, escaped, pdf_of_contents, pdf_of_shapes, stream

FILLER = [b"and the text goes on in a font of shapes that still says which letters they are"] * 3
SHAPES = bytes(range(0x21, 0x40))  # codes that are signs and digits


@pytest.mark.parametrize(
    ("line", "beginning"),
    [
        (b"the \x10signi\x1ccant\x11 e\x1bects \x15 of o\x1ece work\x1dows and ba\x1fes",
         "the \u201csignificant\u201d effects \u2013 of office workflows and baffles"),
        (b'the \\signi\x0ccant" e\x0bects | of o\x0ece work\x0dows and ba\x0fes',
         "the \u201csignificant\u201d effects \u2014 of office workflows and baffles"),
        (b"\x0cve of\x0cces of \x1cre, \x0crst of all for hors d'\x1buvre",
         "five offices of øre, first of all for hors d'œuvre"),
        (b"\x02ve o\x13ices of \x03ood in the \x93e\x14cient\x94 bi\x1eere",
         "five offices of flood in the “efficient” bi`ere"),
        (b"a price of 4$ [sic] is kept", "a price of 4$ [sic] is kept"),
    ],
    ids=["T1", "OT1", "a letter of OT1 is no ligature of T1", "8r", "signs of a readable font"],
)  # fmt: skip
def test_ligatures_and_quotes_of_tex_fonts_are_read(line: bytes, beginning: str) -> None:
    assert read(pdf_of_shapes([[line, *FILLER]]), "a", "a.pdf").text.startswith(beginning)


@pytest.mark.parametrize("unit", [0.12, 0.24])
def test_bitmaps_with_dots_as_unit_are_laid_out_as_others(unit: float) -> None:
    lines = [b"Silt in the locks of the river Ouse", *FILLER, b"1. Aim", *FILLER]
    document, expected = (read(pdf_of_shapes([lines], one), "a", "a.pdf") for one in (unit, 10))
    assert (document.text, document.sections) == (expected.text, expected.sections)


def test_pages_of_unnamed_shapes_are_listed_and_files_of_them_refused() -> None:
    document = read(pdf_of_shapes([FILLER * 2, [SHAPES] * 9]), "a", "a.pdf")
    assert document.metadata["damaged_pages"] == [2]
    assert document.text == " ".join(line.decode() for line in FILLER * 2)
    with pytest.raises(DocumentError, match=r"its page has no text layer \(279 more have no Unicode value"):
        read(pdf_of_shapes([[SHAPES] * 9]), "a", "a.pdf")


def test_a_letter_that_ghostscript_maps_to_a_return_is_read() -> None:
    font = HELVETICA.replace(b"/Encoding", b"/ToUnicode 4 0 R /Encoding")
    to_unicode = b"begincmap 1 begincodespacerange <00><ff> endcodespacerange 1 beginbfrange <63><63><000d> endbfrange"
    lines = b"BT /F1 12 Tf 72 700 Td (The local scientific) Tj 0 -14 Td (code of speech) Tj ET"
    assert read(pdf_of_contents([lines], font, [stream(to_unicode)]), "a", "a.pdf").text == (
        "The local scientific code of speech"
    )


@pytest.mark.parametrize("shift", [1, 29])
def test_a_page_whose_font_maps_letters_to_others_is_no_text(shift: int) -> None:
    prose = "The quick keepers of the old locks open their gates at noon, and boats that wait below the weir go up. "
    wrong = "".join(chr(ord(letter) - shift) if letter > "A" else letter for letter in prose).replace("\\", "-")
    genes, codes = "gattcaccctgcgacgtcc" * 5, "<td></td><tr><nl> XRT 83L30IV "
    lines = [[(text * 2, 72, 700 - 14 * row, 10, False) for row in range(9)] for text in (prose, genes, codes, wrong)]
    document = read(pdf_bytes(lines), "a", "a.pdf")
    assert (document.metadata["damaged_pages"], document.metadata["scanned_pages"]) == ([4], [4])
    assert "gattcaccc" in document.text and "XRT" in document.text
    with pytest.raises(DocumentError, match=r"no text layer \(1,\d+ more have no Unicode value"):
        read(pdf_bytes(lines[3:]), "a", "a.pdf")


def test_signs_whose_font_is_not_at_hand_are_no_scan() -> None:
    font = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /UniJIS-UTF16-H /DescendantFonts [<< /Type /Font "
        b"/Subtype /CIDFontType0 /BaseFont /X /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) "
        b"/Supplement 0 >> >>] >>"
    )
    signs = b"".join(b"BT /F1 12 Tf %d 700 Td <6c34> Tj ET\n" % (72 + 12 * place) for place in range(30))
    with pytest.raises(DocumentError, match=r"no text layer \(30 more have no Unicode value or no shape in their font"):
        read(pdf_of_contents([signs], font), "a", "a.pdf")


def part(text: str, left: float, right: float, y: float = 700, size: float = 10, *, page: int = 0) -> Line:
    return Line(text, page, left, right, y, size, is_bold=False)


def test_parts_of_a_line_are_joined_whatever_their_type() -> None:
    lines = [part("in time O(k", 72, 120), part("2", 120.5, 124, 704, 7), part(") at most", 125, 170)]
    assert rejoined(lines) == [part("in time O(k^2) at most", 72, 170)]
    assert rejoined([part("the", 72, 90), part("word", 94, 120)])[0].text == "the word"
    assert rejoined([part("1", 72, 75, 704, 6), part("A footnote", 76, 140)]) == [part("1 A footnote", 72, 140)]


def test_raised_digits_are_marked_whatever_their_type_and_rows_are_no_headings() -> None:
    raised = [("Sediment", 72, 700, 10, False), ("12", 113.5, 704.5, 9.7, False), ("rose.", 126, 700, 10, False),
              ("3", 148.4, 704.5, 9, False), ("It is 5.3 m.", 160, 700, 10, False)]  # fmt: skip
    row = [("Site", 72, 670, 10, True), ("Depth", 130, 670, 10, True), ("Note", 190, 670, 10, True)]
    body = [(f"The gate of the lock stood open on day {n} and the silt went on.", 72, 640 - 12 * n, 10, False)
            for n in range(9)]  # fmt: skip
    document = read(pdf_bytes([[*raised, *row, *body]]), "a", "a.pdf")
    assert document.text.startswith("Sediment^12 rose.^3 It is 5.3 m.\n\nSite Depth Note\n\nThe gate")
    assert [section.heading for section in document.sections] == [""]


def test_a_head_of_two_parts_on_the_last_two_of_three_pages_is_left_out() -> None:
    head = [("Vane and Okabe", 72, 760, 10, False), ("Silt in locks", 300, 760, 10, False)]
    pages = [
        [(f"The gate of lock {page} stood open on day {n} and went on", 72, 700 - 12 * n, 10, False) for n in range(9)]
        for page in range(3)
    ]
    document = read(pdf_bytes([pages[0], *([*head, *page] for page in pages[1:])]), "a", "a.pdf")
    assert "Vane" not in document.text and "Silt" not in document.text
    assert document.left_out["running_heads"] == 2


def test_other_lines_stay_apart() -> None:
    lines = [
        part("a left column", 72, 290), part("a right column", 310, 500), part("the next line", 72, 290, 688),
        part("the next page", 291, 400, 688, page=1), part("hyphen\u00ad", 72, 290, 676, page=1),
        part("ated", 291, 300, 676, page=1),
    ]  # fmt: skip
    assert rejoined(lines) == lines


def rows_of(columns: list[tuple[str, int, int]], n_rows: int, turn: str = "") -> bytes:
    """Content that goes row by row through columns: a word of each line, where it starts, and the lines."""
    shown = [
        f"BT /F1 9 Tf {x} {700 - 12 * row} Td ({word}{row:02} and the gate goes on) Tj ET\n"
        for row in range(n_rows)
        for word, x, n_lines in columns
        if row < n_lines
    ]
    return f"{turn}\n{''.join(shown)}".encode()


_TWO, _THREE = [("left", 60, 12), ("right", 240, 12)], [("a", 60, 14), ("b", 190, 14), ("c", 350, 10)]
_HEBREW = HELVETICA.replace(b">>", b"/ToUnicode 4 0 R >>")
WORD_OF_LINE = "abc defgh ijk lmnop qrst uvwx abcd efgh"
_LETTERS = b"1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <61> <7a> <05d0> endbfrange"


@pytest.mark.parametrize(
    ("content", "font", "first"),
    [
        (rows_of(_THREE, 14), HELVETICA, ["a", "b", "c"]),
        (rows_of(_TWO, 12, "0 1 -1 0 800 0 cm"), HELVETICA, ["left", "right"]),
        (rows_of(_TWO, 12, "0 -1 1 0 -100 800 cm"), HELVETICA, ["left", "right"]),
        (rows_of(_TWO, 12), _HEBREW, ["right", "left"]),
    ],
    ids=["three columns", "running up", "running down", "from right to left"],
)
def test_columns_whose_content_goes_by_rows_are_read_in_turn(content: bytes, font: bytes, first: list[str]) -> None:
    text = read(pdf_of_contents([content], font, [stream(_LETTERS)]), "a", "a.pdf").text
    words = {name: name if font == HELVETICA else "".join(chr(ord(one) - 0x61 + 0x5D0) for one in name)[::-1]
             for name in first}  # fmt: skip
    patterns = [rf"(?<!\w)(?:\d\d)?{words[name]}(?:\d\d)?\b" for name in first]
    places = [[match.start() for match in re.finditer(pattern, text)] for pattern in patterns]
    assert all(len(found) >= 10 for found in places)
    assert [place for found in places for place in found] == sorted(place for found in places for place in found)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("The word |dcba hgfe| is (old) now.", "The word |efgh abcd| is (old) now."),
        ("A term |dcba| (hour) and |hgfe|, and more.", "A term |abcd| (hour) and |efgh|, and more."),
        ("|dcba| Act 12 |hgfe lkji ponm|", "|mnop ijkl efgh| Act 12 |abcd|"),
        ("Act|p| R |dcba hgfe|", "|efgh abcd| R |p|Act"),
    ],
)
def test_words_against_the_direction_of_a_line_are_in_order(shown: str, text: str) -> None:
    """Between bars, small letters stand for Hebrew ones; a font of its own shows them, as in most files."""
    parts = shown.split("|")
    content = b"BT 72 700 Td " + b"".join(b"/F%d 10 Tf (%s) Tj " % (1 + at % 2, escaped(part).encode())
                                          for at, part in enumerate(parts)) + b"ET"  # fmt: skip
    more = [stream(_LETTERS), HELVETICA, _HEBREW]
    data = pdf_of_contents([content], HELVETICA, more, fonts=b"/F1 5 0 R /F2 6 0 R")
    hebrew = {ord(letter): ord(letter) - 0x61 + 0x5D0 for letter in "abcdefghijklmnop"}
    wanted = "".join(part.translate(hebrew) if at % 2 else part for at, part in enumerate(text.split("|")))
    assert read(data, "a", "a.pdf").text == wanted


@pytest.mark.parametrize(("behind", "text"), [(" ", "{0}{0} {0}"), ("", "{0} {0} {0}")])
def test_words_of_korean_that_lines_cut_are_whole_where_spaces_end_the_others(behind: str, text: str) -> None:
    """Small letters stand for syllables; a space behind some lines shows that the others end inside a word."""
    lines = [WORD_OF_LINE, WORD_OF_LINE + behind, WORD_OF_LINE]
    content = b"".join(b"BT /F1 10 Tf 72 %d Td (%s) Tj ET " % (700 - 12 * row, line.encode())
                       for row, line in enumerate(lines))  # fmt: skip
    letters = _LETTERS.replace(b"<05d0>", b"<ac00>")
    syllables = WORD_OF_LINE.translate({code: code - 0x61 + 0xAC00 for code in range(0x61, 0x7B)})
    assert read(pdf_of_contents([content], _HEBREW, [stream(letters)]), "a", "a.pdf").text == text.format(syllables)
