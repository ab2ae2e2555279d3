"""What DOCX, ODT, EPUB, HTML and XML have in common: sections, fields, files that are refused, and limits."""

import time
from collections.abc import Mapping

import pytest

from engine.readers import Unreadable, read_bytes
from tests.readers.made import document_of, documents_of, docx_bytes
from tests.readers.test_docx_parts import M, W, word_of
from tests.readers.zipped import epub_bytes, members_of, zip_bytes

BODY = "A sentence of the body that is long enough. " * 6
PROSE = BODY.strip()
PAGES = {
    "b.xhtml": f"<h1>Second</h1><p>{BODY}</p>",
    "nav.xhtml": "<h1>Contents</h1>",
    "a.xhtml": f"<h1>First</h1><p>{BODY}</p>",
}
_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table", "meta", "drawing")
)
_META = f"""<office:document-meta {_NAMES} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta>
<dc:title>On Pumps</dc:title><meta:initial-creator>Ann Lee</meta:initial-creator><dc:creator>Ben Roy</dc:creator>
<meta:creation-date>2015-03-03T10:00:00</meta:creation-date><meta:keyword>pump</meta:keyword></office:meta>
</office:document-meta>"""
_ENTITIES = '<!DOCTYPE x [<!ENTITY a "haha"><!ENTITY b "&a;&a;&a;&a;">]>'
_WORD = docx_bytes([("Normal", BODY)])
_BROKEN = zip_bytes(members_of(_WORD) | {"word/document.xml": f"<w:document {W} {M}><w:body>"})


def page(body: str, head: str = "<title>The page</title>") -> bytes:
    return f"<!DOCTYPE html><html lang='en'><head>{head}</head><body>{body}</body></html>".encode()


def odt(body: str, before: str = "", **more: str) -> bytes:
    content = f"{before}<office:document-content {_NAMES}><office:body><office:text>{body}</office:text></office:body>"
    return zip_bytes({"content.xml": f"{content}</office:document-content>", **more})


def encrypted(*names: str) -> bytes:
    links = "".join(f"<CipherReference URI='OEBPS/{name}'/>" for name in names)
    return epub_bytes(PAGES, **{"META-INF/encryption.xml": f"<encryption>{links}</encryption>"})


def damaged(data: bytes, member: bytes) -> bytes:
    """A zip file with other bytes in the middle of a member."""
    start = data.find(member) + len(member) + 45
    return data[:start] + b"\xff" * 20 + data[start + 20 :]


def shifted(data: bytes) -> bytes:
    """A zip file whose table of members points before its start."""
    return data[:-6] + (int.from_bytes(data[-6:-2], "little") + 20).to_bytes(4, "little") + data[-2:]


def links(names: list[str], attributes: str = "") -> str:
    return f"<ul {attributes}>" + "".join(f"<li><a href='/{name}'>{name}</a></li>" for name in names) + "</ul>"


LANGUAGES = ["Deutsch", "Français", "Español", "Italiano", "日本語", "Polski", "Русский", "中文", "Svenska"]
_WITH_TEXT = "<ul>" + "".join(f"<li><a href='#'>{name}</a> is a language.</li>" for name in LANGUAGES) + "</ul>"
_TITLED = links([f"{name}: a history of the language and of those who wrote it" for name in LANGUAGES])


@pytest.mark.parametrize(
    ("name", "data", "title", "paths"),
    [
        ("a.docx", docx_bytes([("Title", "My Paper"), ("Heading 1", "One"), ("Normal", BODY), ("Heading 2", "Two"),
                               ("Normal", BODY)]), "My Paper", [("One",), ("One", "Two")]),
        ("a.odt", odt(f'<text:h text:outline-level="1">One</text:h><text:p>{BODY}</text:p><text:h text:outline-level='
                      f'"2">Two</text:h><text:p>{BODY}</text:p>'), "a", [("One",), ("One", "Two")]),
        ("a.html", page(f"<h1>One</h1><p>{BODY}</p><div><h2>Two <a href='#x'>¶</a></h2>{BODY}</div>"), "The page",
         [("One",), ("One", "Two")]),
        ("a.epub", epub_bytes(PAGES, ["nav.xhtml", "a.xhtml", "b.xhtml"]), "On Pumps", [("First",), ("Second",)]),
        *((name, odt('<text:p text:style-name="Title">Old</text:p><text:p text:style-name="Title">pumps</text:p>'
                     '<text:p>x</text:p><text:p text:style-name="Title">y</text:p>'), "Old pumps", [("",)])
          for name in ("a.odt", "a.ott")),
        ("a.docx", docx_bytes([("Normal", "x")], "Declared"), "Declared", [("",)]),
    ],
)  # fmt: skip
def test_headings_make_sections(name: str, data: bytes, title: str, paths: list[tuple[str, ...]]) -> None:
    document = document_of(name, data)
    assert (document.title, [section.path or ("",) for section in document.sections]) == (title, paths)


