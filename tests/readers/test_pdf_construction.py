"""PDFs whose text is hard to read in order: columns, line numbers, figures, titles."""

import re
from collections.abc import Mapping, Sequence
from time import process_time

import pytest

from engine.errors import DocumentError
from engine.readers.fields import authors_of
from engine.readers.pdf import read
from tests.readers.made import MakePdf, Print, pdf_bytes
from tests.readers.made_pdf import HELVETICA, pdf_of_contents, stream

FIRST, LINE = "The text of a narrow column in a print", "a full line of a narrow column in print"


def column(left: float) -> list[Print]:
    """Four paragraphs of five lines; the last one is short."""
    texts = [FIRST, LINE, LINE, LINE, "ends here."] * 4
    return [(text, left, 700 - 12 * number, 10, False) for number, text in enumerate(texts)]


def test_lines_and_words_of_a_left_column_are_joined(make_pdf: MakePdf) -> None:
    text = read(make_pdf([[*column(54), *column(317)]]), "a", "a.pdf").text
    assert text.split("\n\n") == [" ".join([FIRST, LINE, LINE, LINE, "ends here."])] * 8
    halves = [(f"An indented {LINE} of docu-", 66.0), ("ments which is joined.", 54.0)]
    left = [(*halves[n % 2], 700 - 12.0 * n, 8.0, False) for n in range(20)]
    text = read(make_pdf([[*left, *column(317)]]), "a", "a.pdf").text
    assert text.count("of documents which") == 10


def test_line_numbers_are_left_out(make_pdf: MakePdf) -> None:
    words = ["manuscript", "that", "numbers", "its", "lines", "for", "the", "reviewers", "to", "name"]
    pages: list[list[Print]] = [
        [
            one
            for n, word in enumerate(words)
            for one in [
                (f"{10 * page + n + 1}", 40.0, 700 - 24.0 * n, 6.0, False),
                (f"{LINE} {word} {'abc'[page]}", 72.0, 700 - 24.0 * n, 10.0, False),
            ]
        ]
        for page in range(3)
    ]
    text = read(make_pdf(pages), "a", "a.pdf").text
    assert text == " ".join(f"{LINE} {word} {letter}" for letter in "abc" for word in words)


@pytest.mark.parametrize("at", [255.0, 280.0, 299.0])
def test_numbers_of_every_fifth_line_between_the_columns_of_a_patent_are_left_out(make_pdf: MakePdf, at: float) -> None:
    page: list[Print] = []
    for n in range(1, 31):
        number = [(str(n), at, 700 - 12.0 * n, 7.0, False)] if n % 5 == 0 else []
        left, right = (
            (f"{LINE} {word} {n}", x, 700 - 12.0 * n, 8.0, False) for word, x in (("left", 54.0), ("right", 312.0))
        )
        page += [left, *number, right]
    document = read(make_pdf([page]), "a", "a.pdf")
    assert document.text == " ".join(f"{LINE} {word} {n}" for word in ("left", "right") for n in range(1, 31))
    assert document.left_out == {"line_numbers": 6}


@pytest.mark.parametrize("margin", [[40.0, 40.0], [420.0, 420.0], [40.0, 420.0]], ids=["left", "right", "outer"])
def test_numbers_of_a_printed_book_are_left_out(make_pdf: MakePdf, margin: list[float]) -> None:
    """Page numbers are in the column of the line numbers, and letters mark the last lines."""
    labels = [*map(str, range(1, 14)), "S14", "R15"]
    book: list[list[Print]] = []
    paragraphs: list[list[str]] = []
    for page in range(4):
        lines: list[Print] = [(str(page + 20), margin[page % 2], 740.0, 9.0, False)]
        for n, label in enumerate(labels):
            mark = f"{'abcd'[page]}{'efghijklmnopqrs'[n]}"
            text = f"ends {mark}." if n % 5 == 4 else f"{LINE} {mark}"
            if n % 5 == 0:
                paragraphs.append([])
            paragraphs[-1].append(text)
            lines.append((text, 86.0 if n % 5 == 0 else 72.0, 700 - 14.0 * n, 10.0, False))
            lines.append((label, margin[page % 2], 700 - 14.0 * n, 7.0, False))
        book.append(lines)
    text = read(make_pdf(book), "a", "a.pdf").text
    assert re.split(r"\n+", text) == list(map(" ".join, paragraphs))


