"""JATS and TEI documents, and XML that is refused."""

import pytest

from engine.readers import read_bytes
from engine.readers.xml import read
from engine.search.query import section_weights
from engine.text.document import Document
from tests.cases import cases
from tests.readers.made import document_of

BODY = "A sentence of the body that is long enough. " * 6
JATS = f"""<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS//EN" "JATS-archivearticle1.dtd">
<article><front><journal-meta><journal-title>J Test</journal-title></journal-meta><article-meta>
<article-id pub-id-type="doi">10.1/x</article-id>
<title-group><article-title>On <italic>E. coli</italic> &beta;</article-title></title-group>
<contrib-group><contrib contrib-type="author"><name><surname>Lee</surname><given-names>Ann</given-names></name>
</contrib></contrib-group><pub-date><year>2020</year></pub-date>
<abstract><p>We study &beta;. {BODY}</p></abstract></article-meta>
</front><body><sec><label>1</label><title>Introduction</title><p>{BODY}</p><sec><title>Aim</title><p>{BODY}</p></sec>
</sec><sec><title>Data</title><table-wrap><caption><p>Rates.</p></caption><table><tr><td>1</td><td>2</td></tr></table>
</table-wrap><list><list-item><p>one</p></list-item><list-item><p>two</p></list-item></list></sec>
</body>
<back><ref-list><title>References</title><ref>Foo 1999</ref></ref-list></back></article>"""
TEI = f"""<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc><titleStmt><title>Deep Pumps</title></titleStmt>
<sourceDesc><biblStruct><analytic><author><persName><forename>Ann</forename><surname>Lee</surname></persName></author>
<idno type="DOI">10.1/y</idno></analytic><monogr><title>J</title><imprint><date when="2019-03-01"/></imprint></monogr>
</biblStruct></sourceDesc></fileDesc><profileDesc><abstract><p>{BODY}</p></abstract></profileDesc></teiHeader>
<text><body><div><head n="1">Introduction</head><p>{BODY}</p></div><div><head n="1.1">Aim</head><p>{BODY}</p></div>
</body><back><div type="references"><listBibl><bibl>Foo</bibl></listBibl></div></back></text></TEI>"""
BOMB = '<!DOCTYPE article [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>'


def test_a_jats_article_has_its_sections() -> None:
    document = read(JATS.encode(), "a", "a.nxml")
    assert document.title == "On E. coli β"
    assert [section.path for section in document.sections] == [
        ("Abstract",), ("1 Introduction",), ("1 Introduction", "Aim"),
    ]  # fmt: skip
    assert document.text.startswith("On E. coli β\n\nAbstract\n\nWe study β. A sentence")
    assert document.text.endswith("Data\n\nRates.\n1 | 2\n- one\n- two")
    assert document.metadata == {
        "authors": ["Ann Lee"], "journal": "J Test", "doi": "10.1/x", "year": 2020, "left_out_references": 1,
    }  # fmt: skip


def test_a_jats_article_has_the_kinds_of_its_sections() -> None:
    typed = JATS.replace("<sec><label>1</label>", '<sec sec-type="intro"><label>1</label>')
    typed = typed.replace(
        "<sec><title>Data</title>", f'<sec sec-type="materials | methods"><title>Data</title><p>{BODY}</p>'
    )
    document = read(typed.encode(), "a.xml", "a.xml")
    kinds = {name: value for name, value in document.metadata.items() if name.startswith("kind.")}
    assert kinds == {"kind.intro": ["Introduction"], "kind.materials": ["Data"], "kind.methods": ["Data"]}
    weights = section_weights(document, {"intro": 2, "methods": 0})
    by_heading = {section.heading: weight for section, weight in zip(document.sections, weights, strict=True)}
    assert by_heading["1 Introduction"] == 2 and by_heading["Data"] == 0


def test_a_tei_document_has_its_sections() -> None:
    document = read(TEI.encode(), "a", "a.tei")
    assert document.title == "Deep Pumps"
    assert [section.path for section in document.sections] == [
        ("Abstract",), ("1 Introduction",), ("1 Introduction", "1.1 Aim"),
    ]  # fmt: skip
    assert "Foo" not in document.text
    assert document.metadata == {
        "authors": ["Ann Lee"], "journal": "J", "doi": "10.1/y", "date": "2019-03-01", "year": 2019,
        "left_out_references": 1,
    }  # fmt: skip


_TEI = "<TEI><teiHeader/><text><body>{}</body></text></TEI>"
_ARTICLE = "<article><body>{}</body></article>"
_STANZA = "<{0}><{1}>The %s is old,</{1}><{1}>and so am I.</{1}></{0}>"


def _song(group: str, line: str) -> str:
    return "<p>Song</p>" + "".join(_STANZA.format(group, line) % word for word in ("gate", "boat"))


_SUNG = "Song\n\nThe gate is old,\nand so am I.\n\nThe boat is old,\nand so am I."


@cases(
    "source, text",
    {
        "an article in a wrapper": (
            f"<OAI-PMH><record>{_ARTICLE}</record></OAI-PMH>".format("<p>Found.</p>"),
            "Found.",
        ),
        "entities do not grow": (BOMB + _ARTICLE.format("<p>Hi &c; you</p>"), "Hi &c; you"),
        "a declaration in the text is no other document": (
            "<?xml version='1.0'?>\n" + _ARTICLE.format("<p><![CDATA[\n<?xml version='1.0'?>]]></p>"),
            "<?xml version='1.0'?>",
        ),
        "lines of verse of TEI stay together": (_TEI.format(_song("lg", "l")), _SUNG),
        "lines of verse of JATS stay together": (_ARTICLE.format(_song("verse-group", "verse-line")), _SUNG),
    },
)
def test_the_text_of_xml(source: str, text: str) -> None:
    assert read(source.encode(), "a", "a.xml").text == text