_ITEM = "<text:list-item><text:p>{}</text:p></text:list-item>"
_ROW = (
    "<table:table-row><table:table-cell><text:p>1</text:p></table:table-cell><table:table-cell><text:p>2</text:p>"
    "</table:table-cell></table:table-row>"
)
_NOTE = (
    "<text:note><text:note-citation>{0}</text:note-citation><text:note-body><text:p>Note {0}.</text:p>"
    "</text:note-body></text:note>"
)
_CELLS = "".join(f"<w:tc><w:p><w:r><w:t>c{place}</w:t></w:r></w:p></w:tc>" for place in range(2))
_LISTED = '<w:p><w:pPr><w:pStyle w:val="ListBullet"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.docx", word_of(f"<w:p><w:r><w:t>before</w:t></w:r></w:p>{_LISTED.format('one')}{_LISTED.format('two')}"
                           f"<w:tbl><w:tr>{_CELLS}</w:tr></w:tbl><w:p><w:r><w:t>after</w:t><w:tab/><w:t>tab</w:t></w:r>"
                           "</w:p>"), "before\n\n- one\n- two\n\nc0 | c1\n\nafter\ttab"),
        ("a.odt", odt('<text:p>a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d</text:p>'), "a b c\nd"),
        ("a.odt", odt(f"<text:list>{_ITEM.format('x')}{_ITEM.format('y')}</text:list><table:table>{_ROW}{_ROW}"
                      "</table:table>"), "- x\n- y\n1 | 2\n1 | 2"),
        ("a.odt", odt(f"<text:p>One{_NOTE.format(1)} and two{_NOTE.format(2)} are here.</text:p><text:p>After."
                      "</text:p>"),
         "One[1] and two[2] are here.\n\n[1] Note 1.\n\n[2] Note 2.\n\nAfter."),
        ("a.odt", odt("<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:table-of-content>"
                      "<text:index-body><text:p>One 1</text:p></text:index-body></text:table-of-content><text:p>kept"
                      "<office:annotation><text:p>comment</text:p></office:annotation></text:p><text:section "
                      'text:display="none"><text:p>hidden</text:p></text:section>'), "kept"),
        ("a.odt", odt("<text:p>x &b;</text:p>", _ENTITIES), "x &b;"),
        ("a.epub", epub_bytes(PAGES, ["nav.xhtml", "a.xhtml", "b.xhtml"]),
         f"First\n\n{PROSE}\n\nSecond\n\n{PROSE}"),
        ("a.epub", epub_bytes({"a.xhtml": "<p>once</p>"}, ["a.xhtml"] * 999), "once"),
        ("a.epub", encrypted("font.otf"), f"Second\n\n{PROSE}\n\nFirst\n\n{PROSE}"),
        ("a.html", page("<p>a <b>b</b><i>c</i>\n d<br>e</p><ul><li>x<li><p>y</p></ul><pre>  k\n    l\n</pre>z"),
         "a bc d\ne\n- x\n- y\n\n  k\n    l\n\nz"),
        ("a.html", page("<table><tr><th>A</th><th>B</th></tr><tr><td><p>1</p></td><td>2</td></tr></table>"),
         "A | B\n1 | 2"),
        ("a.html", page("<table><tr><td><h1>Head</h1><p>one</p><p>two</p></td></tr></table>"), "Head\n\none\n\ntwo"),
        ("a.html", page("<nav>menu</nav><header>top</header><script>x()</script><style>y</style><aside>ad</aside>"
                        "<p hidden>h</p><p style='display: none'>n</p><template>t</template><noscript>s</noscript>"
                        "<p>kept</p><footer>foot</footer>"), "kept"),
        ("a.html", page(f"<div>links</div><main><h1>M</h1>{BODY}</main>"), f"M\n\n{PROSE}"),
        ("a.html", "<head><meta charset='iso-8859-2'></head><body>Łódź</body>".encode("iso8859-2"), "Łódź"),
        ("a.xhtml", b'<?xml version="1.0" encoding="utf-8"?><html><body><p>x</p></body></html>', "x"),
        ("a.html", b"<div>" * 500 + b"deep" + b"</div>" * 500, "deep"),
        *(("a.html", page(f"<p>Before.</p><div>{menu} Between.</div><p>{BODY}</p>"),
           f"Before.\n\nBetween.\n\n{PROSE}") for menu in (
            links(LANGUAGES), links(["Home", "News", "About"], "class='site-menu'"))),
        ("a.html", page(f"<p>{BODY}</p>{links(['Pumps', 'Valves'])}{_WITH_TEXT}{_TITLED}"),
         "\n- ".join([PROSE, "Pumps", "Valves", *(f"{name} is a language." for name in LANGUAGES), *(
             f"{name}: a history of the language and of those who wrote it" for name in LANGUAGES)])),
        ("a.html", page(f"<p>All:</p>{links(LANGUAGES)}"), "\n- ".join(["All:", *LANGUAGES])),
    ],
)  # fmt: skip
def test_the_text_of_a_file(name: str, data: bytes, text: str) -> None:
    assert document_of(name, data).text == text