def test_a_figure_does_not_split_a_sentence(make_pdf: MakePdf) -> None:
    page: list[Print] = [
        *[(LINE, 54.0, 700 - 12.0 * n, 10.0, False) for n in range(6)],
        ("Figure 1: Part of a graph.", 60, 600, 10, False),
        *[(LINE, 54.0, 560 - 12.0 * n, 10.0, False) for n in range(6)],
    ]
    assert read(make_pdf([page]), "a", "a.pdf").text == f"{' '.join([LINE] * 12)}\n\nFigure 1: Part of a graph."


def below(top: float, n_lines: int = 14) -> list[Print]:
    return [(LINE, 72, top - 12.0 * n, 10, False) for n in range(n_lines)]


@pytest.mark.parametrize(
    ("lines", "title", "headings"),
    [
        ([("n-gram scores for the evaluation", 100, 740, 16, False), ("of long documents", 130, 720, 16, True),
          *column(72)], "n-gram scores for the evaluation of long documents", []),
        ([("Structural change in linear models", 100, 740, 10, True), ("A. Lee and B. Kim", 130, 726, 10, False),
          *column(72), ("1 Introduction", 72, 420, 12, False), *below(396)],
         "Structural change in linear models", ["1 Introduction"]),
        ([("Draft version of February 26", 54, 760, 8, False),
          ("Structural change in linear models", 100, 740, 10, True), ("\u2020", 274, 740, 10, False),
          ("A. Lee and B. Kim", 130, 726, 9, False), ("ABSTRACT", 100, 712, 10, False), *column(72)],
         "Structural change in linear models", ["ABSTRACT"]),
        ([("Vol. 85, No. 152", 54, 770, 8, False), ("DEPARTMENT OF THE MARINE", 54, 754, 10, True),
          ("14 CFR Part 39", 54, 738, 10, True), ("[Docket No. 2020-0686]", 54, 726, 8, True),
          ("Directives for vessels; The", 54, 712, 10, True), ("Northern Company Ferries", 54, 702, 10, True),
          *below(680), ("Examining the docket of vessels", 54, 480, 10, True), *below(460, 9)],
         "Directives for vessels; The Northern Company Ferries", ["Examining the docket of vessels"]),
        ([("A. Lee and B. Kim", 72, 740, 10, False), ("The rise of the computer", 72, 720, 10, True), *column(72),
          ("The fall of the computer", 72, 440, 10, True), *below(420, 9)], "paper",
         ["The fall of the computer"]),
        ([("Acceptance of technology", 72, 740, 16, True), *column(72), ("Job relevance", 100, 440, 12, True),
          ("Output quality", 220, 410, 12, True), ("Usage", 150, 380, 10, False),
          ("Figure 2. A model of acceptance", 72, 350, 10, False), ("Results of the study", 72, 310, 12, True),
          *below(290)], "Acceptance of technology", ["Results of the study"]),
    ],
    ids=["lower case and mixed type", "bold in the size of the body", "note mark", "notice",
         "a heading below the first text is no title", "labels of a figure are no headings"],
)  # fmt: skip
def test_the_title_and_the_last_heading(make_pdf: MakePdf, lines: list[Print], title: str, headings: list[str]) -> None:
    document = read(make_pdf([lines]), "a", "paper.pdf")
    assert document.title == title
    assert [section.heading for section in document.sections if section.heading][-1:] == headings


def test_a_title_counts_although_a_later_page_has_larger_type(make_pdf: MakePdf) -> None:
    page: list[Print] = [("A manuscript title with a break", 100, 740, 12, True), *column(72)]
    later: list[Print] = [("Wide Test Poster", 72, 600, 24, False), *below(560, 8)]
    document = read(make_pdf([page, later]), "a", "a.pdf")
    assert document.title == "A manuscript title with a break"
    assert [section.heading for section in document.sections][-1] == "Wide Test Poster"


def test_a_title_in_the_bold_type_of_the_headings_is_found(make_pdf: MakePdf) -> None:
    headings = ["The evolution of the word processor", "The era before computers", "The rise of the computer"]
    page = [
        (text, 72.0, 740 - 150.0 * place - 12 * line - 12 * (line > 0), 10.0, line == 0)
        for place, heading in enumerate(headings)
        for line, text in enumerate([heading, *[LINE] * 8])
    ]
    document = read(make_pdf([page]), "a", "a.pdf")
    assert document.title == headings[0]
    assert [section.heading for section in document.sections if section.heading] == headings[1:]


