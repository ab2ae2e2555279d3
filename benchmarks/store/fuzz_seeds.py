"""A small valid file of each format that is read, made in memory."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Mapping, Sequence

_BODY = "A pump moves 12 litres of water a second; the valve holds 3.5 bar, and it was built in 1987. "
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
_TYPES = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TEXT = f"1. Pumps\n\n{_BODY * 3}\n\n2. Valves\n\n- {_BODY}\n- {_BODY}\n\nREFERENCES\n\n[1] A. Lee. 1987.\n"
_MARKDOWN = (
    f"---\ntitle: Pumps\nyear: 1987\ntags:\n- water\n---\n# Pumps\n\n{_BODY}\n\n## Valves\n\n> {_BODY}\n\n* one\n"
    "  * two\n    * three\n\n```\ncode\n```\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n"
    "![a pump](a.png) [link](b) `x` **bold**\n"
)
_RST = (
    f"=====\nPumps\n=====\n\n:author: Ann Lee\n\n{_BODY}\n\nValves\n------\n\n"
    f".. note:: Of |water| and :doc:`pumps`.\n\n   {_BODY}\n\n.. |water| replace:: *water*\n\n.. image:: a.png\n"
    "\n+---+---+\n| a | b |\n+---+---+\n| 1 | 2 |\n+---+---+\n\n1. one\n\n   a. two\n\n.. [1] A note.\n\n::\n\n"
    "    verbatim\n"
)
_HTML = (
    "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>Pumps</title>"
    "<meta name='author' content='Lee'></head><body><nav><ul><li><a href='#'>Home</a></li></ul></nav><main>"
    f"<h1>Pumps</h1><p>{_BODY} &eacute; &#233;<br><img src='a.png' width='120'></p><h2>Valves</h2><table><tr>"
    f"<th>a</th><td colspan='2'>1</td></tr></table><ul><li>one<ul><li>two</li></ul></li></ul><pre>{_BODY}</pre>"
    "</main></body></html>"
)
_JATS = (
    '<?xml version="1.0"?><article><front><article-meta><article-id pub-id-type="doi">10.1/x</article-id>'
    "<title-group><article-title>Pumps</article-title></title-group><pub-date><year>1987</year></pub-date>"
    f"<abstract><p>{_BODY}</p></abstract></article-meta></front><body><sec><label>1</label><title>Valves</title>"
    f"<p>{_BODY}<sup>2</sup> &lt; 3</p><sec><title>Seals</title><p>{_BODY}</p></sec><table-wrap><table><tr>"
    "<td>1</td><td>2</td></tr></table></table-wrap><list><list-item><p>one</p></list-item></list></sec></body>"
    "<back><ref-list><ref>A. Lee</ref></ref-list></back></article>"
)
_TEI = (
    '<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc><titleStmt><title>Pumps</title></titleStmt>'
    f"</fileDesc><profileDesc><abstract><p>{_BODY}</p></abstract></profileDesc></teiHeader><text><body><div>"
    f"<head n='1'>Valves</head><p>{_BODY}</p><list><item>one</item></list></div><div><head n='1.1'>Seals</head>"
    f"<p>{_BODY}</p></div></body><back><listBibl><bibl>A. Lee</bibl></listBibl></back></text></TEI>"
)
_PATENT = (
    '<us-patent-grant lang="EN"><us-bibliographic-data-grant><publication-reference><document-id>'
    "<country>US</country><doc-number>08967123</doc-number><kind>B2</kind><date>20150303</date></document-id>"
    "</publication-reference><invention-title>Pump</invention-title></us-bibliographic-data-grant><abstract>"
    f"<p>{_BODY}</p></abstract>"
    f"<description><heading level='1'>FIELD</heading><p num='0001'>{_BODY}</p></description><claims>"
    f"<claim num='1'><claim-text>1. {_BODY}<claim-text>a seal.</claim-text></claim-text></claim></claims>"
    "</us-patent-grant>"
)
_LATEX = (
    "\\documentclass{article}\n\\newcommand{\\water}[1][2]{H$_#1$O}\\newtheorem{claim}{Claim}\n\\title{Pumps}\n"
    f"\\author{{Ann Lee \\and Ben Roy}}\\begin{{document}}\\maketitle\\begin{{abstract}}{_BODY}\\end{{abstract}}"
    f"\n\\section{{Valves}}{_BODY} \\water{{}} \\cite{{a}} $x^{{2}}+\\frac{{1}}{{2}}$\n\\subsection{{Seals}}\n"
    f"\\begin{{itemize}}\\item {_BODY}\\end{{itemize}}\\begin{{tabular}}{{ll}}1&2\\\\3&4\\end{{tabular}}"
    "\\input{part}\n\\footnote{A note.}% comment\n"
    "\\begin{thebibliography}{9}\\bibitem{a} A. Lee\\end{thebibliography}\\end{document}\n"
)
_JSON = {
    "id": "a",
    "title": "Pumps",
    "sections": [{"heading": "1 Valves", "text": _BODY}, {"heading": "2 Seals", "text": _BODY}],
    "meta": {"year": 1987, "tags": ["a"]},
}
_LINES = "".join(
    json.dumps({"_id": f"{number}", "title": "Pumps", "text": _BODY, "year": 1987}) + "\n" for number in range(4)
)


def seeds() -> dict[str, bytes]:
    """The files, by suffix."""
    return {
        ".txt": _TEXT.encode(),
        ".md": _MARKDOWN.encode(),
        ".rst": _RST.encode(),
        ".html": _HTML.encode(),
        ".xml": _JATS.encode(),
        ".tei": _TEI.encode(),
        ".patent.xml": _PATENT.encode(),
        ".tex": _LATEX.encode(),
        ".pdf": _pdf(),
        ".epub": _epub(),
        ".odt": _odt(),
        ".docx": _docx(),
        ".json": json.dumps(_JSON).encode(),
        ".jsonl": _LINES.encode(),
        ".txt.gz": gzip.compress(_TEXT.encode(), mtime=0),
        ".jsonl.gz": gzip.compress(_LINES.encode(), mtime=0),
    }


def packed(members: Mapping[str, bytes]) -> bytes:
    """A zip file of these members, with the same bytes each time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _pdf() -> bytes:
    def content(page: int) -> bytes:
        lines = [f"{page + 1} Valves and seals", *[_BODY[:80]] * 6, "References", "A. Lee. Pumps. 1987."]
        shown = [
            f"BT /F1 {10 if number else 14} Tf 1 0 0 1 72 {720 - 14 * number} Tm ({line}) Tj ET\n"
            for number, line in enumerate(lines)
        ]
        return "".join([*shown, "q 10 0 0 10 0 0 cm /X1 Do Q\n"]).encode()

    contents = [content(page) for page in range(2)]
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Outlines 9 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>",
        *(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 7 0 R >> /XObject << /X1 8 0 R >> >> >>" % number
            for number in (5, 6)
        ),
        *(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(one), one) for one in contents),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 10 >>\nstream\n0 0 9 9 re\nendstream",
        b"<< /Type /Outlines /First 10 0 R /Last 10 0 R /Count 1 >>",
        b"<< /Title (1 Valves and seals) /Parent 9 0 R /Dest [3 0 R /Fit] >>",
    ]
    return _pdf_file(objects)