@pytest.mark.parametrize(
    ("name", "data", "metadata"),
    [
        ("a.html", page("<p>x</p>"), {"language": "en"}),
        ("a.odt", odt("<text:p>x</text:p>", **{"meta.xml": _META}),
         {"authors": ["Ann Lee"], "date": "2015-03-03", "year": 2015, "keywords": ["pump"]}),
        ("a.epub", epub_bytes(PAGES), {
            "authors": ["Ann Lee", "Ben Roy"], "date": "2015-03-03", "year": 2015, "identifier": "urn:isbn:1",
            "language": "en", "left_out_contents_words": 1}),
    ],
)  # fmt: skip
def test_metadata_is_that_of_the_properties(name: str, data: bytes, metadata: Mapping[str, object]) -> None:
    document = document_of(name, data)
    assert document.metadata == metadata
    assert document.title == ("The page" if name == "a.html" else "On Pumps")


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.docx", b"", "not a whole DOCX"),
        ("a.docx", b"PK", "not a whole DOCX"),
        ("a.docx", b"\xd0\xcf\x11\xe0", "encrypted"),
        ("a.docx", docx_bytes([]), "no text"),
        ("a.docx", zip_bytes({"hello.txt": "hello"}), "zip file but not a Word document"),
        ("a.docx", damaged(_WORD, b"word/document.xml"), "it is a damaged DOCX file"),
        ("a.docx", _BROKEN, "it is a damaged DOCX file"),
        ("a.odt", zip_bytes({"a.txt": "x"}), "has no content.xml"),
        ("a.odt", zip_bytes({"content.xml": "<x"}), "not well-formed"),
        ("a.odt", zip_bytes({"content.xml": "<document-content/>"}), "not an OpenDocument text"),
        ("a.odt", zip_bytes({"content.xml": "\0", "META-INF/manifest.xml": "<m><encryption-data/></m>"}), "encrypted"),
        ("a.epub", b"", "not a whole EPUB"),
        ("a.epub", epub_bytes(PAGES)[:-30], "not a whole EPUB"),
        ("a.epub", zip_bytes({"a.txt": "x"}), "has no META-INF/container.xml"),
        ("a.epub", zip_bytes({"META-INF/container.xml": "<container/>"}), "names no book"),
        ("a.epub", epub_bytes({}), "no text"),
        ("a.txt", rb"{\rtf1\ansi Oak\par}", "it is RTF"),
        ("a.epub", epub_bytes({"../../../../etc/passwd": "<p>x</p>"}), "no text"),
        ("a.epub", encrypted(*PAGES), "encrypted"),
        ("a.epub", damaged(epub_bytes({"a.xhtml": f"<p>{BODY}</p>"}), b"OEBPS/a.xhtml"), "damaged EPUB"),
        ("a.epub", shifted(epub_bytes(PAGES)), "damaged EPUB file (negative seek"),
        ("a.html", b"", "no text"),
        ("a.html", b"<html></html>", "no text"),
        ("a.html", b"<!-- x -->", "no text"),
        ("a.html", b"<script>x</script>", "no text"),
        ("a.html", b"<p>x<div>" * 5000 + b"deep", "nested too deeply"),
        ("a.html", b"x" + b"<br>" * 2_000_001, "it has 2,000,001 tags"),
        *(("a.xml", data, "not well-formed XML") for data in (
            b"", b"not xml", b"<article><front><article-meta>", b"<article><body></article>")),
        ("a.xml", b'<svg xmlns="http://www.w3.org/2000/svg"/>', "root <svg> and holds no sentences"),
        ("a.xml", b"<us-patent-grant/>", "no text"),
        ("a.xml", b"<article><body>" + b"<p/>" * 2_000_000 + b"</body></article>", "it has 2,000,004 tags"),
    ],
)  # fmt: skip
def test_a_file_is_refused_with_a_reason(name: str, data: bytes, reason: str) -> None:
    (failure,) = read_bytes(data, name)
    assert isinstance(failure, Unreadable)
    assert reason in failure.reason