def test_a_picture_with_hardly_any_text_is_refused_with_advice_to_run_ocr() -> None:
    words, drawing = b"BT /F1 10 Tf 72 700 Td (Scanned by a machine) Tj ET ", b"72 72 400 400 re f"
    with pytest.raises(
        DocumentError, match=r"its page has only 20 characters in its text layer \(scanned\?\); run OCR"
    ):
        read(pdf_of_contents([words + drawing]), "a", "a.pdf")
    for shape in (b"", b"72 72 200 200 re f"):
        assert read(pdf_of_contents([words + shape]), "a", "a.pdf").text == "Scanned by a machine"


@pytest.mark.slow
def test_a_page_of_too_many_characters_is_refused() -> None:
    content = b"BT /F1 10 Tf 72 700 Td " + b"(%s) Tj " % (b"word " * 200) * 1_100 + b"ET"
    with pytest.raises(DocumentError, match=r"page 1 holds .* characters, the limit is 1,000,000"):
        read(pdf_of_contents([content]), "a", "a.pdf")


def test_too_many_pages_are_refused() -> None:
    data = pdf_of_contents([b"BT /F1 10 Tf 72 700 Td (A page of words) Tj ET"])
    kid = data[data.index(b"/Kids [") + 7 : data.index(b"]", data.index(b"/Kids ["))]
    many = data.replace(b"/Kids [%s] /Count 1" % kid, b"/Kids [%s] /Count 10001" % b" ".join([kid] * 10_001))
    with pytest.raises(DocumentError, match="it has 10,001 pages, the limit is 10,000"):
        read(many, "a", "a.pdf")


@pytest.mark.slow
def test_an_outline_of_many_entries_to_one_page_is_soon_read() -> None:
    lines = b"".join(b"(Line of the page, %d) Tj T* " % number for number in range(1_000))
    content = b"BT /F1 .6 Tf .7 TL 72 780 Td " + lines + b"ET"
    outline = [(f"Nowhere {number}", 0) for number in range(5_000)]
    start = process_time()
    assert len(read(pdf_of_contents([content], outline=outline), "a", "a.pdf").text) > 20_000
    assert process_time() - start < 5


def test_names_of_objects_are_no_authors(make_pdf: MakePdf) -> None:
    data = make_pdf([column(72)], title="A title of words").replace(
        b"<< /Title", b"<< /Author (A. Nonym; ARRAY\\(0x2c7cf020\\)) /Title"
    )
    assert read(data, "a", "a.pdf").metadata["authors"] == ["A. Nonym"]


WORDS = "keeper mason barge sluice basin gate weir canal lock engineer register silt harbour quay ledger toll".split()


def prose(seed: int, n_lines: int = 10, width: int = 7) -> list[str]:
    """Full lines of one sentence."""
    rows = [[WORDS[(seed * 5 + 7 * line + 3 * word) % 16] + "abcdefghijklmnop"[(seed + line) % 16]
             for word in range(width)] for line in range(n_lines)]  # fmt: skip
    return [" ".join(row) for row in rows[:-1]] + [" ".join(rows[-1]) + " ends."]


def printed(rows: list[str], x: float, y: float, size: float = 10, *, bold: bool = False) -> list[Print]:
    return [(row, x, y - 12.0 * number, size, bold) for number, row in enumerate(rows)]


@pytest.mark.parametrize("is_by_row", [True, False], ids=["by-row", "right-first"])
@pytest.mark.parametrize("n_columns", [2, 3])
def test_columns_are_read_from_the_left(make_pdf: MakePdf, n_columns: int, *, is_by_row: bool) -> None:
    columns = [prose(seed, width=4 if n_columns == 3 else 6) for seed in range(n_columns)]
    columns[0][:1], columns[1][-1:] = ["Words"], ["ends.", "All"]  # rows with a side of one word
    step = 510 / n_columns
    page = [one for at, rows in enumerate(columns) for one in printed(rows, 40 + step * at, 700, size=8)][::-1]
    page = sorted(page, key=lambda one: (-one[2], one[1]) if is_by_row else (-one[1], -one[2]))
    text = read(make_pdf([page]), "a", "a.pdf").text
    assert " ".join(text.split()) == " ".join(" ".join(rows) for rows in columns)


