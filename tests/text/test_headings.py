"""Headings found in plain text, and lines that are not headings."""

from __future__ import annotations

import pytest

from engine.text.headings import find_headings

BODY = "This is the body of a section, which runs on for a line or so.\n"


def titles(text: str) -> list[tuple[int, str]]:
    headings = find_headings(text)
    assert all(" ".join(heading.title.split()) in " ".join(text[heading.start :][:200].split()) for heading in headings)
    return [(heading.level, heading.title) for heading in headings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"1. Aim\n\n{BODY}\n1.1 Purpose\n\n{BODY}\n2. Methods\n{BODY}\nA. Tables\n\n{BODY}\nA.1 More\n\n{BODY}",
         [(1, "1. Aim"), (2, "1.1 Purpose"), (1, "2. Methods"), (1, "A. Tables"), (2, "A.1 More")]),
        (f"I. AIM\n\n{BODY}\nII. METHODS\n\n{BODY}\nA. Data\n\n{BODY}\nB. Model\n\n{BODY}\nIII. RESULTS\n\n{BODY}",
         [(1, "I. AIM"), (1, "II. METHODS"), (2, "A. Data"), (2, "B. Model"), (1, "III. RESULTS")]),
        (f"=====\nTitle\n=====\n\nFirst\n-----\n{BODY}\nDeeper\n~~~~~~\n{BODY}\nSecond\n------\n{BODY}",
         [(1, "Title"), (2, "First"), (3, "Deeper"), (2, "Second")]),
        (f"{BODY}\nSUMMARY OF THE INVENTION\n\n{BODY}", [(1, "SUMMARY OF THE INVENTION")]),
        (f"{BODY}\nMAX_SIZE = 10\n\n{BODY}\nEND\n\n{BODY}\nIF (A > B) THEN C\n\n{BODY}", []),
        ("PLEASE READ THIS\n\nALL OF IT\n\nNOW AND HERE\n\nso be it\n", []),
        (f"CHAPTER II\n\nArticle 5\n\n{BODY}\nArticle 6: Duties\n\n{BODY}",
         [(2, "CHAPTER II"), (3, "Article 5"), (3, "Article 6: Duties")]),
        (f"1. Setup\n\n{BODY}\n1. Open the box\n\n2. Take it out\n\n3. Switch it on\n\n{BODY}", [(1, "1. Setup")]),
        ("Buy:\n\n1. Milk\n2. Bread\n3. Eggs\n", []),
        ("1. Introduction ..... 1\n\n2. Methods ..... 5\n\n3. Results      9\n\n"
         f"1. Introduction\n\n{BODY}\n2. Methods\n\n{BODY}", [(1, "1. Introduction"), (1, "2. Methods")]),
        (f"1. Introduction\n\n2. Methods\n\n{BODY}\n1. Introduction\n\n{BODY}", [(1, "1. Introduction")]),
        (f"{BODY}\n3.11 Python was released then, and it is the one that we use\nin all of this.\n", []),
    ],
    ids=["numbers nest", "letters under roman numbers", "underlines set levels by first use", "capitals", "code",
         "paragraphs in capitals", "articles under chapters", "list", "tight list", "contents",
         "contents without page numbers", "sentence with a number"],
)  # fmt: skip
def test_headings_have_levels_and_other_lines_are_none(text: str, expected: list[tuple[int, str]]) -> None:
    assert titles(text) == expected


def test_running_heads_are_not_headings() -> None:
    page = f"ACME REPORT 12\n\n{BODY}\fACME REPORT 13\n\n{BODY}"
    assert titles(page * 3) == []


def test_rfc_headings_stand_left_of_indented_text() -> None:
    body = "   Text of the memo is indented by three,\n   in every line of it,\n   and goes on.\n"
    footer = "Fielding, et al.            Standards Track                     [Page 1]\n"
    page = f"{footer}\fRFC 2616        HTTP/1.1      June 1999\n\n{body}"
    text = f"Status of this Memo\n\n{body}\n1.  Purpose\n\n{body}\n{page}"
    assert titles(text) == [(1, "Status of this Memo"), (1, "1.  Purpose")]


def test_many_blank_lines_count_as_a_few() -> None:
    text = (
        f"Title\n=====\n\n{BODY}"
        + "\n \n" * 50
        + f"1. Introduction{chr(10) * 40}{BODY}{chr(10) * 9}SUMMARY OF ALL\n\n{BODY}"
    )
    assert titles(text) == [(1, "Title"), (1, "1. Introduction"), (1, "SUMMARY OF ALL")]


@pytest.mark.slow
def test_more_numbered_lines_than_the_limit_are_a_list() -> None:
    assert titles("".join(f"{number % 90 + 1}. Item Name\n\n{BODY}\n" for number in range(50_001))) == []