@pytest.mark.parametrize(
    ("root", "path"), [("article", "body"), ("us-patent-grant", "description")], ids=["article", "patent"]
)
def test_files_are_not_included(root: str, path: str) -> None:
    entity = f'<!DOCTYPE {root} SYSTEM "http://127.0.0.1:9/x.dtd" [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    data = f"{entity}<{root}><{path}><p>Read &f; this.</p></{path}></{root}>".encode()
    assert "root:" not in read(data, "a", "a.xml").text


_LISTING = '<?xml version="1.0"?><sequence-cwu><p>acgt</p></sequence-cwu>'
_PATENT = f'<?xml version="1.0"?><us-patent-grant><description><p>{BODY}</p></description></us-patent-grant>'


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([_LISTING, _PATENT, _PATENT, _LISTING, _LISTING], [("a.xml#2", 1), ("a.xml#3", 2)]),
        ([_PATENT, _LISTING, _PATENT], [("a.xml#1", 1), ("a.xml#3", 0)]),
        ([_LISTING, _LISTING], [("a.xml", None)]),
        ([_PATENT.replace("<p>", "<q>"), _LISTING, _PATENT], [("a.xml#1", None), ("a.xml#3", 1)]),
    ],
)
def test_sequence_listings_of_a_weekly_file_are_counted(parts: list[str], expected: list[tuple[str, int]]) -> None:
    found = list(read_bytes("\n".join(parts).encode(), "a.xml"))
    counts = [one.left_out.get("other_documents", 0) if isinstance(one, Document) else None for one in found]
    assert list(zip([one.doc_id for one in found], counts, strict=True)) == expected


@pytest.mark.parametrize(
    "words", ["<term>eau</term><term>vase</term>", "<list><item>eau</item><item>vase</item></list>"]
)
def test_keywords_of_tei_are_terms_or_items(words: str) -> None:
    header = f"<teiHeader><profileDesc><keywords>{words}</keywords></profileDesc></teiHeader>"
    data = f"<TEI>{header}<text><body><p>Words.</p></body></text></TEI>".encode()
    document = document_of("a.xml", data)
    assert document.metadata == {"keywords": ["eau", "vase"]}


def test_documents_of_trec_have_their_numbers() -> None:
    data = "".join(f"<DOC><DOCNO> F-{n} </DOCNO><TEXT>Oak & elm {n} it is.</TEXT></DOC>\n" for n in (1, 2)).encode()
    found = [one for one in read_bytes(data, "a.xml") if isinstance(one, Document)]
    assert [(one.doc_id, one.text) for one in found] == [(f"a.xml#F-{n}", f"Oak & elm {n} it is.") for n in (1, 2)]


@pytest.mark.parametrize("n_texts", [1, 2])
def test_the_header_of_a_corpus_is_counted(n_texts: int) -> None:
    header = "<teiHeader><fileDesc><titleStmt><title>Letters of Ann Vane</title></titleStmt></fileDesc></teiHeader>"
    texts = "<TEI><teiHeader/><text><body><p>The lock is shut.</p></body></text></TEI>" * n_texts
    found = list(read_bytes(f"<teiCorpus>{header}{texts}</teiCorpus>".encode(), "a.xml"))
    assert [one.left_out for one in found if isinstance(one, Document)] == [{"front_matter_words": 4}, {}][:n_texts]
    assert [one.text for one in found if isinstance(one, Document)] == ["The lock is shut."] * n_texts


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (b"<b id='1' n=\"2\" id='3'>Oak</b> and <i n='1' n='2'/>elm", "Oak and elm"),
        (b"Oak&nbsp;and &unknown; elm &lt; &eacute;", "Oak and &unknown; elm < \xe9"),
        (b"&thgr;-oak &PHgr;&b.alpha; &alpha;", "\u03b8-oak \u03a6&b.alpha; \u03b1"),
        (b"Oak & elm; A&T &lt; 3", "Oak & elm; A&T < 3"),
        (b"Oak\x0cand\x02elm", "Oak and elm"),
        ("\xc9tang \xe9cluse".encode("latin-1"), "\xc9tang \xe9cluse"),
        (b'Oak <x:b y:id="1">and</x:b> elm', "Oak and elm"),
        (b"\xe9cluse &nbsp;& <x:b>elm\x02</x:b>", "\xe9cluse & elm"),
    ],
)
def test_faults_that_are_none_of_the_structure_are_mended(words: bytes, text: str) -> None:
    data = b"<article><front><article-meta/></front><body><p>" + words + b"</p></body></article>"
    document = document_of("a.xml", data)
    assert " ".join(document.text.split()) == text


def with_back(back: str) -> Document:
    return read(f"<article><body><p>{BODY}</p></body><back>{back}</back></article>".encode(), "a", "a.xml")


def test_the_title_of_a_group_of_appendices_is_a_heading() -> None:
    group = f"<app-group><title>Supplements</title><app><title>Rates</title><p>{BODY}</p></app></app-group>"
    assert "Supplements" in with_back(group).sections[-1].path


def test_prose_in_a_list_of_references_is_text() -> None:
    document = with_back(
        "<ref-list><title>Notes</title><p>A dot marks one.</p><ref><label>1</label><note><p>Bought from a farm.</p>"
        "</note></ref><ref><label>2</label><mixed-citation>Roe 1999</mixed-citation><note><p>See chapter 3.</p></note>"
        "</ref><ref><mixed-citation>Doe 2001</mixed-citation></ref></ref-list>"
    )
    assert document.left_out == {"references": 2}
    assert document.text.split("\n\n")[1:] == ["Notes", "A dot marks one.", "Bought from a farm.", "See chapter 3."]