@pytest.mark.parametrize("n_lines", [4, 10])
@pytest.mark.parametrize("shift", [0, 4, 6])
def test_short_columns_on_their_own_baselines_are_read_from_the_left(
    make_pdf: MakePdf, shift: float, n_lines: int
) -> None:
    columns = [prose(seed, n_lines, width=5) for seed in (1, 2)]
    page = [*printed(columns[0], 40, 700, size=8), *printed(columns[1], 230, 700 - shift, size=8)]
    text = read(make_pdf([sorted(page, key=lambda one: (-one[2], one[1]))]), "a", "a.pdf").text
    assert " ".join(text.split()) == " ".join([*columns[0], *columns[1]])


@pytest.mark.parametrize("order", [range(9, -1, -1), [3, 7, 0, 9, 5, 1, 8, 2, 6, 4]], ids=["upwards", "in-no-order"])
def test_the_lines_of_a_column_are_read_from_the_top(make_pdf: MakePdf, order: Sequence[int]) -> None:
    lines = printed(prose(1), 72, 700)
    assert read(make_pdf([[lines[at] for at in order]]), "a", "a.pdf").text == " ".join(prose(1))


@pytest.mark.parametrize("step", [-1, 33])
def test_columns_whose_lines_are_in_no_order_are_read_by_their_places(make_pdf: MakePdf, step: int) -> None:
    columns = [prose(seed, 20) for seed in (1, 2)]
    lines = [*printed(columns[0], 40, 700, size=8), *printed(columns[1], 310, 700, size=8)]
    text = read(make_pdf([[lines[at * step % 40] for at in range(40)]]), "a", "a.pdf").text
    assert " ".join(text.split()) == " ".join([*columns[0], *columns[1]])


def set_in(matrix: bytes, rows: list[str], first: int, drop: int) -> bytes:
    """Lines of a content stream."""
    places = [(matrix, first - drop * at, row.encode()) for at, row in enumerate(rows)]
    return b"".join(b"BT /F1 10 Tf %s %d Tm (%s) Tj ET\n" % place for place in places)


def test_a_page_that_is_turned_by_half_is_read_from_its_top() -> None:
    data = pdf_of_contents([set_in(b"-1 0 0 -1 500", prose(1), 90, -12)])
    assert read(data.replace(b"/MediaBox", b"/Rotate 180 /MediaBox"), "a", "a.pdf").text == " ".join(prose(1))


@pytest.mark.parametrize("title", ["THE LOWER SLUICE", "The Lower Sluice"])
def test_letters_that_are_spaced_out_are_words(title: str) -> None:
    letters = b" ".join(b"(%c) -500" % letter for letter in title.encode())
    content = b"BT /F1 20 Tf 72 700 Td [%s] TJ ET\n%s" % (letters, set_in(b"1 0 0 1 72", prose(1), 600, 12))
    assert read(pdf_of_contents([content]), "a", "a.pdf").text.startswith(f"{title}\n\n")


@pytest.mark.parametrize(
    ("initial", "first", "beginning"),
    [("H", "arbours", "Harbours"), ("A", "keeper", "A keeper"), ("I", "n", "In"), ("W", "HEN THE", "WHEN THE")],
)
@pytest.mark.parametrize("is_last", [True, False], ids=["drawn-last", "drawn-first"])
def test_an_initial_begins_its_word(
    make_pdf: MakePdf, initial: str, first: str, beginning: str, *, is_last: bool
) -> None:
    rows = prose(2)
    left = 72.0 + 36 * {"I": 0.28, "W": 0.95}.get(initial, 0.7)
    left += 10 if " " in beginning[:2] else 3
    lines = [
        (f"{first} {row}" if number == 0 else row, left if number < 3 else 72.0, 700 - 12.0 * number, 10.0, False)
        for number, row in enumerate([*rows[:8], "a keeper in the hall", *rows[8:]])
    ]
    drop: Print = (initial, 72, 676, 36, False)
    text = read(make_pdf([[*lines, drop] if is_last else [drop, *lines]]), "a", "a.pdf").text
    assert text.startswith(f"{beginning} {rows[0]} {rows[1]}")


def opinion(headings: list[list[str]], *, bold: bool = False, size: float = 10) -> list[Print]:
    """Headings in the middle of the column, each over a paragraph, with space around them."""
    body = [f"{LINE} {LINE}"] * 4
    page: list[Print] = printed(body, 72, 740)
    y = 620.0
    for rows in headings:
        for row in rows:
            page.append((row, 72 + (345 - 6.2 * size / 10 * len(row)) / 2, y, size, bold))
            y -= 13
        page += printed(body, 72, y - 12)
        y -= 84
    return page