def centred(line: str, width: int = 62) -> str:
    return " " * ((width - len(line)) // 2) + line + "\n"


@pytest.mark.parametrize(
    "line",
    ["I. BACKGROUND", "II", "III. The Rule", "SYLLABUS", "OPINION OF THE COURT", "Syllabus", "Opinion of the Court",
     "VANE, J., dissenting.", "JUSTICE OKABE, concurring in the judgment.", "CHAPTER II", "PER CURIAM.",
     "Statement of the Case", "Findings of Fact and Conclusions of Law", "Procedural History", "Analysis",
     "Discussion of the/Second Claim", "MOTION OF THE KEEPER/TO DISMISS", "I./Facts of the Weir",
     "A Summary of/the/Issues",
     "I. THE DISTRICT COURT ERRED IN/DISMISSING THE COMPLAINT.", "I. The Duty of the/Upper Owner"],
)  # fmt: skip
def test_a_short_line_in_the_middle_is_a_heading(line: str) -> None:
    before = centred("I") + f"\n{BODY}\n" + centred("II") + f"\n{BODY}\n" if line.startswith("III") else ""
    block = "".join(map(centred, line.split("/")))
    line = line.replace("/", " ")
    assert titles(f"{BODY}\n{before}{block}\n{BODY}")[-1][1] == line
    assert titles(f"{BODY}\n{before}    {line} and so on\n\n{BODY}")[-1:] != [(1, line)]


def test_centred_headings_nest_as_parts_numbers_and_letters() -> None:
    close = f"{BODY}{centred('II')}{BODY}{centred('A')}{centred('1')}{BODY}{centred('2')}{BODY}{centred('B')}{BODY}"
    text = f"{centred('Syllabus')}\n{BODY}\n{centred('Opinion of the Court')}\n{BODY}{centred('I')}{close}"
    text += f"\n{centred('VANE, J., dissenting.')}\n{BODY}\n{centred('I')}\n{BODY}"
    assert titles(text) == [
        (1, "Syllabus"), (1, "Opinion of the Court"), (2, "I"), (2, "II"), (3, "A"), (4, "1"), (4, "2"), (3, "B"),
        (1, "VANE, J., dissenting."), (2, "I"),
    ]  # fmt: skip


def test_a_part_of_an_opinion_can_stand_above_the_parties() -> None:
    assert titles(f"{centred('Syllabus')}\n{centred('VANE v. LOCK')}\n{BODY}") == [(1, "Syllabus")]


VERSE = "The keeper lifts the gate at dawn\nAnd lets the river through\nAnd lets the river through\n\n"


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(f"{centred('THE LOCK')}\n{VERSE}", id="poem"),
        pytest.param(f"{centred('I')}\n{VERSE}\n{centred('II')}\n{VERSE}", id="numbered-poem"),
        pytest.param("".join(centred(line) for line in VERSE.split("\n")), id="centred-poem"),
        pytest.param(f"{centred('NO VESSEL SHALL PASS AT NIGHT.')}\n", id="quote"),
        pytest.param("          NO VESSEL SHALL PASS\n          THE LOCK AT NIGHT\n\n", id="block-quote"),
        pytest.param(f"{centred('VANE AND LOCK')}{centred('12 QUAY STREET')}{centred('WEIRTON')}\n", id="address"),
        pytest.param(f"{centred('1 Lock Lane')}\n", id="line-of-an-address"),
        pytest.param(f"{centred('FIGURE 1. MAP OF THE WEIR')}\n", id="caption"),
        pytest.param(f"{centred('SUPREME COURT OF THE WEIR')}\n{centred('No. 12')}\n", id="court"),
        pytest.param(f"{centred('VANE v. LOCK')}\n", id="parties"),
        pytest.param("".join(f"{centred(str(page))}\n{BODY}\n" for page in range(1, 6)), id="page-numbers"),
        pytest.param("".join(f"{centred(f'- {page} -')}\n{BODY}\n" for page in range(1, 6)), id="marked-page-numbers"),
        pytest.param(f"{BODY[:30]}\n{centred('I')}\n{BODY[31:]}", id="inside-a-sentence"),
        pytest.param(f"{centred('V. The Rule')}\n", id="out-of-sequence"),
        pytest.param(f"{' ' * 44}ANN VANE\n\n", id="on-the-right"),
        pytest.param(f"{centred('Ann Vane')}\n", id="name"),
        pytest.param(f"{centred('Ann Vane, Keeper')}{centred('Judgment House')}{centred('Weirton')}{BODY}", id="block"),
        pytest.param(f"{centred('The issue is the gate')}\n", id="sentence"),
        pytest.param(f"{centred('The Summary of')}\n{VERSE}", id="title-of-verse"),
    ],
)
def test_other_centred_lines_are_not_headings(block: str) -> None:
    assert titles(f"{BODY}\n{block}{BODY}\n{BODY}") == []
