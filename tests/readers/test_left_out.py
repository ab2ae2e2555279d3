"""What a reader leaves out is counted in the metadata of the document."""

import json

import pytest

from engine.readers import pdf
from engine.readers.left_out import sentence
from indexer.reading.reader import pack, unpack
from tests.readers.made import document_of
from tests.readers.made_pdf import pdf_of_contents
from tests.readers.test_docx_parts import word_of
from tests.readers.zipped import epub_bytes, members_of, zip_bytes

BODY = "A sentence of the body that is long enough. " * 6
_LINKS = "".join(f'<li><a href="#">{name}</a></li>' for name in ("Home", "News", "About", "Work", "Press", "Help") * 2)
_DRAWING = (
    '<w:drawing><a:blip xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"/></w:drawing>'
    '<w:commentReference w:id="1"/>'
)
_ODT = (
    '<o:document-content xmlns:o="urn:o" xmlns:t="urn:t" xmlns:d="urn:d"><o:body><o:text>'
    f"<t:p>{BODY}<d:frame><d:image/></d:frame><o:annotation><t:p>Why?</t:p></o:annotation></t:p>"
    "</o:text></o:body></o:document-content>"
)
_BACK = "<back><ref-list><ref><mixed-citation>A</mixed-citation></ref><ref>B</ref></ref-list></back>"
_PICTURE = b"BI /W 1 /H 1 /BPC 8 /CS /G ID a EI\n"
_PAGE = b"BT /F1 10 Tf 1 0 0 1 72 %d Tm (Half of a page of words that anybody can read \\001\\003) Tj ET\n"


def _book(spine: str, items: str) -> bytes:
    members = members_of(epub_bytes({"a.xhtml": f"<p>{BODY}</p>"}))
    package = bytes(members["OEBPS/book.opf"]).decode().replace("</manifest>", f"{items}</manifest>")
    references = "".join(f'<itemref idref="{name}"/>' for name in spine.split())
    start, stop = package.index("<spine>"), package.index("</spine>")
    return zip_bytes({**members, "OEBPS/book.opf": f"{package[:start]}<spine>{references}{package[stop:]}"})


@pytest.mark.parametrize(
    ("name", "data", "left_out"),
    [
        ("a.html", f"<body><p>{BODY}<img src='a'><svg><g/></svg></p><iframe></iframe></body>",
         {"figures": 2, "embedded_objects": 1}),
        ("a.html", f"<body><p>{BODY * 4}</p><ul>{_LINKS}</ul></body>", {"link_lists": 1}),
        ("a.html", f"<body><img><main><p>{BODY}</p></main></body>", {}),  # outside of the main part
        ("a.xml", f"<article><body><p>{BODY}</p><fig><graphic/></fig></body>{_BACK}</article>",
         {"figures": 1, "references": 2}),
        ("a.tei", f"<TEI><text><body><p>{BODY}</p><bibl>Read this.</bibl></body><back><listBibl><biblStruct/><bibl/>"
         "</listBibl></back></text></TEI>", {"references": 2}),
        ("a.tex", f"{BODY}\\includegraphics[width=3cm]{{a}}\\begin{{thebibliography}}{{9}}\\bibitem{{a}} A. Lee"
         "\\end{thebibliography}", {"figures": 1, "references": 1}),
        ("a.tex", f"{BODY}\\Cref{{a,gone}} and \\cref{{none}}.\\mylabel{{a}}", {"undefined_labels": 2}),
        ("a.rst", f"Pumps\n=====\n\n{BODY}\n\n.. image:: a.png\n\n.. figure:: b.png\n\n   A pump.\n", {"figures": 2}),
        ("a.md", f"# Pumps\n\n{BODY} ![a pump](a.png) [a link](b)", {"figures": 1}),
        ("a.docx", word_of(f"<w:p><w:r><w:t>{BODY}</w:t>{_DRAWING}</w:r></w:p>"), {"figures": 1, "comments": 1}),
        ("a.odt", zip_bytes({"content.xml": _ODT}), {"figures": 1, "comments": 1}),
        ("a.epub", epub_bytes({"a.xhtml": f"<p>{BODY}<img/></p>", "b.xhtml": f"<p>{BODY}<img/></p>"}), {"figures": 2}),
        ("a.epub", epub_bytes({"nav.xhtml": "<nav xmlns:e='http://www.idpf.org/2007/ops'><a e:type='toc' "
         "href='c.xhtml'>Of</a></nav>", "c.xhtml": "<p>Oak, Elm</p>", "a.xhtml": f"<p>{BODY}</p>"}),
         {"navigation_words": 1, "contents_words": 2}),
        ("a.epub", zip_bytes(members_of(epub_bytes({"a.xhtml": f"<p>{BODY}</p>", "b.xhtml": ""})) | {"OEBPS/b.xhtml":
         b"\xff" * 99}), {"damaged_parts": 1}),
        *(("a.epub", data, counts) for data, counts in (
            (_book("a.xhtml x y", '<item id="x" href="x.jpg" media-type="image/jpeg"/>'),
             {"figures": 1, "damaged_parts": 1}),
            (_book("x", '<item id="x" href="x.xml" media-type="text/x" fallback="a.xhtml"/>'), {}),
            (epub_bytes({"a.xhtml": f"<p>{BODY}</p><p class='pagenum'>[12]</p><div role='doc-pagebreak'>13</div>"}),
             {"running_heads": 2}),
            (zip_bytes({**members_of(epub_bytes({"a.xhtml": f"<p>{BODY}</p>"})), "META-INF/container.xml": "<x"}), {}),
        )),
        ("a.txt", BODY, {}),
        ("a.pdf", pdf_of_contents([b"".join(_PAGE % y for y in range(700, 400, -12))]),
         {"unreadable_characters": 50}),
        ("a.pdf", pdf_of_contents([b"".join(_PAGE % y for y in range(700, 600, -12)) + _PICTURE * 3] * 2),
         {"figures": 6}),
    ],
)  # fmt: skip
def test_a_reader_counts_what_it_leaves_out(name: str, data: bytes | str, left_out: dict[str, int]) -> None:
    document = document_of(name, data)
    assert document.left_out == left_out
    assert {field for field in document.metadata if field.startswith("left_out_")} == {
        f"left_out_{kind}" for kind in left_out
    }
    assert unpack(pack([document])) == [document]


