"""OpenDocument texts: headings, lists, notes, metadata, and files that are refused."""

from __future__ import annotations

import pytest

from engine.errors import DocumentError
from engine.readers.odt import read
from engine.text.document import Document
from tests.readers.zipped import zip_bytes

BODY = "A sentence of the body that is long enough. " * 6
_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table", "meta", "drawing")
)
_META = f"""<office:document-meta {_NAMES} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta>
<dc:title>On Pumps</dc:title><meta:initial-creator>Ann Lee</meta:initial-creator><dc:creator>Ben Roy</dc:creator>
<meta:creation-date>2015-03-03T10:00:00</meta:creation-date><meta:keyword>pump</meta:keyword></office:meta>
</office:document-meta>"""


def odt(body: str, **more: str) -> Document:
    content = f"<office:document-content {_NAMES}><office:body><office:text>{body}</office:text></office:body>"
    return read(zip_bytes({"content.xml": f"{content}</office:document-content>", **more}), "a", "a.odt")


def test_headings_make_sections() -> None:
    document = odt(
        f'<text:h text:outline-level="1">One</text:h><text:p>{BODY}</text:p>'
        f'<text:h text:outline-level="2">Two</text:h><text:p>{BODY}</text:p>'
    )
    assert [section.path for section in document.sections] == [("One",), ("One", "Two")]


def test_spaces_tabs_and_line_breaks_are_kept() -> None:
    assert odt('<text:p>a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d</text:p>').text == "a b c\nd"


def test_lists_and_tables_have_a_line_each() -> None:
    item = "<text:list-item><text:p>{}</text:p></text:list-item>"
    row = "<table:table-row><table:table-cell><text:p>{}</text:p></table:table-cell></table:table-row>"
    cells = row.format("1</text:p></table:table-cell><table:table-cell><text:p>2")
    body = f"<text:list>{item.format('x')}{item.format('y')}</text:list><table:table>{cells}{cells}</table:table>"
    assert odt(body).text == "- x\n- y\n1 | 2\n1 | 2"


def test_notes_follow_their_paragraph() -> None:
    note = (
        "<text:note><text:note-citation>{0}</text:note-citation><text:note-body><text:p>Note {0}.</text:p>"
        "</text:note-body></text:note>"
    )
    body = f"<text:p>One{note.format(1)} and two{note.format(2)} are here.</text:p><text:p>After.</text:p>"
    assert odt(body).text == "One[1] and two[2] are here.\n\n[1] Note 1.\n\n[2] Note 2.\n\nAfter."


def test_changes_comments_and_contents_are_left_out() -> None:
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        "<text:table-of-content><text:index-body><text:p>One 1</text:p></text:index-body></text:table-of-content>"
        "<text:p>kept<office:annotation><text:p>comment</text:p></office:annotation></text:p>"
        '<text:section text:display="none"><text:p>hidden</text:p></text:section>'
    )
    assert odt(body).text == "kept"


def test_metadata_is_that_of_the_properties() -> None:
    document = odt("<text:p>x</text:p>", **{"meta.xml": _META})
    assert document.title == "On Pumps"
    assert document.metadata == {"authors": ["Ann Lee"], "date": "2015-03-03", "year": 2015, "keywords": ["pump"]}


def test_the_paragraph_of_style_title_is_the_title() -> None:
    assert odt('<text:p text:style-name="Title">Pumps</text:p><text:p>x</text:p>').title == "Pumps"


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"a.txt": "x"}, "has no content.xml"),
        ({"content.xml": "<x"}, "not well-formed"),
        ({"content.xml": "<document-content/>"}, "not an OpenDocument text"),
        ({"content.xml": "\0", "META-INF/manifest.xml": "<m><encryption-data/></m>"}, "encrypted"),
    ],
)
def test_files_that_are_no_text_document_are_refused(members: dict[str, str], reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(zip_bytes(members), "a", "a.odt")


def test_entities_do_not_grow() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "haha"><!ENTITY b "&a;&a;&a;&a;">]>'
    content = f"{bomb}<o:d {_NAMES} xmlns:o='o'><office:body><office:text><text:p>x &b;</text:p></office:text>"
    data = zip_bytes({"content.xml": f"{content}</office:body></o:d>"})
    assert read(data, "a", "a.odt").text == "x &b;"