@pytest.mark.parametrize(
    ("limit", "name", "data", "reason"),
    [
        ("docx.MAX_CONTAINER_BYTES", "a.docx", zip_bytes({"word/document.xml": b"0" * 100_000}),
         "the unpacked file is 100,000 bytes, the limit is 1,000"),
        ("docx.MAX_XML_BYTES", "a.docx", _WORD, "the unpacked text with its marks is "),
        ("encoding.MAX_CONTAINER_BYTES", "a.epub", epub_bytes(PAGES), "the unpacked file is "),
    ],
)  # fmt: skip
def test_what_unpacks_to_too_much_is_refused(
    monkeypatch: pytest.MonkeyPatch, limit: str, name: str, data: bytes, reason: str
) -> None:
    monkeypatch.setattr(f"engine.readers.{limit}", 1_000)
    (failure,) = read_bytes(data, name)
    assert isinstance(failure, Unreadable)
    assert failure.reason.startswith(reason) and "the limit is 1,000" in failure.reason


def test_thousands_of_attributes_take_no_time() -> None:
    tag = "<p " + " ".join(f"a{number}='<{number}>'" for number in range(100_000)) + ">"
    start = time.process_time()
    assert document_of("a.html", page(f"{tag}kept</p><p class='x'>next</p>")).text == "kept\n\nnext"
    assert time.process_time() - start < 5


@pytest.mark.slow
def test_a_row_of_very_many_cells_is_read() -> None:
    data = page("<table><tr>" + "<td>" * 5 + "<td>a" * 80_000 + "</table>")
    assert document_of("a.html", data).text == " | ".join("a" * 80_000)


