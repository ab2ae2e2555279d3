"""Files as programs, courts, legislatures and libraries write them: the title, and the whole text on one line."""

from __future__ import annotations

import io

import pytest
from reportlab.pdfgen.canvas import Canvas

from engine.text.cleaning import joined_words
from tests.readers.made import Print, document_of, pdf_bytes
from tests.readers.test_docx_parts import TYPES, word_of
from tests.readers.test_kinds import html, latex, word_run
from tests.readers.zipped import members_of, zip_bytes

_SIDE_NOTES = (
    "<p>Oak<label class='sidenote-number'></label><span class='sidenote'>First note.</span> and elm<span "
    "class='marginnote'>Second note.</span>.</p>"
)
_SPHINX_NOTE = (
    "<p>Oak.</p><aside class='footnote brackets' role='doc-footnote'><span class='label'>[<a role='doc-backlink' "
    "href='#i'>1</a>]</span><p>A tree.</p></aside>"
)
_COMMENTED = (
    "<html><body><p class='c1 title'><span>Weirs</span></p><h1>Aim</h1><p>Oak<sup><a href='#cmnt1' id='cmnt_ref1'>[a]"
    "</a></sup> leaks.</p><div><p><a href='#cmnt_ref1' id='cmnt1'>[a]</a><span>Does it?</span></p></div></body></html>"
)
_WIKI = (
    "<p>Oak<sup class='noprint Inline-Template'>[citation needed]</sup> leaks.</p><div class='printfooter'>Retrieved "
    "from it</div><div id='catlinks' class='catlinks'>Categories: <a>Trees</a></div>"
)
_JOURNAL = (
    "<html><head><title>L_2020123EN.01000101.xml</title></head><body><p class='oj-hd-ti'>Official Journal</p>"
    "<p class='oj-doc-ti'>REGULATION 9</p><p class='oj-doc-ti'>on eels</p><p>Eels are rare.</p></body></html>"
)
_BOOK = "<h1>OAK</h1><p>It fell.</p>"
_LICENSED = (
    "<html><head><title>Oak, by Vane - A Project Gutenberg eBook</title><meta name='dc.title' content='Oak'></head>"
    f"<body><section class='pg-boilerplate pgheader'>This ebook is for anyone.</section>{_BOOK}</body></html>"
)
_LICENSED_TEXT = (
    "The Project Gutenberg eBook of Oak\n\nThis ebook is for anyone.\n\nTitle: Oak\n\nAuthor: Ann Vane\n\n"
    "*** START OF THE PROJECT GUTENBERG EBOOK OAK ***\n\nIt fell.\n\n*** END OF THE PROJECT GUTENBERG EBOOK OAK ***\n\n"
    "THE FULL LICENSE\n"
)
_VTT = (
    "WEBVTT - On locks\nKind: captions\n\nNOTE\nby the lab\n\nSTYLE\n::cue { color: white }\n\n1\n00:01.000 --> 00:04.0"
    "00 align:start\n<v Ann Vane>The old lock\n\n00:04.000 --> 00:08.500\nThe old lock\n&amp; its <i>weir</i>.\n\n"
    "01:00:08.500 --> 01:00:12.000\n<v Rin Okabe>Thank you.</v>\n"
)
_SRT = "1\n00:00:01,000 --> 00:00:04,000\nThe old lock\n\n2\n00:00:04,000 --> 00:00:08,500\n{\\an8}leaks.\n- It does.\n"
_TREES = "oak elm ash fir yew".split()
_SHORES = [f"the {tree} stood at the gate of the weir\nand shade fell on the {tree} that\n" * 4 for tree in _TREES]
_HEADED = [f"      Report of the Weir Board\n           Volume 12\n\n{shore}" for shore in _SHORES]
_RUN_ON = " ".join("".join(_SHORES).split())
_OF_FRAME = '<w:p><w:pPr><w:framePr w:wrap="around"/></w:pPr>{}</w:p><w:p>{}</w:p>'
_OF_BOX = "<w:p><w:r><w:pict><w:txbxContent><w:p>{}</w:p></w:txbxContent></w:pict></w:r>{}</w:p>"
_ROWS = (
    f"<w:tbl><w:tr><w:trPr><w:hidden/></w:trPr><w:tc><w:p>{word_run('hid')}</w:p></w:tc></w:tr><w:tr><w:tc><w:p>"
    f"{word_run('Oak')}</w:p></w:tc></w:tr></w:tbl>"
)
_STYLED = "<w:style w:styleId='Own'><w:name w:val='Own'/><w:basedOn w:val='Title'/></w:style>"