def test_counts_are_written_as_a_sentence() -> None:
    assert sentence({"figures": 2, "link_lists": 1, "unreadable_characters": 12_345}) == (
        "2 figures, 1 link list, 12,345 unreadable characters"
    )
    assert sentence({}) == ""


def test_characters_of_a_page_that_no_line_has_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pdf_of_contents([b"".join(_PAGE.replace(b"\\001\\003", b"") % y for y in range(700, 400, -12))])
    assert document_of("a.pdf", data).left_out == {}
    monkeypatch.setattr(pdf.Flow, "text", "Half of a page that anybody can read")
    assert document_of("a.pdf", data).left_out["unexplained_words"] > 100


_ALTO = (
    "<alto><Layout><Page><TextBlock><TextLine><String CONTENT='Old'/><SP/><String CONTENT='wa' SUBS_TYPE='HypPart1' "
    "SUBS_CONTENT='water'/><HYP CONTENT='-'/></TextLine><TextLine><String CONTENT='ter' SUBS_TYPE='HypPart2' "
    "SUBS_CONTENT='water'/><String CONTENT='jud'/><HYP CONTENT='-'/></TextLine><TextLine><String CONTENT='ges.'/>"
    "</TextLine></TextBlock></Page><Page><TextBlock><TextLine><String CONTENT='Two'/><String CONTENT='mu' SUBS_TYPE="
    "'HypPart1'/><HYP/></TextLine><TextLine><String CONTENT='ds.' SUBS_TYPE='HypPart2'/></TextLine></TextBlock>"
    "<BottomMargin><TextBlock><TextLine><String CONTENT='2'/></TextLine></TextBlock></BottomMargin></Page></Layout>"
    "</alto>"
)
_REGIONS = (
    "<PcGts><Page><ReadingOrder><RegionRefIndexed regionRef='b'/><RegionRefIndexed regionRef='a'/></ReadingOrder>"
    "<TextRegion type='header' id='c'><TextEquiv><Unicode>Head</Unicode></TextEquiv></TextRegion><TextRegion id='a'>"
    "<TextRegion><TextEquiv index='1'><Unicode>Tw0.</Unicode></TextEquiv><TextEquiv index='0'><Unicode>Two.</Unicode>"
    "</TextEquiv></TextRegion><TextEquiv><Unicode>Two.</Unicode></TextEquiv></TextRegion><TextRegion id='b'>{}"
    "</TextRegion></Page></PcGts>"
).format("".join(f"<TextLine><TextEquiv><Unicode>{line}</Unicode></TextEquiv></TextLine>" for line in (
    "Old water jud-", "ges.")))  # fmt: skip
_HOCR = "".join(
    f"<div class='ocr_page'><p class='ocr_par'>{lines}</p></div>"
    for lines in ("<span class='ocr_line'><i>Old wa\x02ter jud-</i></span>\n<span class='ocr_line'>ges.</span>", "Two.")
)
_MARKER = {"children": [{"block_type": "Page", "children": [
    {"block_type": "PageHeader", "html": "<p>Head</p>"}, {"block_type": "SectionHeader", "html": "<h1>Silt</h1>"},
    {"block_type": "Text", "html": "<p>Old <math>\\frac{a}{b}</math></p>"}, {"block_type": "Figure"}]}]}  # fmt: skip