@pytest.mark.parametrize(
    ("name", "data", "title", "text", "fields"),
    [
        ("a.html", page("<h1>On Silt</h1><span class='ltx_personname'><b> </b>Ann Vane<br>Goole</span>"
         "<span class='ltx_personname'></span>",
                        "<title>[2101.1] On Silt</title><meta name='citation_publication_date' content='2020/05/06'>"),
         "On Silt", "On Silt Ann Vane Goole", {"authors": ["Ann Vane"], "date": "2020-05-06", "year": 2020}),
        ("a.html", page("<p>It pays.<span style='mso-element:comment'>[1]</span></p><div style='mso-element:comment-"
                        "list'><p>Why?</p></div>"), "The page", "It pays.", {"left_out_comment_words": 2}),
        ("a.html", page("<p>It pays.", "<title>Locks</title><meta name='docket' content='12-34'>"
                        "<meta name='dc.source' content='https://a.org/1'><meta name='browser' content='https://a.org'>"
                        "<meta name='nonce' content='9beafb3dc746549808aa21854efc79a6'><meta name='on' content='true'>"
                        "<meta name='citation_author' content='Li, Bo'>"
                        "<meta name='citation_author' content='Li, Bo;'>"),
         "Locks", "It pays.", {"docket": "12-34", "dc.source": "https://a.org/1", "authors": ["Li, Bo"], "on": None,
                               "nonce": None, "browser": None}),
        ("a.md", b"+++\ntitle = 'Locks'\ndate = 2021-07-09\n+++\nText.", "Locks", "Text.", {"date": "2021-07-09"}),
        ("a.xml", b"<article><front><article-meta><title-group><article-title>T</article-title></title-group>"
         b"<funding-group><award-group><funding-source><institution-id>7"
         b"</institution-id><institution>Trust</institution></funding-source><award-id>12</award-id></award-group>"
         b"</funding-group><custom-meta-group><custom-meta><meta-name>Data Availability</meta-name><meta-value>All "
         b"data are here.</meta-value></custom-meta></custom-meta-group></article-meta></front><body><p>B.</p></body>"
         b"</article>", "T", "T B. 7 Trust 12 Data Availability All data are here.", {}),
        ("a.tei", b"<TEI><teiHeader><publicationStmt><date when='2020-05-06'/></publicationStmt></teiHeader><text>"
         b"<body><p>So <formula>a = b<label>(1)</label></formula></p></body></text></TEI>", "a", "So a = b (1)",
         {"date": "2020-05-06", "year": 2020}),
        ("a.xml", b"<us-patent-application><us-bibliographic-data-application><us-applicant><addressbook><orgname>Lime"
         b"</orgname></addressbook></us-applicant><us-applicant><addressbook><last-name>Vane</last-name></addressbook>"
         b"</us-applicant></us-bibliographic-data-application><description><p>A pump.</p></description>"
         b"</us-patent-application>", "a", "Description A pump.", {"assignees": ["Lime"]}),
    ],
)  # fmt: skip
def test_text_and_fields_of_what_other_programs_write(
    name: str, data: bytes, title: str, text: str, fields: Mapping[str, object]
) -> None:
    document = document_of(name, data)
    assert (document.title, " ".join(document.text.split())) == (title, text)
    assert {field: document.metadata.get(field) for field in fields} == fields


_LABELS = (
    "<navPoint><navLabel><text>Oak Gates</text></navLabel><content src='a.xhtml#x'/></navPoint>"
    "<navPoint><navLabel><text>{}</text></navLabel></navPoint>"
)
_BOOK = epub_bytes(
    {"a.xhtml": "<p>Oak  gates</p><p>10<span class='c2'>5</span> <span class='c3'>elm</span> <i>ash</i>.</p>"},
    **{"OEBPS/a.css": ".c2 { vertical-align: super } .c3 { text-decoration: line-through }"},
)
_ENTRIES = members_of(_BOOK) | {"OEBPS/toc.ncx": f"<ncx><navMap>{_LABELS}</navMap></ncx>"}
_ENTRIES["OEBPS/book.opf"] = (
    bytes(_ENTRIES["OEBPS/book.opf"])  # type: ignore[arg-type]
    .decode()
    .replace("<manifest>", "<manifest><item id='n' href='toc.ncx' media-type='application/x-dtbncx+xml'/>")
)