@pytest.mark.parametrize(
    "headings",
    [
        [["BACKGROUND"], ["THE COURT BELOW ERRED IN", "DISMISSING THE CLAIM"]],
        [["Background of the Dispute"], ["The Standard of Review in", "This Court"]],
        [["I"], ["II"], ["III"]],
        [["I."], ["A."], ["B."], ["II."]],
        [["I", "BACKGROUND"], ["II", "THE TOLL"]],
    ],
)
@pytest.mark.parametrize("bold", [False, True])
def test_headings_that_their_place_shows(make_pdf: MakePdf, headings: list[list[str]], *, bold: bool) -> None:
    document = read(make_pdf([opinion(headings, bold=bold)]), "a", "a.pdf")
    assert [section.heading for section in document.sections if section.heading] == [*map(" ".join, headings)]


def test_names_in_the_middle_of_a_first_page_are_no_headings(make_pdf: MakePdf) -> None:
    page = [line for line in opinion([["Ann Vane and Rin Okabe", "Weir Laboratory"]]) if line[2] <= 620]
    assert [section.heading for section in read(make_pdf([page]), "a", "a.pdf").sections] == [""]


@pytest.mark.parametrize("heading", ["2 Methods", "\u00a7 2. Short title."])
def test_a_bold_numbered_heading_needs_no_space(make_pdf: MakePdf, heading: str) -> None:
    page = [*printed(prose(1), 72, 700), (heading, 72.0, 580.0, 10.0, True), *printed(prose(2), 72, 568)]
    assert [section.heading for section in read(make_pdf([page]), "a", "a.pdf").sections] == ["", heading]


@pytest.mark.parametrize(
    ("note", "size", "following"),
    [("1 See the register of wharfage.", 10, "carried"), ("1 See the register of wharfage.", 8, "Captain")],
)
def test_a_note_under_the_page_does_not_split_a_sentence(
    make_pdf: MakePdf, note: str, size: float, following: str
) -> None:
    rows, rest = prose(1, 12)[:-1], prose(2, 12)
    rest[0] = f"{following} {rest[0]}"
    pages = [[*printed(rows, 72, 700), (note, 72.0, 80.0, size, False)], printed(rest, 72, 700)]
    text = read(make_pdf(pages), "a", "a.pdf").text
    assert text == f"{' '.join([*rows, *rest])}\n\n{note}"


@pytest.mark.parametrize("heads", [("14", "14"), ("(2020) 33", "(2020) 34"), ("2020 33", "2020 34")])
def test_numbers_and_heads_of_two_pages_are_left_out(make_pdf: MakePdf, heads: tuple[str, str]) -> None:
    pages = [[(f"Journal of Canals {head}", 200.0, 760.0, 7.0, False), *printed(rows, 72, 700),
              (f"20{number}", 300.0, 40.0, 9.0, False)]
             for number, (rows, head) in enumerate(zip([prose(1), prose(2, 2)], heads, strict=True))]  # fmt: skip
    document = read(make_pdf(pages), "a", "a.pdf")
    assert document.text.split() == " ".join([*prose(1), *prose(2, 2)]).split()
    assert document.left_out == {"running_heads": 4}


def test_repeated_notes_and_words_on_short_pages_stay(make_pdf: MakePdf) -> None:
    page = [("LOCK", 72.0, 700.0, 16.0, True), ("open", 72.0, 660.0, 10.0, False)]
    assert read(make_pdf([page, page]), "a", "a.pdf").text.split() == ["LOCK", "open"] * 2
    notes = printed(["1 Ibid.", "Id. at 44."], 72, 320, 8)
    document = read(make_pdf([[*printed(prose(n, 20), 72, 700), *notes] for n in range(6)]), "a", "a.pdf")
    assert (document.text.count("Ibid."), document.text.count("Id. at 44.")) == (6, 6)