def _pdf_file(objects: Sequence[bytes]) -> bytes:
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start, size = out.tell(), len(objects) + 1
    entries = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out.write(b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, entries))
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, start))
    return out.getvalue()


def _epub() -> bytes:
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="b.opf"/>'
        "</rootfiles></container>"
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        "<dc:title>Pumps</dc:title><dc:date>1987</dc:date></metadata><manifest>"
        '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/>'
        "</spine></package>"
    )
    return packed({"META-INF/container.xml": container.encode(), "b.opf": package.encode(), "a.xhtml": _HTML.encode()})


def _odt() -> bytes:
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table")
    )
    content = (
        f"<office:document-content {names}><office:body><office:text><text:h text:outline-level='1'>Valves</text:h>"
        f"<text:p>{_BODY}<text:s text:c='3'/><text:note><text:note-citation>1</text:note-citation><text:note-body>"
        "<text:p>A note.</text:p></text:note-body></text:note></text:p><text:list><text:list-item>"
        "<text:p>one</text:p></text:list-item></text:list><table:table><table:table-row>"
        "<table:table-cell table:number-columns-repeated='2'><text:p>1</text:p></table:table-cell></table:table-row>"
        "</table:table></office:text></office:body></office:document-content>"
    )
    return packed({"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": content.encode()})


def _docx() -> bytes:
    cell = "<w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p></w:tc>"
    body = (
        f"<w:document {_W} {_M}><w:body><w:p><w:pPr><w:pStyle w:val='H'/><w:numPr><w:ilvl w:val='0'/>"
        f"<w:numId w:val='1'/></w:numPr></w:pPr><w:r><w:t>Valves</w:t></w:r></w:p><w:p><w:r><w:t>{_BODY}</w:t></w:r>"
        "<w:r><w:footnoteReference w:id='2'/></w:r><m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r>"
        f"<m:t>2</m:t></m:r></m:den></m:f></m:oMath></w:p><w:tbl><w:tr>{cell}{cell}</w:tr></w:tbl></w:body>"
        "</w:document>"
    )
    parts = {
        "document": body,
        "styles": f"<w:styles {_W}><w:style w:styleId='H'><w:name w:val='heading 1'/><w:pPr><w:outlineLvl w:val='0'/>"
        "</w:pPr></w:style></w:styles>",
        "numbering": f"<w:numbering {_W}><w:abstractNum w:abstractNumId='0'><w:lvl w:ilvl='0'><w:start w:val='1'/>"
        "<w:numFmt w:val='decimal'/><w:lvlText w:val='%1.'/></w:lvl></w:abstractNum><w:num w:numId='1'>"
        "<w:abstractNumId w:val='0'/></w:num></w:numbering>",
        "footnotes": f"<w:footnotes {_W}><w:footnote w:id='2'><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote>"
        "</w:footnotes>",
    }
    main = f"{_TYPES}.document.main+xml"
    overrides = "".join(
        f'<Override PartName="/word/{name}.xml" '
        f'ContentType="{main if name == "document" else f"{_TYPES}.{name}+xml"}"/>'
        for name in parts
    )
    relations = "".join(
        f'<Relationship Id="r{number}" Type="{_RELATIONS}/{name}" Target="{name}.xml"/>'
        for number, name in enumerate(parts)
        if name != "document"
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>{overrides}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_RELATIONS}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{relations}</Relationships>',
        **{f"word/{name}.xml": content for name, content in parts.items()},
    }
    return packed({name: content.encode() for name, content in files.items()})
