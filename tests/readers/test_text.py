"""Plain text: sections, pages, and titles."""

import json
from itertools import count

import pytest

from engine.errors import DocumentError
from engine.readers import read_bytes
from engine.readers.jsonl import read_one
from engine.readers.text import read
from engine.text.document import Document
from tests.readers.made import document_of

BODY = "A sentence of the body that is long enough to fill its line. " * 5


def test_sections_follow_headings_or_are_one() -> None:
    document = read(f"My Paper\n\n1. Introduction\n\n{BODY}\n\n2. Methods\n\n{BODY}\n".encode(), "a.txt", "dir/a.txt")
    assert document.title == "My Paper"
    assert [section.heading for section in document.sections] == ["1. Introduction", "2. Methods"]
    assert document.text.startswith("My Paper\n\n1. Introduction")
    document = read(b"just some words.\n", "a.txt", "dir/a.txt")
    assert [(section.heading, section.path) for section in document.sections] == [("", ())]
    assert document.title == "a"


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.txt", "Beschreibung\n\nPumpe mit Ablauf\n\nSie pumpt. Sie geht.\n", "Pumpe mit Ablauf"),
        ("a.md", "# Beschreibung\n\nSie pumpt.\n\n# Patentansprüche\n\n1. Pumpe.\n", "a"),
    ],
)
def test_the_name_of_a_part_is_no_title(name: str, text: str, title: str) -> None:
    (document,) = read_bytes(text.encode(), name)
    assert isinstance(document, Document) and document.title == title


def test_a_word_that_a_page_cuts_is_joined_in_a_long_text() -> None:
    pages = [f"     Journal {page}\n\n" + "The keeper waits at noon.\n" * 60 for page in range(1, 7)]
    pages[2], pages[3] = pages[2] + "The reg-\n", pages[3].replace("The keeper", "ulation", 1)
    assert "The regulation" in read("\f".join(pages).encode(), "a", "a.txt").text


@pytest.mark.parametrize(
    ("cut", "whole", "elsewhere"),
    [
        ("ci-|dessus", "ci-dessus", ""), ("peut-|être", "peut-être", ""), ("кто-|то", "кто-то", ""),
        ("из-|за", "из-за", ""), ("régu-|lation", "régulation", ""), ("COVID-|19", "COVID-19", ""),
        ("non-|binding", "non-binding", ""), ("12-|15", "12-15", ""), ("long-|term", "long-term", "A long-term plan."),
        ("multi-|homed", "multi-homed", ""), ("water-|cooled", "water-cooled", "An air-cooled one by the water."),
        ("re-|opened", "re-opened", "It was re-elected, and is opened."), ("state-of-|the-art", "state-of-the-art", ""),
        ("over-|flow", "overflow", "The flow goes over."), ("re-|opened", "reopened", "A re-election."),
        ("INTRO-|DUCTION", "INTRODUCTION", ""), ("long-|term", "longterm", "A long-term plan is longterm."),
    ],
)  # fmt: skip
def test_a_hyphen_at_the_end_of_a_line_stays_where_the_text_has_words_like_it(
    cut: str, whole: str, elsewhere: str
) -> None:
    text = f"{elsewhere} The wa-\nter at the gate is {cut.replace('|', chr(10))} of the lock."
    assert f"gate is {whole} of" in " ".join(read(text.encode(), "a", "a.txt").text.split())


def test_form_feeds_are_pages_and_numbers_of_items_are_not() -> None:
    document = read(b"one\n\ftwo\n\fthree\n", "a.txt", "a.txt")
    assert document.pages == (0, 5, 10)
    assert [document.text[start] for start in document.pages] == ["o", "t", "t"]
    text = "*1. Keep the gate.* It is old.\n\n*2. Lift the gate.* It is new.\n"
    assert read(text.encode(), "a.txt", "a.txt").text == text


def test_the_title_of_an_rfc_stands_below_its_columns() -> None:
    head = "Network Working Group         R. Fielding\nRequest for Comments: 1      UC Irvine\n\n\n"
    assert (
        read(f"{head}       Hypertext Transfer\n\nBody of it.\n".encode(), "a", "a.txt").title == "Hypertext Transfer"
    )