@pytest.mark.parametrize(
    ("caption", "title", "docket"),
    [
        (["ANNA VANE,|)", "Plaintiff,|)", "v.|)  Docket No. 2:18-cv-55", "HARBOUR TRUST, et al.,|)", "Defendants.|)"],
         "ANNA VANE v. HARBOUR TRUST", "2:18-cv-55"),
        (["ANNA VANE,|Case No. 3:19-cv-1", "Plaintiff,|", "v.|ORDER GRANTING MOTION", "LIME QUARRIES, INC.,|"],
         "ANNA VANE v. LIME QUARRIES, INC.", "3:19-cv-1"),
        (["ANNA VANE,|\u00a7", "vs.|\u00a7", "CITY OF GOOLE,|\u00a7"], "ANNA VANE v. CITY OF GOOLE", None),
        (["ANNA VANE,|Index No. 5/2018", "-against-|", "CITY OF GOOLE,|"], "ANNA VANE v. CITY OF GOOLE", "5/2018"),
        (["ANNA VANE,^ Petitioner v.|", "CITY OF GOOLE, Respondent|Docket 9-13"], "ANNA VANE v. CITY OF GOOLE", None),
        (["IN RE: GREY KESTREL|No. 17-md-2801", "MOORING LITIGATION|"], "IN RE: GREY KESTREL MOORING LITIGATION",
         "17-md-2801"),
    ],
)  # fmt: skip
def test_the_caption_of_a_court_paper_has_two_columns(
    make_pdf: MakePdf, caption: list[str], title: str, docket: str | None
) -> None:
    cells = [
        (cell, x, 700 - 14.0 * row, 12.0, False)
        for row, line in enumerate(caption)
        for cells, edge in zip(line.split("|"), (72.0, 330.0), strict=True)
        for cell, x in zip(cells.split("^"), (edge, edge + 74), strict=False)
        if cell
    ]
    cells[1:1] = [("1", 142, 705.6, 7, False) for line in caption if "^" in line]  # of a note
    court: list[Print] = [("UNITED STATES DISTRICT COURT", 200, 740, 12, True)]
    document = read(make_pdf([[*court, *cells, *printed(prose(1), 72, 560, 12)]]), "a", "a.pdf")
    assert (document.title, document.metadata.get("docket")) == (title, docket)


@pytest.mark.parametrize("title", ["Full page fax print", "No Job Name", "PII: S0024-3795(99)00123-4", "TITLE OF PAPER",
                                   "LaTeX Article Template", "Survey - Google Docs", "Layout 1",
                                   "Opmaak 1"])  # fmt: skip
def test_a_title_that_a_program_made_up_is_no_title(make_pdf: MakePdf, title: str) -> None:
    page: list[Print] = [("Survey of the Lower Tarn", 100, 740, 16, True), *printed(prose(1), 72, 700)]
    assert read(make_pdf([page], title=title), "a", "a.pdf").title == "Survey of the Lower Tarn"


def test_the_title_behind_a_cover_page_is_taken() -> None:
    title = ["Points, Weirs and Gates: Partly Rising and Non\u00ad", "Rising Walls of the Tarn"]
    cover = ["This article was downloaded by: Rice Library", "River Papers", *title, "Ana Loy"]
    pages = [[*printed(cover[:1], 72, 740), *printed(cover[1:], 72, 700, 18), *printed(prose(1), 72, 560)],
             [*printed(prose(2, 2), 72, 740), *printed(title, 72, 700, 14), *printed(prose(3), 72, 640)]]  # fmt: skip
    wanted = "Points, Weirs and Gates: Partly Rising and Non-Rising Walls of the Tarn"
    assert read(pdf_bytes(pages, title="River Papers 10.1080"), "a", "a.pdf").title == wanted
    other = [
        ("Other Words Above These Names", 72, 720, 14, False),
        ("Ana Loy and Rin Okabe of Goole", 72, 700, 10, False),
    ]
    named = [*pages[0], ("Ana Loy and Rin Okabe of Goole", 72, 400, 10, False)]
    assert "Goole" not in read(pdf_bytes([named, [*other, *printed(prose(3), 72, 640)]]), "a", "a.pdf").title
    pages[0][0] = ("Number 7 of these papers", *pages[0][0][1:])
    assert read(pdf_bytes(pages), "a", "a.pdf").title != wanted


def test_entities_in_a_title_are_letters(make_pdf: MakePdf) -> None:
    pages = [printed(prose(1), 72, 700)]
    assert (
        read(make_pdf(pages, title="Short&#8208;term weirs &amp; gates"), "a", "a.pdf").title
        == "Short\u2010term weirs & gates"
    )


@pytest.mark.parametrize("name", ["Administrator", "Microsoft Office User", "vane01", "pdfTeX", "(anonymous)", "HP"])
def test_an_author_that_a_machine_made_up_is_no_author(name: str) -> None:
    assert authors_of(name) == []


def test_more_columns_than_any_page_has_are_soon_read() -> None:
    rows = b"".join(
        b"1 0 0 1 9 %d Tm (%s) Tj " % (700 - 12 * row, b"a b" + b"          a b" * 1_500) for row in range(9)
    )
    start = process_time()
    assert read(pdf_of_contents([b"BT /F1 1 Tf " + rows + b"ET"]), "a", "a.pdf").text.count("a") == 9 * 1_501
    assert process_time() - start < 8