def _with_chunk(chunk: bytes) -> bytes:
    """A Word file with an imported part, whose name has no suffix of its format."""
    body = f'<w:p>{word_run("Oak")}</w:p><w:altChunk xmlns:r="{TYPES.removesuffix("/")}" r:id="chunk"/>'
    files = members_of(word_of(body))
    rels = "word/_rels/document.xml.rels"
    relation = f'<Relationship Id="chunk" Type="{TYPES}/aFChunk" Target="chunk.dat"/></Relationships>'
    files[rels] = str(files[rels], "utf-8").replace("</Relationships>", relation)  # type: ignore[arg-type]
    return zip_bytes(files | {"word/chunk.dat": chunk})


_BILL = "SEC. 1. NAME.\n\n<DELETED>The Old\nAct.</DELETED>\n\nThe Eel Act.\n"

_SECTIONS = [
    "Meaning of/wharf.",
    "Duty to keep/a weir in/repair.",
    "Tolls.",
    "1998 c. 3./s. 4 of/it.",
    "Pilots.",
    "Eels.",
]


def _act(page: int, *, is_right: bool) -> list[Print]:
    """A page of an act, whose side notes stand on the lines of its sections."""
    lines: list[Print] = []
    for section, note in enumerate(_SECTIONS[3 * page :][:3]):
        for row in range(4):
            y, own = 700 - 60 * section - 13 * row, note.split("/")[row : row + 1]
            first = f"{3 * page + section + 1}. It holds of a wharf that the keeper and" if row == 0 else ""
            text: Print = (
                first or f"row {row} of the owners of it who hold the lease of",
                72 if is_right else 180,
                y,
                11,
                False,
            )
            beside: list[Print] = [(one, 330 if is_right else 72, y, 8, False) for one in own]
            lines += [text, *beside] if is_right or section == 1 else [*beside, text]
    return lines


@pytest.mark.parametrize(("flags", "is_shown"), [("", True), ("password", False)])
def test_the_value_of_a_password_is_not_read(flags: str, is_shown: bool) -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(72, 780, "Name of the vessel:")
    canvas.acroForm.textfield(name="v", value="kestrel", x=180, y=770, width=99, height=18, fieldFlags=flags)
    canvas.save()
    assert ("kestrel" in document_of("a.pdf", file.getvalue()).text) == is_shown


def test_numbers_of_paragraphs_are_no_numbers_of_lines() -> None:
    lines: list[Print] = []
    for number in range(1, 9):
        for row in range(4):
            y = 760 - 80 * number - 13 * row + 60
            lines += [(str(number), 60, y, 11, False)] if row == 0 else []
            lines.append((f"words of row {row} of the judgment that the court has given in May", 100, y, 11, False))
    document = document_of("a.pdf", pdf_bytes([lines]))
    assert "line_numbers" not in document.left_out
    assert [f"{number} words of row 0" in document.text for number in range(1, 9)] == [True] * 8


@pytest.mark.parametrize("is_right", [True, False])
def test_side_notes_of_an_act_stand_before_their_sections(is_right: bool) -> None:
    pages = [_act(page, is_right=is_right != (page == 1)) for page in (0, 1)]
    text = " ".join(document_of("a.pdf", pdf_bytes(pages)).text.split())
    section = "{}. It holds of a wharf that the keeper and row 1 of the owners of it who hold the lease of row 2 of the"
    for place, note in enumerate(_SECTIONS, 1):
        assert f"{note.replace('/', ' ')} {section.format(place)}" in text


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a long-\nterm lease", "a long-term lease"),
        ("a state-\nowned wharf", "a state-owned wharf"),
        ("a rule-\nlearning net", "a rule-learning net"),
        ("the guide-\nlines of it", "the guidelines of it"),
        ("the multi-\nple locks", "the multiple locks"),
        ("the over-\nseer of it", "the overseer of it"),
        ("der Wasser-\nstand und the", "der Wasserstand und the"),
    ],
)
def test_parts_that_are_common_words_keep_their_hyphen(line: str, shown: str) -> None:
    assert " ".join(joined_words(f"of the wharf\n{line}", was_set=True).split()) == f"of the wharf {shown}"