@pytest.mark.parametrize(
    ("name", "data", "text", "headings"),
    [
        ("a.epub", zip_bytes(_ENTRIES), "Oak gates 10^5 ash.", ["Oak gates"]),
        ("a.html", page("<header id='title-block-header'><h1>Locks</h1><div class='abstract'>We look.</div></header>"
         "<p>Here <span class='math inline'>$\\frac{a}{b}$</span> and <span class='math'>x</span>.</p>"),
         "Locks We look. Here a/b and x.", ["Locks"]),
        ("a.html", page("<div style='-webkit-backface-visibility: hidden'><p class='row--gutter'>Oak</p></div><p><span "
         "class='gutter'>1 2</span><span style='visibility: hidden'>elm</span></p>"), "Oak", [""]),
        ("a.tei", b"<TEI><text><body><div><head>Oak<note>Elm.</note></head><p>Ash.</p></div></body></text></TEI>",
         "Oak Elm. Ash.", ["Oak"]),
        ("a.xml", b"<article><front/><body><sec><title>Oak<fn><p>Elm.</p></fn></title><p>Ash.</p></sec></body>"
         b"</article>", "Oak Elm. Ash.", ["Oak"]),
        ("a.xml", b"<PcGts><Page><ReadingOrder><OrderedGroup><RegionRefIndexed index='1' regionRef='a'/>"
         b"<RegionRefIndexed index='0' regionRef='b'/></OrderedGroup></ReadingOrder><TextRegion id='a'><TextEquiv>"
         b"<Unicode>Elm.</Unicode></TextEquiv></TextRegion><TextRegion id='b'><TextEquiv><Unicode>Oak.</Unicode>"
         b"</TextEquiv></TextRegion></Page></PcGts>", "Oak. Elm.", [""]),
        ("a.xml", b"<x><p xml:id='a'>The eels hide in mud.</p><p xml:id='a'>So do otters.</p></x>",
         "The eels hide in mud. So do otters.", [""]),
        ("a.tei", b"<TEI><text><body><list type='unordered'><item>Oak</item></list><list type='ordered:loweralpha'>"
         b"<item>Elm</item></list></body></text></TEI>", "- Oak a. Elm", [""]),
        ("a.xml", b"<article><info><title>Locks</title></info><section><title>Oak</title><para>It is <emphasis role="
         b"'strikethrough'>elm</emphasis> oak.</para><figure><title>A gate</title></figure><para>After it.</para>"
         b"<orderedlist numeration='upperroman'><listitem><para>Ash.</para></listitem></orderedlist></section>"
         b"</article>", "Locks Oak It is oak. A gate After it. I. Ash.", ["Oak"]),
        ("a.tex", rb"\documentclass{beamer}\begin{document}Silt\footnote<\value{beamerpauses}->[frame]{A note.} a"
         rb"\textbar b \affil[1]{Oak}\affil[2]{Elm} \tikz \draw (0,0) -- (1,1); \tikz[scale=2]{\draw (2,0);}"
         rb"\textless{}p\textgreater{} $\sum_{\begin{subarray}{l}i\\j\end{subarray}}x$\end{document}",
         "Silt (A note.) a|b Oak Elm <p> \u2211_ i j x", [""]),
    ],
)  # fmt: skip
def test_text_and_headings_as_converters_write_them(name: str, data: bytes, text: str, headings: list[str]) -> None:
    document = document_of(name, data)
    assert " ".join(document.text.split()) == text
    assert [section.heading for section in document.sections] == headings
    assert "unexplained_words" not in document.left_out


_RECORD = (
    "<record><header><identifier>9</identifier></header><metadata><dc xmlns:dc='d'><dc:title>Oak</dc:title><dc:creator>"
    "Ann Vane</dc:creator><dc:description>{}</dc:description><dc:date>2019-03-04</dc:date></dc></metadata></record>"
)
_ARXIV = (
    "<record><metadata><arXiv><id>9</id><created>2019-03-04</created><authors><author><keyname>Vane</keyname><forenames>"
    "Ann</forenames></author></authors><title>Oak</title><abstract>{}</abstract></arXiv></metadata></record>"
)
_ITEM = (
    "<item><title>Oak</title><dc:creator xmlns:dc='d'>Ann Vane</dc:creator><pubDate>Mon, 04 Mar 2019 10:00:00 GMT"
    "</pubDate><description>&lt;p>{}&lt;/p></description></item>"
)


@pytest.mark.parametrize(
    ("envelope", "record"),
    [
        ("<OAI-PMH><ListRecords>{}<resumptionToken>x</resumptionToken></ListRecords></OAI-PMH>", _RECORD),
        ("<OAI-PMH><GetRecord>{}</GetRecord></OAI-PMH>", _ARXIV),
        ("<rss><channel><title>News</title>{}</channel></rss>", _ITEM),
    ],
)
def test_records_in_envelopes_are_documents(envelope: str, record: str) -> None:
    texts = ["Gates are old here.", "Eels hide in mud."]
    found = documents_of("a.xml", envelope.format("".join(map(record.format, texts))))
    assert [document.text.split("\n\n") for document in found] == [["Oak", text] for text in texts]
    assert all(document.metadata["authors"] == ["Ann Vane"] for document in found)
    assert all(document.metadata["date"] == "2019-03-04" for document in found)