def test_letters_and_accents_that_are_printed_apart_are_one_letter() -> None:
    overlaid = (b"BT /F1 10 Tf 72 700 Td [(The gate of Ren) -111 (\\264) 444 (e M) -111 (\\250) 444 "
                b"(uller by 2\\2103 rose)] TJ ET")  # fmt: skip
    late = b"BT /F1 10 Tf 72 700 Td (The gate of Rene M\\374ller by 2\\2103 rose) Tj 71.2 0 Td (\\264) Tj ET"
    texts = [read(pdf_of_contents([content]), "a", "a.pdf").text for content in (overlaid, late)]
    assert texts == ["The gate of Ren\u00e9 M\u00fcller by 2\u02c63 rose"] * 2


def test_signs_beyond_the_first_plane_are_read(make_pdf: MakePdf) -> None:
    data = [pdf_of_mapped(b"The gatex rose", {b"x": b"d835dc61" * times}) for times in (1, 2)]  # Word writes it twice
    assert [read(one, "a", "a.pdf").text for one in data] == ["The gate\U0001d461 rose"] * 2


def test_numbers_in_digits_of_persian_keep_their_order() -> None:
    data = pdf_of_mapped(b"The gates rose in 1387", {b"1": b"06f1", b"3": b"06f3", b"8": b"06f8", b"7": b"06f7"})
    assert read(data, "a", "a.pdf").text == "The gates rose in \u06f1\u06f3\u06f8\u06f7"


def pdf_of_mapped(line: bytes, mapped: Mapping[bytes, bytes]) -> bytes:
    """A line in a font whose map has these values for some of its codes."""
    table = b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap "
    table += b"1 begincodespacerange <00> <ff> endcodespacerange "
    codes = sorted(set(line))
    names = b" ".join(b"<%02x> <%s>" % (code, mapped.get(bytes([code]), b"%04x" % code)) for code in codes)
    table += b"%d beginbfchar %s endbfchar endcmap end end" % (len(codes), names)
    font = HELVETICA.replace(b">>", b"/ToUnicode 4 0 R >>")
    return pdf_of_contents([b"BT /F1 10 Tf 72 700 Td (%s) Tj ET" % line], font, [stream(table)])


def test_marks_of_institutes_and_powers_are_accounted_for() -> None:
    content = (b"BT /F1 10 Tf 1 0 0 1 72 700 Tm (The keeper) Tj 6 Ts /F1 6 Tf (a,b) Tj 0 Ts /F1 10 Tf ( saw 10) Tj "
               b"6 Ts /F1 6 Tf (5) Tj 0 Ts /F1 10 Tf ( grains on the 4) Tj 6 Ts /F1 6 Tf (th) Tj ET")  # fmt: skip
    document = read(pdf_of_contents([content]), "a", "a.pdf")
    assert (document.text, document.left_out) == ("The keeper^a,b saw 10^5 grains on the 4th", {})


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["a quay-side weir: the self-", "employed of pre-", "and post-war X-", "ray reser-", "voirs and the quay-",
          "side ends."],
         "a quay-side weir: the self-employed of pre- and post-war X-ray reservoirs and the quay-side ends."),
        (["A B S T R A C T"], "ABSTRACT"),
    ],
)  # fmt: skip
def test_words_that_lines_and_gaps_cut_are_whole(make_pdf: MakePdf, lines: list[str], text: str) -> None:
    document = read(make_pdf([printed([*lines, *prose(1)], 72, 700)]), "a", "a.pdf")
    assert " ".join(document.text.split()).startswith(text)


def test_words_outside_of_the_page_and_remarks_are_counted(make_pdf: MakePdf) -> None:
    page = [*printed(prose(1), 72, 700), *printed(["hidden words"], 72, -50), *printed(["and more"], 900, 300)]
    document = read(make_pdf([page]), "a", "a.pdf")
    assert (document.text, document.left_out) == (" ".join(prose(1)), {"hidden_words": 4})
    note = b"/Annots [<< /Type /Annot /Subtype /Text /Rect [9 9 19 19] /Contents (Why?) >>] /MediaBox"
    data = make_pdf([printed(prose(1), 72, 700)]).replace(b"/MediaBox", note)
    assert read(data, "a", "a.pdf").left_out == {"comments": 1}


