"""Files as programs, courts, legislatures and libraries write them: the title, and the whole text on one line."""

from __future__ import annotations

import pytest

from tests.readers.made import document_of
from tests.readers.test_kinds import html

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
_BILL = "SEC. 1. NAME.\n\n<DELETED>The Old\nAct.</DELETED>\n\nThe Eel Act.\n"


@pytest.mark.parametrize(
    ("name", "data", "title", "text", "left_out"),
    [
        ("a.html", html(_SIDE_NOTES), "T", "Oak and elm. First note. Second note.", {}),
        ("a.html", html(_SPHINX_NOTE), "T", "Oak. [1] A tree.", {}),
        ("a.html", _COMMENTED, "Weirs", "Weirs Aim Oak leaks.", {"comment_words": 3}),
        ("a.html", html(_WIKI), "T", "Oak leaks.", {"navigation_words": 7}),
        ("a.html", _JOURNAL, "REGULATION 9 on eels", "Official Journal REGULATION 9 on eels Eels are rare.", {}),
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
    ],
)  # fmt: skip
def test_the_title_and_the_text(name: str, data: str | bytes, title: str, text: str, left_out: dict[str, int]) -> None:
    document = document_of(name, data)
    assert (document.title, " ".join(document.text.split())) == (title, text)
    assert document.left_out == left_out