_DOTS = [{"category": kind, "bbox": [1], "text": text} for kind, text in (
    ("Text", "Head"), ("Page-header", "1"), ("Title", "# Silt"), ("Section-header", "## Aim"), ("Picture", None),
    ("Text", "Old"))]  # fmt: skip
_ELEMENTS = [{"type": kind, "element_id": kind, "text": text, "metadata": {"category_depth": "1", "text_as_html": rows}}
             for kind, text, rows in (
    ("Title", "Silt", "<h1>Silt</h1>"), ("Header", "Head", ""), ("NarrativeText", "Old", ""), ("Table", "1 2",
     "<table><tr><td>1</td><td>2</td></tr></table>"))]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "data", "text", "n_pages", "left_out"),
    [
        ("a.xml", _ALTO, "Old water judges. Two muds.", 2, {"running_heads": 1}),
        ("a.xml", _REGIONS, "Old water judges. Two.", 1, {"running_heads": 1}),
        ("a.html", _HOCR, "Old water judges. Two.", 2, {}),
        ("a.json", json.dumps(_MARKER), "Silt Old a/b", 0, {"running_heads": 1, "figures": 1}),
        ("a.json", json.dumps(_ELEMENTS), "Silt Old 1 | 2", 0, {"running_heads": 1}),
        ("a.json", json.dumps(_DOTS), "Silt Head Aim Old", 0, {"running_heads": 1, "figures": 1}),
        ("a.jsonl", json.dumps({"id": "a", "text": "One.\nTwo.", "attributes": {"pdf_page_numbers": [[0, 5, 1],
         [5, 9, 2]]}}),
         "One. Two.", 2, {}),
    ],
    ids=["alto", "page", "hocr", "marker", "unstructured", "dots", "olmocr"],
)  # fmt: skip
def test_what_programs_recognise_on_pages_is_one_document(
    name: str, data: str, text: str, n_pages: int, left_out: dict[str, int]
) -> None:
    document = document_of(name, data)
    assert " ".join(document.text.split()) == text
    assert [document.text[place:].split()[0] for place in document.pages] == ["Old", "Two."][:n_pages] or n_pages == 2
    assert (len(document.pages), document.left_out) == (n_pages, left_out)


_STAMPS = "Case: 21-1234     Document: 45     Page: {}     Date Filed: 07/09/2021"


@pytest.mark.parametrize(
    ("name", "data", "text", "left_out"),
    [
        ("a.txt", f"The lease\n\n{_STAMPS.format(2)}\n\nis void.\n\f{_STAMPS.format(3)}\n\nIt leaks.",
         "The lease is void. It leaks.", {"running_heads": 2}),
        ("a.txt", "The lease\n\nUSCA4 Appeal: 22-1096      Doc: 33      Filed: 09/12/2022      Pg: 1 of 15\n\nis void.",
         "The lease is void.", {"running_heads": 1}),
        ("a.txt", "The lease\n\nCase: 19-1234 was the Document that we Filed on Page 7",
         "The lease Case: 19-1234 was the Document that we Filed on Page 7", {}),
        ("a.xml", "<rfc><middle><section title='Flow'><t>See <eref target='u:x'/>:<list style='numbers'><t>one</t>"
         "</list><list style='format (%c)'><t>two</t></list></t>"
         "<texttable><ttcol>Site</ttcol><ttcol>cm</ttcol><c>Goole</c>"
         "<c>3</c></texttable></section></middle></rfc>", "Flow See [u:x]: 1. one (a) two Site | cm Goole | 3", {}),
        ("a.xml", "<bill><main><section><content>A toll<ref class='footnoteRef'>1</ref><note type='footnote'><num>1"
         "</num> So in original.</note> is due.</content></section></main></bill>",
         "A toll^1 is due. 1 So in original.", {}),
        ("a.xml", "<casebody><opinion><p>The lease<footnotemark>1</footnotemark> is <page-number>*12</page-number>void."
         "</p><footnote label='1'><p>A note.</p></footnote></opinion></casebody>", "The lease^1 is void. 1 A note.",
         {"running_heads": 1}),
    ],
    ids=["stamps", "stamp of an appeal", "prose like a stamp", "rfc", "uslm", "cap"],
)  # fmt: skip
def test_furniture_notes_and_lists_of_other_formats(name: str, data: str, text: str, left_out: dict[str, int]) -> None:
    document = document_of(name, data)
    assert (" ".join(document.text.split()), document.left_out) == (text, left_out)