def test_short_cells_of_a_table_are_read_by_rows(make_pdf: MakePdf) -> None:
    page = [(f"{word} toll", x, 700 - 14.0 * row, 10.0, False) for row, word in enumerate(WORDS) for x in (72.0, 330.0)]
    text = read(make_pdf([page]), "a", "a.pdf").text
    assert text.split()[:6] == "keeper toll keeper toll mason toll".split()


@pytest.mark.parametrize("n_notes", [0, 9])
def test_a_short_left_column_behind_the_right_one_is_read_first(make_pdf: MakePdf, n_notes: int) -> None:
    right = [(f"{LINE} right", 317.0, 700 - 12.0 * row, 10.0, False) for row in range(6)]
    left = [(f"{LINE} left", 54.0, 700 - 12.0 * row, 10.0, False) for row in range(5 + n_notes)]
    text = read(make_pdf([[*right, *left]]), "a", "a.pdf").text
    assert text.rindex("left") < text.index("right") and text.count("left") == 5 + n_notes


@pytest.mark.parametrize(("mark", "size", "text"), [("-3", 6, "10^-3"), ("-3", 10, "10-3"), ("5", 6, "10^5")])
def test_raised_numbers_with_a_minus_are_no_range(make_pdf: MakePdf, mark: str, size: float, text: str) -> None:
    page = [
        *printed(prose(1), 72, 700),
        ("10", 72.0, 500.0, 10.0, False),
        (mark, 83.2, 504.0 - (size > 6) * 4, size, False),
    ]
    assert read(make_pdf([page]), "a", "a.pdf").text.split()[-1] == text


def test_turned_heads_of_columns_are_text() -> None:
    lines = b"".join(b"BT /F1 10 Tf 72 %d Td (%s) Tj ET\n" % (700 - 12 * row, LINE.encode()) for row in range(9))
    heads = b"".join(
        b"BT /F1 9 Tf 0 1 -1 0 %d 540 Tm (%s load) Tj ET\n" % (120 + 40 * at, word.encode())
        for at, word in enumerate(WORDS[:3])
    )
    document = read(pdf_of_contents([lines + heads]), "a", "a.pdf")
    assert document.text.split()[-6:] == " load ".join([*WORDS[:3], ""]).split()
    assert document.left_out == {}


@pytest.mark.parametrize(("cosine", "sine"), [(0, 1), (0.7, 0.7)])
def test_words_along_the_margin_or_across_the_page_are_counted(cosine: float, sine: float) -> None:
    lines = b"".join(b"BT /F1 10 Tf 72 %d Td (%s) Tj ET\n" % (700 - 12 * row, LINE.encode()) for row in range(9))
    turned = b"BT /F1 40 Tf %f %f %f %f 90 300 Tm (DRAFT) Tj ET\n" % (cosine, sine, -sine, cosine)
    document = read(pdf_of_contents([turned + lines]), "a", "a.pdf")
    assert "DRAFT" not in document.text and document.metadata["left_out_running_heads"] == 1


@pytest.mark.parametrize(
    ("x", "y", "size", "stamps"),
    [(250.0, 620.0, 48.0, ["DRAFT"] * 3), (440.0, 30.0, 9.0, [f"TARN0001{page:03}" for page in range(3)])],
)
def test_watermarks_and_the_numbers_of_a_production_are_left_out(
    make_pdf: MakePdf, x: float, y: float, size: float, stamps: list[str]
) -> None:
    pages = [[*printed(prose(page, 20), 72, 700), (stamp, x, y, size, False)] for page, stamp in enumerate(stamps)]
    document = read(make_pdf(pages), "a", "a.pdf")
    assert document.text.split() == " ".join(" ".join(prose(page, 20)) for page in range(3)).split()
    assert (document.left_out, document.sections[0].heading) == ({"running_heads": 3}, "")


def test_heads_with_small_roman_numbers_are_those_with_other_numbers(make_pdf: MakePdf) -> None:
    heads = ["", "ii THE LOCK", "", "", "2 THE LOCK", "", "4 THE LOCK", "", "6 THE LOCK"]
    pages = [
        [(head, 72, 760, 9, False)] * bool(head)
        + [(f"{LINE} {page} {row}", 72, 700 - 12 * row, 10, False) for row in range(9)]
        for page, head in enumerate(heads)
    ]
    document = read(make_pdf(pages), "a", "a.pdf")
    assert "THE LOCK" not in document.text and document.metadata["left_out_running_heads"] == 4