@pytest.mark.parametrize(
    ("name", "data", "title", "text", "left_out"),
    [
        ("a.html", html(_SIDE_NOTES), "T", "Oak and elm. First note. Second note.", {}),
        ("a.html", html(_SPHINX_NOTE), "T", "Oak. [1] A tree.", {}),
        ("a.html", _COMMENTED, "Weirs", "Weirs Aim Oak leaks.", {"comment_words": 3}),
        *(("a.html", html(f"<p>{'Oak is old. ' * 9}</p>{note}"), "T", f"{'Oak is old. ' * 9}Note.", {}) for note in (
            "<aside><p id='fn:1'>Note.</p></aside>", "<footer><p id='fn1'>Note.</p></footer>",
            "<aside aria-label='Footnotes'>Note.</aside>", "<aside class='marginalia'>Note.</aside>",
            "<aside class='admonition tip'>Note.</aside>")),
        ("a.html", html(f"<main><p>{'Oak is old. ' * 9}</p></main><footer><p id='fn1'>Note.</p></footer>"), "T",
         f"{'Oak is old. ' * 9}Note.", {}),
        ("a.html", html(_WIKI), "T", "Oak leaks.", {"navigation_words": 7}),
        ("a.html", _JOURNAL, "REGULATION 9 on eels", "REGULATION 9 on eels Eels are rare.", {"running_heads": 1}),
        ("a.html", html("<h2>Gates<a href='#g'>\u200b</a></h2><p>Oak.</p>"), "T", "Gates Oak.", {}),
        ("a.html", html("<div id='breadcrumbs'><ol><li><a>Weir</a></li></ol></div><p>Oak.</p>"), "T", "Oak.",
         {"link_lists": 1}),
        ("a.html", html("<p>A <i class='amendDeletedText'>ten</i>twenty pence toll.</p>"), "T",
         "A twenty pence toll.", {"deleted_words": 1}),
        ("a.html", html(f"<pre>{_BILL.replace('<', '&lt;').replace('>', '&gt;')}</pre>"), "T",
         "SEC. 1. NAME. The Eel Act.", {"deleted_words": 3}),
        ("a.txt", _BILL, "a", "SEC. 1. NAME. The Eel Act.", {"deleted_words": 3}),
        ("a.html", _LICENSED, "Oak", "OAK It fell.", {"page_frame_words": 5}),
        ("a.txt", _LICENSED_TEXT, "Oak", "It fell.", {"page_frame_words": 37}),
        ("a.vtt", _VTT, "On locks", "Ann Vane: The old lock & its weir. Rin Okabe: Thank you.",
         {"front_matter_words": 2, "comment_words": 3, "raw_words": 5, "cue_times": 3}),
        ("a.txt", _SRT, "a", "The old lock leaks. - It does.", {"cue_times": 2}),
        ("a.txt", "\f".join(_HEADED), "a", _RUN_ON, {"running_heads": 10}),
        ("a.txt", "".join(f"{page}\n            {n}\n\n" for n, page in enumerate(_HEADED, 1)),
         "Report of the Weir Board Volume 12", f"Report of the Weir Board Volume 12 {_RUN_ON}", {"running_heads": 28}),
        *(("a.docx", word_of(place.format(word_run("H"), word_run("arbours"))), "a", "Harbours", {})
          for place in (_OF_FRAME, _OF_BOX)),
        ("a.docx", word_of(_ROWS), "a", "Oak", {"hidden_words": 1}),
        ("a.docx", word_of(f"<w:p><w:pPr><w:pStyle w:val='Own'/></w:pPr>{word_run('Weirs')}</w:p>", _STYLED), "Weirs",
         "Weirs", {}),
        ("a.docx", word_of(f"<w:p>{word_run('Oak &#xD83D;&#xDE00;&#1;elm')}</w:p>"), "a", "Oak \U0001f600 elm", {}),
        *(("a.docx", _with_chunk(chunk), "a", "Oak Elm", {}) for chunk in (
            b"<html><body><p>Elm</p></body></html>", word_of(f"<w:p>{word_run('Elm')}</w:p>"),
            b"MIME-Version: 1.0\nContent-Type: text/html\n\n<p>Elm</p>")),
        ("a.md", "\n---\ntitle: Weirs\n---\n\nOak.", "Weirs", "Oak.", {}),
        ("a.md", "---\ntitle: Weirs\nsummary: {{ var }}\n---\n\nOak.", "Weirs", "Oak.", {}),
        ("a.mdx", "Oak {/* a remark */}elm.", "a", "Oak elm.", {"comment_words": 4}),
        ("a.md", "Oak %%a remark\nof two lines%% elm.", "a", "Oak elm.", {"comment_words": 5}),
        ("a.md", "A [ten]{.deletion author=V} toll.[why?]{.comment-start id=0}[]{.comment-end id=0}", "a", "A toll.",
         {"deleted_words": 2, "comment_words": 4}),
        ("a.tex", latex(r"\lettrine{H}{arbours} are old."), "a", "Harbours are old.", {}),
        ("a.html", html(r"<p>Flow is $Q = \frac{a}{2}$, not $5 or x_1 $6.</p>"), "T",
         "Flow is Q = a/2, not $5 or x_1 $6.", {}),
        ("a.tex", latex(r"A \nomenclature{Q}{flow} and \oak{x}{elm}."), "a", "A Q flow and x elm.", {}),
    ],
)  # fmt: skip
def test_the_title_and_the_text(name: str, data: str | bytes, title: str, text: str, left_out: dict[str, int]) -> None:
    document = document_of(name, data)
    assert (document.title, " ".join(document.text.split())) == (title, text)
    assert document.left_out == left_out