@pytest.mark.parametrize("data", [b"", b" \n\f\n", b"\xef\xbb\xbf"])
def test_empty_text_is_refused(data: bytes) -> None:
    with pytest.raises(DocumentError, match="no text"):
        read(data, "a.txt", "a.txt")


def head(line: str, number: int) -> str:
    return f"         {line}           {number}\n\n"


@pytest.mark.parametrize(
    ("pages", "n_heads"),
    [
        ([BODY, head("Cite as: 5 W. 12 (2001)", 2) + BODY, head("Cite as: 5 W. 12 (2001)", 3) + BODY], 2),
        ([head("Cite as: 5 W. 12 (2001)", 1) + BODY, head("Cite as: 5 W. 12 (2001)", 2) + BODY], 2),
        ([head("VANE", 1) + BODY, head("5 W. 12", 2) + BODY, head("VANE v. LOCK", 3) + BODY], 3),
        ([BODY + "\n\nOkabe       Standards       [Page 1]\n", BODY + "\n\nOkabe       Standards       [Page 2]\n"], 2),
        ([BODY, f"RIVER BOARD REPORT 2\n\n{BODY}", f"RIVER BOARD REPORT 3\n\n{BODY}"], 2),
        ([f"A. Yes.\n\n{BODY}"] * 3, 0),
        ([f"Id. at 12.\n\n{BODY}", f"Id. at 13.\n\n{BODY}", f"Id. at 14.\n\n{BODY}"], 0),
        ([f"Chapter 1\n\n{BODY}", f"Chapter 2\n\n{BODY}"], 0),
        ([f"Total       12\n{BODY}", f"Total       13\n{BODY}"], 0),
        ([head("Cite as: 5 W. 12 (2001)", 2) + BODY, head("Cite as: 5 W. 12 (2001)", 9) + BODY], 0),
        ([head("5 W. 12", page) + f"        A. Yes.\n\n{BODY}" for page in (1, 2)], 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_json", [False, True])
def test_heads_of_few_pages_are_left_out_by_their_numbers(pages: list[str], n_heads: int, as_json: bool) -> None:
    text = "\f".join(pages)
    data = json.dumps({"id": "a", "text": text}) if as_json else text
    document = (read_one if as_json else read)(data.encode(), "a", "a")
    assert document.left_out.get("running_heads", 0) == n_heads
    n_lines = sum(bool(line.strip()) for line in text.replace("\f", "\n").split("\n"))
    assert sum(bool(line.strip()) for line in document.text.replace("\f", "\n").split("\n")) == n_lines - n_heads


def opinion(n_pages: int) -> str:
    """An opinion of pages with running heads, whose numbers restart in each part, and words cut by hyphens."""
    first = (
        "(Slip Opinion)           OCTOBER TERM, 2001             1\n\n                        Syllabus\n\n"
        "     NOTE: The syllabus is no part of the opinion of the Court. See\n"
        "   United States v. Lumber Co., 200 U. S. 321.\n\nSUPREME COURT OF THE UNITED STATES\n\n"
        "                        Syllabus\n\n   VANE ET AL. v. LOCK COMPANY\n\n   No. 12-34. Decided June 24, 2001\n\n"
    )
    lines = "The keeper of the lock asks for return of the toll, and appur-\ntenant rights of the weir go too.\n"
    parts = ["Syllabus"] * 2 + ["Opinion of the Court"] * (n_pages - 3) + ["VANE, J., dissenting"]
    pages = [first + lines]
    numbers = count(2)
    for place, part in enumerate(parts[1:], 1):
        numbers = numbers if part == parts[place - 1] else count(1)
        number = next(numbers)
        line = (
            f"{number}           VANE v. LOCK COMPANY"
            if number % 2 == 0
            else head("Cite as: 5 U. S. 12 (2001)", number)
        )
        section = "                              I\n                              A\n" if number == 1 else ""
        body = f"{lines}{section}{lines * 9}So holds {chr(97 + place % 26) * 3}.\n"
        pages.append(f"{line.rstrip()}\n\n                   {part}\n\n{body}")
    return "\f".join(pages)


@pytest.mark.parametrize("n_pages", [4, 7, 40])
def test_an_opinion_of_pages_is_read_with_its_parts(n_pages: int) -> None:
    document = read(opinion(n_pages).encode(), "a.txt", "a.txt")
    assert document.title == "VANE v. LOCK COMPANY"
    assert document.metadata["court"] == "SUPREME COURT OF THE UNITED STATES"
    assert "Cite as" not in document.text
    assert "appur-" not in document.text
    assert document.text.count("Opinion of the Court") == document.text.count("VANE, J., dissenting") == 1
    paths = list(dict.fromkeys(section.path[0] for section in document.sections if section.path))
    assert paths == ["Syllabus", "Opinion of the Court", "VANE, J., dissenting"]
    assert len(document.pages) == n_pages
    twin = read_one(json.dumps({"id": "a", "text": opinion(n_pages)}).encode(), "a", "a")
    assert (twin.title, [section.path for section in twin.sections]) == (
        document.title, [section.path for section in document.sections],
    )  # fmt: skip


def numbered_page(first: str) -> str:
    return "\n".join(f"{number:>2}   {first} {chr(96 + number)} rose and" for number in range(1, 26))


_ROOMS = ["quay", "weir", "lock", "gate"]
_PROSE = [
    f"The text of page {n} speaks of otters number {n} and\ngoes on at the {room}." for n, room in enumerate(_ROOMS, 1)
]
_INSIDE = "".join(
    f"Otters of the {room} and the\n\nVane    Standards    [Page {n}]\n\nkeeper of number {n} can rest and water is\n"
    f"high.\n{'More of it stands here.' * 3}\nAnd here.\n\n"
    for n, room in enumerate(_ROOMS, 1)
)


@pytest.mark.parametrize(
    ("text", "n_prose", "left_out"),
    [
        ("\f".join(_PROSE), 4, {}),
        ("\f".join(f"{page}\n\n        {'i' * n}\n" for n, page in enumerate(_PROSE[:3], 1)), 3, {"running_heads": 3}),
        (_INSIDE, 0, {"running_heads": 12}),
        ("\n\f".join(map(numbered_page, ["Gate", "Weir"])), 0, {"line_numbers": 50}),
        (
            "\n".join(f"{numbered_page('Gate')}\n26\n27               - {n} -" for n in (1, 2)),
            0,
            {"line_numbers": 54, "running_heads": 2},
        ),
        (numbered_page("Gate"), 0, {}),
    ],
    ids=["prose", "roman", "prose beside heads", "line numbers", "feet without feeds", "one list"],
)
def test_furniture_is_told_from_prose(text: str, n_prose: int, left_out: dict[str, int]) -> None:
    document = read(text.encode(), "a.txt", "a.txt")
    assert document.left_out == left_out
    assert document.text.count("The text of page") == n_prose
    assert document.text.count("keeper of number") == text.count("keeper of number")


_BODY = "\n\n" + "The keeper of the lock asks for return of the toll, and the weir goes too.\n" * 9


@pytest.mark.parametrize(
    ("caption", "title", "fields"),
    [
        ("IN THE DISTRICT COURT\n\nHARBOUR TRUST, INC.,        )\n                            )\n"
         "          Plaintiff,        )   Case No. 1:21-cv-12\n     v.                     )\n"
         "LIME QUARRIES LLC,          )\n          Defendant.        )\n\nJuly 9, 2021",
         "HARBOUR TRUST, INC. v. LIME QUARRIES LLC", {"docket": "1:21-cv-12", "date": "2021-07-09"}),
        ("DISTRICT COURT OF GOOLE\n\nHARBOUR TRUST,\n\n     Plaintiff,\n\n   -against-          OPINION AND ORDER\n\n"
         "LIME QUARRIES LLC,\n\n        Defendant.", "HARBOUR TRUST v. LIME QUARRIES LLC", {}),
        ("IN THE HIGH COURT OF GOOLE\nDate: 9 July 2021\n\nBetween:\n\nHARBOUR TRUST LIMITED    Claimant\n\n- and -\n\n"
         "LIME QUARRIES       Defendant", "HARBOUR TRUST LIMITED v. LIME QUARRIES", {"date": "2021-07-09"}),
        ("STATE OF GOOLE,\n\n   Respondent,\n\n vs.\n\nANN VANE,\n\n    Petitioner.\n\nSupreme Court Case No. SC-21-12",
         "STATE OF GOOLE v. ANN VANE", {"docket": "SC-21-12"}),
        ("COURT OF APPEALS\n\nWEIR TRUST, a lock corporation,          No. 19-15\n          Plaintiff,\n"
         "                                         D.C. No.\n             v.                       3:18-cv-1\n\n"
         "LIME QUARRIES, INC.,\n          Defendant.              OPINION", "WEIR TRUST v. LIME QUARRIES, INC.",
         {"docket": "19-15"}),
        ("COURT OF APPEALS\n\nAnn Vane, :\nAppellee, : No. 19AP-1\nv. : (C.P.C. No. 18CV-2)\nLime Works, : (REGULAR)",
         "Ann Vane v. Lime Works", {"docket": "19AP-1"}),
        ("Supreme Court of Goole\n\nVane v. Lime Works\n\nDocket No. 51,000.\n", "Vane v. Lime Works",
         {"docket": "51,000"}),
        ("COURT OF APPEALS\n\nOAK, INC. dba\nWEIR AND\nGATE,\nPlaintiff,\nversus\nLIME WORKS; ANN VANE\nand DOES 1,\n",
         "OAK, INC. dba WEIR AND GATE v. LIME WORKS", {}),
        ("COURT OF APPEALS\n\nWEIR TRUST, )\n)\nAppellant, )\n) Goole County\nvs. ) No. 17\nELM, in her office )\n)\n",
         "WEIR TRUST v. ELM", {}),
        ("COURT OF APPEALS\n\nRe: No. 17-3, Elm Co. v. Ann Vane, et al\n\nClerk of Court", "Elm Co. v. Ann Vane",
         {"court": "COURT OF APPEALS"}),
        ("COURT OF GOOLE\n\nANN VANE,\n    Petitioner,\nFor a Judgment under Article 78\n    -against-\nTHE BOARD,\n",
         "ANN VANE v. THE BOARD", {}),
        ("COURT OF APPEAL\n\nOAK PORT                   *       NO. 2024-CA-06\nGATE &\nLIME WORKS                 *\n"
         "                                               COURT OF APPEAL\nVERSUS                     *\n"
         "                                               FOURTH CIRCUIT\nANN VANE                   *\n",
         "OAK PORT GATE & LIME WORKS v. ANN VANE", {"docket": "2024-CA-06"}),
        ("COURT OF GOOLE\n\nSee Oak v. Elm Co., 2 U. S. 3.\n\nWEIR TRUST, L.P.\n"
         "                                         OPINION BY\n"
         "v. Record No. 25002      JUSTICE OKABE\n\nTOLL BOARD, et al.\n", "WEIR TRUST, L.P. v. TOLL BOARD", {}),
        ("COURT OF GOOLE\n\nANN VANE v LIME WORKS [2021] GSC 4\n\nDocket Nos. 165, 166.", "ANN VANE v. LIME WORKS", {}),
        ("SUPREME COURT OF GOOLE\n\nIn the Interest of: A.V., a minor       :   No. 14\n",
         "In the Interest of: A.V., a minor", {}),
        ("IN THE COURT OF GOOLE\n\nIN RE: Oak Filters\nLiability Litigation,\nNo. 15", "IN RE: Oak Filters Liability "
         "Litigation", {}),
        ("COURT OF GOOLE\n\n19-1234\n\nHARBOUR TRUST\nv.\nLIME CO.\n", "HARBOUR TRUST v. LIME CO.",
         {"docket": "19-1234"}),
        *((f"{first}\nDistrict Court of Goole, Feb. 3, 2019", "Harbour Trust v. Lime Co.",
           {"docket": "2:19-cv-01234-AB", "date": "2019-02-03"}) for first in (
            "2:19-cv-01234-AB Harbour Trust v. Lime Co.", "Harbour Trust v. Lime Co. (2:19-cv-01234-AB)",
            "Harbour Trust v. Lime Co., 2:19-cv-01234-AB", "Re: Harbour Trust v. Lime Co., No. 2:19-cv-01234-AB")),
        ("5 U.S. 3\n\nHARBOUR TRUST\nv.\nLIME CO.\n\nSupreme Court of Goole.", "HARBOUR TRUST v. LIME CO.", {}),
    ],
)  # fmt: skip
def test_parties_of_captions_in_columns(caption: str, title: str, fields: dict[str, str]) -> None:
    document = read(f"{caption}{_BODY}".encode(), "a.txt", "a.txt")
    assert document.title == title
    assert {name: document.metadata.get(name) for name in fields} == fields


def test_parts_of_an_opinion_at_the_left_are_sections() -> None:
    parts = ["Opinion of the Court", "JUSTICE VANE, with whom JUSTICE OKABE joins, dissenting.", "Per Curiam."]
    document = read("\n\n".join(f"{part}{_BODY}" for part in parts).encode(), "a.txt", "a.txt")
    assert [section.heading for section in document.sections] == parts


_ITEMS = [("Item 1.", "Business"), ("Item 7A.", "Market Risk of Pumps")]


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.txt", "{} {}\n\n" + BODY + "\n\n"),
        ("b.txt", "{}        {}\n\n" + BODY + "\n\n"),
        ("c.txt", "     {} {}\n\n" + BODY + "\n\n"),
        ("a.html", "<p><b>{} {}</b></p><p>" + BODY),
        ("b.html", "<div><span style='font-weight:700'>{}</span> <span style='font-weight:700'>{}</span></div>" + BODY),
        ("c.html", "<table><tr><td>{}</td><td>{}</td></tr></table><p>" + BODY),
    ],
)
def test_the_items_of_a_filing_are_headings(name: str, form: str) -> None:
    document = document_of(name, "".join(form.format(*item) for item in _ITEMS).encode())
    titles = [" ".join(section.heading.split()) for section in document.sections]
    assert titles == ["Item 1. Business", "Item 7A. Market Risk of Pumps"]


def test_the_title_and_the_author_of_a_book_stand_in_its_head() -> None:
    head = "The Project Gutenberg eBook of The Lock\n\nFor anyone.\n\nTitle: The Lock\n\nAuthor: Ann Vane\n\n"
    document = read(f"{head}Chapter One\n\n{BODY}".encode(), "a.txt", "a.txt")
    assert (document.title, document.metadata["authors"]) == ("The Lock", ["Ann Vane"])
    assert document.sections[-1].heading == "Chapter One"


def test_items_in_sentences_links_and_tables_are_no_headings() -> None:
    row = "<tr><td>{} {}</td><td>4</td></tr>"
    contents = "".join(f"<p><b><a href='#i'>{number} {title}</a></b></p>" for number, title in _ITEMS)
    page = f"{contents}<table>{''.join(row.format(*item) for item in _ITEMS)}</table><p>Item 2. As it was.</p><p>{BODY}"
    document = document_of("a.html", page)
    assert [section.heading for section in document.sections] == [""]


def test_lines_that_make_up_most_of_a_text_are_no_running_heads() -> None:
    titles = ("AAAAA", "AAAAA", "AAAA", "AAAA", "AAAA", "AAAAA")
    bodies = ("aaaa", "aaaa", "aaaa", "aaaa", "aa a", "aaaa")
    text = "".join(
        f"{number}. {title}\n\n{body}\n\n" for number, (title, body) in enumerate(zip(titles, bodies, strict=True), 1)
    )
    assert document_of("a.txt", text).text.split() == text.split()


@pytest.mark.parametrize(
    ("text", "title", "pages", "fields"),
    [
        ("<PAGE> 1\nFORM 10-K\n\nWe run locks.\n\n<PAGE>\n\nIce is a risk.\n", "FORM 10-K", 2, {}),
        ("US 10,000,001 B2\n\nPump with seal\n\nAbstract\n\nA pump.\n", "Pump with seal", 0, {}),
        ("Subject: Locks\nDate: Fri, 9 Jul 2021 10:00:00\n\nThe lock leaks.\n", "Locks", 0,
         {"date": "2021-07-09", "year": 2021}),
    ],
    ids=["pages of the SEC", "number of a patent", "date of a mail"],
)  # fmt: skip
def test_pages_titles_and_dates_of_other_programs(text: str, title: str, pages: int, fields: dict[str, object]) -> None:
    document = read(text.encode(), "a", "a.txt")
    assert isinstance(document, Document)
    assert (document.title, len(document.pages)) == (title, pages)
    assert {field: document.metadata.get(field) for field in fields} == fields
