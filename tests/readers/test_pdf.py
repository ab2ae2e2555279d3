"""PDFs: headings, paragraphs, running heads, titles, and files that are refused."""

from itertools import count

import pytest

from engine.errors import DocumentError
from engine.readers.pdf import read
from tests.readers.made import MakePdf, Print

LINE = "This is a full line of the body text, set in ten points, as most of it is"
_numbers = count()


def body(top: float, n_lines: int = 6) -> list[Print]:
    """A paragraph; its lines are as wide as the page allows."""
    lines = [
        (f"{LINE} {chr(97 + next(_numbers) % 26) * 3}", 72.0, top - 12 * place, 10.0, False) for place in range(n_lines)
    ]
    return [
        *lines[:-1],
        (f"Its last line ends here, {chr(97 + next(_numbers) % 26) * 4}.", 72.0, top - 12 * (n_lines - 1), 10.0, False),
    ]


def test_headings_are_detected_by_type_and_numbers(make_pdf: MakePdf) -> None:
    page: list[Print] = [
        ("On the Matching of Long Documents", 100, 740, 20, True),
        ("Abstract", 72, 700, 12, True), *body(680),
        ("1 Introduction", 72, 580, 12, True), *body(560),
        ("1.1 Aim", 72, 460, 10, True), *body(440),
    ]  # fmt: skip
    document = read(make_pdf([page]), "a", "a.pdf")
    assert document.title == "On the Matching of Long Documents"
    assert [section.path for section in document.sections] == [
        ("Abstract",), ("1 Introduction",), ("1 Introduction", "1.1 Aim"),
    ]  # fmt: skip
    assert document.text[document.sections[1].start :].startswith("1 Introduction\n\nThis is a full line")


def test_lines_become_paragraphs(make_pdf: MakePdf) -> None:
    document = read(make_pdf([[*body(700), *body(610)]]), "a", "a.pdf")
    first, second = document.text.split("\n\n")
    assert "\n" not in first
    assert first.startswith(LINE) and "Its last line ends here, " in first
    assert second.startswith(LINE)


def test_running_heads_and_page_numbers_are_left_out(make_pdf: MakePdf) -> None:
    pages = [
        [(f"ACME Journal 12:{number}", 72, 770, 9, False), *body(700), (f"{number}", 300, 30, 9, False)]
        for number in range(5, 10)
    ]
    document = read(make_pdf(pages), "a", "a.pdf")
    assert "ACME" not in document.text
    assert document.text.count(LINE) == 25
    assert [document.text[start : start + 9] for start in document.pages] == ["This is a"] * 5
    assert document.metadata == {"n_pages": 5, "left_out_running_heads": 10}


def test_the_outline_is_used_where_it_fits(make_pdf: MakePdf) -> None:
    pages = [[("Alpha part", 72, 720, 10, False), *body(700)], [("2 Beta part", 72, 720, 10, False), *body(700)]]
    document = read(make_pdf(pages, outline=[("Alpha part", 0), ("Beta part", 1)]), "a", "a.pdf")
    assert [section.heading for section in document.sections] == ["Alpha part", "2 Beta part"]


def test_the_title_of_the_properties_is_used_unless_it_is_a_file_name(make_pdf: MakePdf) -> None:
    assert read(make_pdf([body(700)], title="Long Documents"), "a", "x.pdf").title == "Long Documents"
    assert read(make_pdf([body(700)], title="Microsoft Word - draft.docx"), "a", "x.pdf").title == "x"


def test_pages_without_text_start_where_the_next_does(make_pdf: MakePdf) -> None:
    document = read(make_pdf([[], body(700), [], body(700)]), "a", "a.pdf")
    assert document.pages[:2] == (0, 0)
    assert document.pages[2] == document.pages[3] > 0


def test_a_scan_is_refused_with_advice_to_run_ocr(make_pdf: MakePdf) -> None:
    with pytest.raises(DocumentError, match=r"its page has no text layer \(scanned\?\); run OCR first, e.g. ocrmypdf"):
        read(make_pdf([[]]), "a", "a.pdf")


def test_an_encrypted_file_is_refused(make_pdf: MakePdf) -> None:
    key = "<" + "ab" * 32 + ">"
    handler = f"/Encrypt << /Filter /Standard /V 1 /R 2 /O {key} /U {key} /P -4 >> /ID [{key} {key}] "
    data = make_pdf([body(700)]).replace(b"trailer << ", f"trailer << {handler}".encode())
    with pytest.raises(DocumentError, match="it is encrypted"):
        read(data, "a", "a.pdf")


@pytest.mark.parametrize("data", [b"", b"garbage", b"%PDF-1.7\ncut"])
def test_damaged_files_are_refused(data: bytes) -> None:
    with pytest.raises(DocumentError, match="not a PDF, or a damaged one"):
        read(data, "a", "a.pdf")
