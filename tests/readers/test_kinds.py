"""Kinds of constructs that every format with them reads in the same way, each in several formats."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.readers import Unreadable, read_file
from engine.readers.fields import Fields
from engine.text.document import Document
from indexer.reading.reader import ReadRequest, pack_requests, unpack_requests
from tests.readers.made import Print, document_of, documents_of, pdf_bytes
from tests.readers.made_pdf import pdf_of_contents
from tests.readers.test_docx_parts import word_of
from tests.readers.zipped import epub_bytes, members_of, zip_bytes

_BASE64 = "iVBORw0KGgoAAAANSUhEUg9" * 120
_LINES = "\n".join(["The regula-", "tion of hydrau-", "lic pumps is a mat-", "ter for the munici-", "pality of it."])
_PAGES = "\f".join(
    f"                 Sluice Journal {page}\n\nThe text of page {page} speaks of otters number {page} and goes\n"
    f"on at length without an end so that the\n\n                 {page}\n"
    for page in range(1, 7)
)


def jats(front: str, body: str) -> str:
    return f"<article><front><article-meta>{front}</article-meta></front><body>{body}</body></article>"


def html(body: str) -> str:
    return f"<html><head><title>T</title></head><body>{body}</body></html>"


def tei(body: str) -> str:
    return f"<TEI><teiHeader/><text><body>{body}</body></text></TEI>"


def latex(body: str, front: str = "") -> str:
    return f"\\documentclass{{article}}{front}\\begin{{document}}{body}\\end{{document}}"


def odt(body: str, styles: str = "") -> bytes:
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "style")
    )
    return zip_bytes({
        "content.xml": f"<office:document-content {spaces}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    })  # fmt: skip


def record(text: str) -> str:
    return json.dumps({"id": "1", "title": "P", "text": text})


def odt_style(properties: str) -> str:
    return f'<style:style style:name="T1" style:family="text"><style:text-properties {properties}/></style:style>'


def word_run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


@pytest.mark.parametrize(
    ("name", "data", "words", "left_out"),
    [
        *((name, data, "水門は古い", {"reading_words": 1}) for name, data in (
            ("a.odt", odt("<text:p><text:ruby><text:ruby-base>水門</text:ruby-base><text:ruby-text>すい"
                          "</text:ruby-text></text:ruby>は古い</text:p>")),
            ("a.epub", epub_bytes({"a.xhtml": "<p><ruby>水門<rp>(</rp><rt>すい</rt><rp>)</rp></ruby>は古い</p>"})),
            ("a.md", "# 川\n\n<ruby>水門<rt>すい</rt></ruby>は古い\n"),
            ("a.tex", latex(r"\ruby{水門}{すい}は古い。")),
            ("a.tex", latex(r"\kana{水門}{すい}は古い。")),
        )),
        *((name, data, "The toll is twenty pence.", {"deleted_words": 1}) for name, data in (
            ("a.odt", odt('<text:tracked-changes><text:changed-region text:id="c"><text:deletion><text:p>ten</text:p>'
                          "</text:deletion></text:changed-region></text:tracked-changes><text:p>The toll is "
                          '<text:change text:change-id="c"/>twenty pence.</text:p>')),
            ("a.md", "# Bill\n\nThe toll is ~~ten~~ twenty pence.\n"),
            ("a.md", "# Bill\n\nThe toll is <del>ten</del> twenty pence.\n"),
            ("a.tex", latex(r"The toll is \deleted{ten}\added{twenty} pence.")),
            ("a.tex", latex(r"The toll is \replaced{twenty}{ten} pence.")),
            ("a.tex", latex(r"The toll is \sout{ten} twenty pence.")),
            ("a.docx", word_of(f"<w:p>{word_run('The toll is ')}<w:del><w:r><w:delText>ten</w:delText></w:r></w:del>"
                               f"<w:ins>{word_run('twenty')}</w:ins>{word_run(' pence.')}</w:p>")),
            ("a.xml", jats("", "<p>The toll is <strike>ten</strike> twenty pence.</p>")),
            ("a.xml", jats("", "<p>The toll is <named-content content-type='deleted'>ten</named-content> twenty pence."
                           "</p>")),
            ("a.epub", epub_bytes({"a.xhtml": "<p>The toll is <del>ten</del><ins>twenty</ins> pence.</p>"})),
            ("a.tei", tei("<p>The toll is <del>ten</del> twenty pence.</p>")),
            ("a.xml", "<akomaNtoso><act><body><p>The toll is <del>ten</del> twenty pence.</p></body></act>"
             "</akomaNtoso>"),
            *(("a.xml", f"<doc><p>The toll is <i {gone}>ten</i><i>twenty</i> pence.</p></doc>") for gone in (
                "changed='deleted'", "revisionflag='deleted'", "status='deleted'", "role='strikethrough'",
                "style='color:red;text-decoration:line-through'")),
            ("a.tei", tei("<p>The toll is <seg rend='struck'>ten</seg> twenty pence.</p>")),
        )),
        *((name, data, "silt^12 was 10^5", {}) for name, data in (
            ("a.docx", word_of("<w:p>" + word_run("silt") + word_run("12", '<w:vertAlign w:val="superscript"/>')
                               + word_run(" was 10") + word_run("5", '<w:vertAlign w:val="superscript"/>') + "</w:p>")),
            ("a.odt", odt('<text:p>silt<text:span text:style-name="T1">12</text:span> was 10<text:span text:style-name='
                          '"T1">5</text:span></text:p>', odt_style('style:text-position="super 58%"'))),
            ("a.epub", epub_bytes({"a.xhtml": "<p>silt<sup>12</sup> was 10<sup>5</sup></p>"})),
            ("a.tei", tei('<p>silt<ref type="bibr">12</ref> was 10<hi rend="superscript">5</hi></p>')),
            ("a.tex", latex(r"silt\textsuperscript{12} was $10^5$")),
            ("a.xml", "<us-patent-grant><description><p>silt<sup>12</sup> was 10<sup>5</sup></p></description>"
                      "</us-patent-grant>"),
            *(("a.xml", f"<book><para>silt<{tag}>12</{tag.split()[0]}> was 10<sup>5</sup></para></book>") for tag in (
                "sup", "Superior", "HT TYPE='SUP'")),
        )),
    ],
)  # fmt: skip
def test_readings_deleted_words_and_raised_digits_are_no_part_of_words(
    name: str, data: str | bytes, words: str, left_out: dict[str, int]
) -> None:
    document = document_of(name, data)
    assert words in " ".join(document.text.split())
    assert left_out.items() <= document.left_out.items()


@pytest.mark.parametrize(
    ("name", "data", "present", "absent"),
    [
        ("a.txt", f"CHAPTER ONE\n\n{_LINES}\n", ["regulation of hydraulic pumps", "municipality"], ["-"]),
        *((name, data, ["regulation of hydraulic pumps", "municipality"], ["-"]) for name, data in (
            ("a.xml", f"<doc><p>{_LINES}</p></doc>"), ("a.xml", jats("", f"<p>{_LINES}</p>")),
            ("a.tei", tei(f"<p>{_LINES}</p>")))),
        ("a.json", record(_LINES), ["regulation of hydraulic pumps", "municipality"], ["-"]),
        ("a.txt", _PAGES, ["page 3 speaks of otters"], ["Sluice Journal"]),
        ("a.json", record(_PAGES), ["page 3 speaks of otters"], ["Sluice Journal"]),
        ("a.txt", "\f".join("The keeper wrote that it rose\n" * 9 + f"\n     - {n} -\n   Draft of May      For counsel"
                          for n in range(1, 7)), ["it rose The keeper"], ["counsel", "- 3 -"]),
        ("a.txt", "HARBOUR v. LIME\n\nThe court [*4] held that the lease *5 was void. The judg- [*6] ment stands.\n",
         ["court held that the lease was void. The judgment stands."], ["*"]),
        *((name, text, ["noon", "evening"], ["iVBOR"]) for name, text in (
            ("a.html", html(f"<p>noon data:image/png;base64,{_BASE64} evening</p>")),
            ("a.tex", latex(f"noon {_BASE64} evening")),
            ("a.jsonl", record(f"noon {_BASE64} evening")),
            ("a.rst", f"W\n=\n\nnoon {_BASE64} evening\n"),
        )),
        ("a.md", "---\n\nNote: this is text.\n\n---\n\n# R\n\nText.\n", ["this is text"], []),
    ],
)  # fmt: skip
def test_text_of_pages_and_bytes_in_text(name: str, data: str, present: Sequence[str], absent: Sequence[str]) -> None:
    document = document_of(name, data)
    text = " ".join(document.text.split())
    assert [words for words in present if words not in text] == []
    assert [words for words in absent if words in text] == []


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("iso-8859-2", "Śluza na Wiśle jest stara i pięknie położona."),
        ("cp1250", "Žluťoučký kůň úpěl ďábelské ódy nad řekou, kde stojí stará věž."),
        ("iso-8859-9", "Işıklı köprüden geçen gemi, şehrin güneyine doğru gitti."),
        ("mac_roman", "Die Schleuse über den Fluß ist äußerst schön und größer."),
        ("cp1252", "Die Schleuse über den Fluß ist „äußerst“ schön und größer."),
        ("koi8_r", "Шлюз на реке стоит давно и вода в нем холодная."),
        ("cp1257", "Šliuzas ant upės yra senas ir gražiai įrengtas žvejų kaime."),
        ("cp1257", "Slūžas uz upes ir vecas, un ūdens tajās ir auksts."),
        ("cp1252", "Það er gömul brú á ánni og þar er mikið vatn."),
        ("cp850", "Le barrage est très ancien et l'été, la rivière déborde où l'on passe."),
        ("cp852", "Žluťoučký kůň úpěl ďábelské ódy nad řekou, kde stojí stará věž."),
        ("euc_jp", "水門は古く、船がそこにある。番人は正午に門を開け、船は川を上っていく。"),
        ("iso2022_jp", "水門は古く、船がそこにある。番人は正午に門を開け、船は川を上っていく。"),
        ("euc_kr", "수문은 오래되었고 배가 거기에 있다. 문지기는 정오에 문을 연다."),
        ("gb18030", "水门很旧，船都停在那里。守门人在中午打开水门，船只沿河而上。"),
    ],
)
@pytest.mark.parametrize("n_times", [1, 6])
def test_short_and_long_texts_in_old_encodings(encoding: str, text: str, n_times: int) -> None:
    assert text in documents_of("a.txt", " ".join([text] * n_times).encode(encoding))[0].text


_JUDGMENT = """<akomaNtoso xmlns="http://docs.oasis-open.org/legaldocml/ns/akn/3.0"><judgment><meta><identification>
<FRBRWork><FRBRdate date="2021-07-09"/><FRBRname value="Harbour Trust v Lime"/></FRBRWork></identification></meta>
<header><p>Citation: <neutralCitation>[2021] EWHC 12</neutralCitation></p></header><judgmentBody><decision><paragraph>
<num>1.</num><content><p>The lease<authorialNote><p>A note on leases.</p></authorialNote> is void.</p></content>
</paragraph>
</decision></judgmentBody></judgment></akomaNtoso>"""
_BILL = """<bill xmlns="http://schemas.gpo.gov/xml/uslm" xmlns:dc="http://purl.org/dc/elements/1.1/"><meta>
<dc:title>Pumps Act</dc:title></meta><main><section><num>SECTION 1. </num><heading>Short title.</heading>
<content>This is
the <quotedText>Act</quotedText>.</content></section><section><num>2.</num><heading>Findings</heading><chapeau>Found:
</chapeau><paragraph><num>(1)</num><content>pumps move water.</content></paragraph></section></main></bill>"""
_OLD_BILL = """<bill><form><official-title>To allow pumps.</official-title></form><legis-body><section><enum>1.</enum>
<header>Name</header><text>Cited as the <quote><short-title>Pumps Act</short-title></quote>.</text></section>
</legis-body>
</bill>"""
_RFC = """<rfc number="9999"><front><title>Telemetry</title><author fullname="Ann Vane"/><date year="2021"/></front>
<middle>
<section title="Flow"><t>Water <bcp14>MUST</bcp14> flow, see <xref target="RFC1"/>.</t><ul><li>one eel</li></ul>
<sourcecode>a
  b</sourcecode></section></middle><back><references><reference><front><title>Words</title></front></reference>
</references>
</back></rfc>"""
_ST36 = """<patent-document country="EP" doc-number="1000" kind="A1" lang="DE" date="20010105"><bibliographic-data>
<technical-data><classification-ipcr>F04B  17/03        2006</classification-ipcr><invention-title lang="EN">Pump
</invention-title><invention-title lang="DE">Pumpe</invention-title></technical-data><parties><inventors><inventor
data-format="docdb"><addressbook><name>VANE ANN [GB]</name></addressbook></inventor></inventors></parties>
</bibliographic-data><description lang="DE"><p>Die Pumpe.</p></description><claims lang="EN"><claim num="1">
<claim-text>A pump.
</claim-text></claim></claims></patent-document>"""
_OPS = """<w:world-patent-data xmlns:w="w"><exchange-documents xmlns="x">
<exchange-document country="EP" doc-number="1000"
kind="A1"><bibliographic-data><publication-reference><document-id><date>20010105</date></document-id>
</publication-reference>
<invention-title lang="en">Pump</invention-title></bibliographic-data><abstract lang="en"><p>A pump.</p></abstract>
</exchange-document></exchange-documents></w:world-patent-data>"""
_GRANT = """<PATDOC><SDOBI><B110><DNUM><PDAT>06442728</PDAT></DNUM></B110><B130><PDAT>B1</PDAT></B130><B140><DATE>
<PDAT>20020827
</PDAT></DATE></B140><B190><PDAT>US</PDAT></B190><B540><STEXT><PDAT>Rotor pump</PDAT></STEXT></B540><B721><NAM><FNM>
<PDAT>Ann
</PDAT></FNM><SNM><PDAT>Vane</PDAT></SNM></NAM></B721></SDOBI><SDODE><BTEXT><H LVL="1"><PDAT>BACKGROUND</PDAT></H>
<PARA><PDAT>
Old H</PDAT><SB><PDAT>2</PDAT></SB><PDAT>O.</PDAT></PARA></BTEXT></SDODE><SDOCL><H><PDAT>What is claimed is:</PDAT>
</H><CL><CLM>
<PARA><PDAT>1. A pump.</PDAT></PARA></CLM></CL></SDOCL></PATDOC>"""
_APPLICATION = """<!DOCTYPE patent-application-publication SYSTEM "p.dtd">
<patent-application-publication><subdoc-bibliographic-information><document-id>
<doc-number>20010031492</doc-number><kind-code>A1</kind-code><document-date>20011018</document-date></document-id>
<title-of-invention>Assay of &agr;-amylase</title-of-invention>
<inventors><name><given-name>Ann</given-name><family-name>Vane</family-name></name></inventors>
</subdoc-bibliographic-information><subdoc-description><section><heading lvl="1">DETAILS</heading><paragraph>
<number>&lsqb;0001&rsqb;</number> It follows.</paragraph></section></subdoc-description><subdoc-claims>
<heading lvl="1">Claimed:</heading><claim><claim-text>1. The assay of
<dependent-claim-reference><claim-text>claim 1</claim-text></dependent-claim-reference>.</claim-text></claim>
</subdoc-claims></patent-application-publication>"""
_APS = """PATN
WKU  057006474
TTL  Taxol process of
       interest
ISD  19971223
INVT
NAM  Gabetta; Bruno
CTY  Milan
UREF
PNO  4814470
ABST
PAL  Described is a process
     of pumps.
BSUM
PAC  BACKGROUND
PAR  Pumps are old.
CLMS
STM  What is claimed is:
NUM  1.
PAR  1. A process comprising:
PA1  (a) a pump.
"""


_ST96 = """<p:PatentPublication xmlns:p="http://www.wipo.int/standards/XMLSchema/ST96/Patent"><p:BibliographicData>
<p:PatentPublicationIdentification><p:IPOfficeCode>CA</p:IPOfficeCode><p:PublicationNumber>20</p:PublicationNumber>
<p:PatentDocumentKindCode>C</p:PatentDocumentKindCode><p:PublicationDate>2001-02-03</p:PublicationDate>
</p:PatentPublicationIdentification><p:InventionTitle>Pump</p:InventionTitle></p:BibliographicData>
<p:Description><p:P p:pNumber="0001">It lifts.</p:P>
</p:Description><p:Claims><p:Claim><p:ClaimNumber>1</p:ClaimNumber><p:ClaimText>A pump.</p:ClaimText></p:Claim>
</p:Claims></p:PatentPublication>"""
_BMC = """<art><ui>1</ui><fm><bibl><title><p>Silt</p></title><aug><au><snm>Vane</snm><mnm>B</mnm><fnm>Ann</fnm></au>
<au><snm>Okabe</snm><mnm>R</mnm></au></aug></bibl></fm><bdy><sec>
<st><p>Gates</p></st><p>They leak<sup>1</sup>, and the keeper mends them.</p><tbl>
<tblbdy><r><c><p>Lock</p></c><c><p>3</p></c></r></tblbdy></tbl></sec></bdy><bm><ack><p>Thanks.</p></ack><refgrp><bibl><title><p>Old</p></title></bibl></refgrp>
</bm></art>"""
_WO = """<wo-published-application lang="en"><wo-bibliographic-data><invention-title>Pump</invention-title>
</wo-bibliographic-data><application-body><description><p>It lifts.</p></description><claims><claim><claim-text>A pump.
</claim-text></claim></claims></application-body></wo-published-application>"""
_REISSUE = """<us-patent-grant><us-bibliographic-data-grant><invention-title>Pump</invention-title>
</us-bibliographic-data-grant><description><p>It <?delete-start id="1"?>sinks <b>ten</b> gates<?delete-end id="1"?>
<?insert-start id="2"?>lifts<?insert-end id="2"?>.</p></description></us-patent-grant>"""


@pytest.mark.parametrize(
    ("name", "data", "title", "present", "fields"),
    [
        ("a.xml", _BMC, "Silt", ["Gates\n\nThey leak^1, and the keeper mends them.", "Lock | 3", "Thanks."],
         {"authors": ["Ann B Vane", "Okabe"], "left_out_references": 1, "left_out_front_matter_words": 6}),
        ("a.xml", "<xml><records><record><contributors><authors><author><style face='normal'>Ann Vane</style></author>"
                  "</authors></contributors><titles><title><style face='normal'>Silt</style></title><secondary-title>J"
                  "</secondary-title></titles><dates><year>2019</year></dates><abstract><style face='normal'>It fills "
                  "the locks.</style></abstract></record></records></xml>", "Silt", ["Abstract\n\nIt fills the locks."],
         {"authors": ["Ann Vane"], "year": 2019}),
        ("a.xml", "<akomaNtoso><act><meta><FRBRalias value='Locks Act' name='title'/></meta><preface><longTitle><p>To "
                  "provide for locks.</p></longTitle></preface></act></akomaNtoso>", "Locks Act", ["To provide"], {}),
        ("a.xml", _ST96, "Pump", ["Description\n\nIt lifts.", "Claims\n\n1. A pump."],
         {"number": "CA20C", "date": "2001-02-03"}),
        ("a.xml", _WO, "Pump", ["Description\n\nIt lifts.", "Claims\n\n1. A pump."], {}),
        ("a.xml", _REISSUE, "Pump", ["Description\n\nIt lifts."], {"left_out_deleted_words": 3}),
        ("a.xml", _JUDGMENT, "Harbour Trust v Lime", ["1. The lease is void.\n\nA note on leases."],
         {"date": "2021-07-09", "year": 2021}),
        ("a.xml", _BILL, "Pumps Act", ["SECTION 1. Short title.\n\nThis is the Act.", "(1) pumps move water."], {}),
        ("a.xml", _OLD_BILL, "To allow pumps.", ["1. Name\n\nCited as the Pumps Act."], {}),
        ("a.xml", _RFC, "Telemetry", ["Flow\n\nWater MUST flow, see [RFC1].\n- one eel\n\na\n  b"],
         {"authors": ["Ann Vane"], "year": 2021, "number": "9999", "left_out_references": 1}),
        ("a.xml", _ST36, "Pumpe", ["Description\n\nDie Pumpe.", "Claims\n\n1. A pump."],
         {"number": "EP1000A1", "date": "2001-01-05", "ipc": ["F04B 17/03"], "inventors": ["VANE ANN"]}),
        ("a.xml", _OPS, "Pump", ["Abstract\n\nA pump."], {"number": "EP1000A1", "year": 2001}),
        ("a.xml", _GRANT, "Rotor pump", ["BACKGROUND\n\nOld H2O.", "Claims\n\n1. A pump."],
         {"number": "US06442728B1", "date": "2002-08-27", "inventors": ["Ann Vane"]}),
        ("a.xml", _APPLICATION, "Assay of \u03b1-amylase", ["DETAILS\n\n[0001] It follows.", "The assay of claim 1."],
         {"number": "US20010031492A1", "inventors": ["Ann Vane"]}),
        ("a.txt", _APS, "Taxol process of interest",
         ["Abstract\n\nDescribed is a process of pumps.", "BACKGROUND\n\nPumps are old.", "1. A process comprising:"],
         {"number": "US5700647", "inventors": ["Bruno Gabetta"], "left_out_references": 1}),
        ("a.xml", _GRANT.replace("1. A pump.", "2-5. (canceled)"), "Rotor pump", ["Claims\n\n2-5. (canceled)"], {}),
        ("a.xml", "<doc xmlns:d='http://purl.org/dc/elements/1.1/'><coredata><d:title>Silt</d:title><d:creator>Ann Vane"
                  "</d:creator></coredata><originalText><p>Silt fills the locks.</p></originalText></doc>", "Silt",
         ["Silt fills the locks."], {"authors": ["Ann Vane"]}),
        ("a.xml", "<Publisher><Article><ArticleTitle>Silt</ArticleTitle><Author><AuthorName>"
                  "<GivenName>Ann</GivenName><FamilyName>Vane</FamilyName></AuthorName></Author><Body><Section1><Heading>"
                  "Gates</Heading><Para>Old locks leak.</Para></Section1></Body></Article></Publisher>", "Silt",
         ["Gates\n\nOld locks leak."], {"authors": ["Ann Vane"]}),
        ("a.xml", "<PubmedArticle><PubDate><Year>2019</Year><Month>Jul</Month><Day>4</Day></PubDate><ArticleTitle>Eels"
                  "</ArticleTitle><Abstract><AbstractText>They hide in mud.</AbstractText></Abstract></PubmedArticle>",
         "Eels", ["They hide in mud."], {"date": "2019-07-04", "year": 2019}),
        ("a.xml", "<book><info><title>Eels</title></info><chapter><title>One</title><para>The eels <em>hide"
                  "</em> in mud."
                  "</para></chapter></book>", "Eels", ["One\n\nThe eels hide in mud."], {}),
        ("a.xml", "<topic><title>Locks</title><prolog><author>Ann Vane</author><critdates><created date='2019-07-04'/>"
                  "</critdates></prolog><body><p>Choose <m><c>File</c><c>Open</c></m><fn>A note.</fn> "
                  "now<indexterm>gate"
                  "</indexterm>.</p><p conref='x'/><simpletable><strow><stentry>Goole</stentry><stentry>3</stentry>"
                  "</strow></simpletable><fig><title>A gate</title><image><alt>oak</alt></image></fig></body></topic>",
         "Locks", ["Locks\n\nChoose File Open now.\n\nA note.\nGoole | 3\n\nA gate\n\noak"],
         {"authors": ["Ann Vane"], "date": "2019-07-04", "left_out_contents_words": 1, "left_out_missing_files": 1}),
        ("a.xml", "<book xmlns:xi='http://www.w3.org/2001/XInclude'><info><title>Eels</title><author><personname>"
                  "<firstname>Ann</firstname><surname>Vane</surname></personname><orgname>Lab</orgname></author></info>"
                  "<chapter xml:id='c'><title>One</title><para>The eels hide, see <xref linkend='c'/>.</para><note>"
                  "<title>Care</title><para>Wet.</para></note><xi:include href='b'/></chapter></book>", "Eels",
         ["One\n\nThe eels hide, see One.\n\nCare\n\nWet."], {"authors": ["Ann Vane"], "left_out_missing_files": 1}),
        ("a.xml", "<rfc docName='draft-x'><front><title>Locks</title></front><middle><section><name>Flow</name><t>See "
                  "<xref target='g' format='counter' derivedContent='1.2'/> and <xref target='r' "
                  "derivedContent='RFC1'/>."
                  "</t></section></middle></rfc>", "Locks", ["Flow\n\nSee 1.2 and [RFC1]."], {"number": "draft-x"}),
        ("a.xml", "<standard><front><iso-meta><title-wrap><main>Gates</main><full>Locks: "
         "gates</full></title-wrap></iso-meta>"
                  "</front><body><sec><label>1</label><title>Scope</title><p>This covers "
                  "gates.</p></sec></body></standard>",
         "Locks: gates", ["1 Scope\n\nThis covers gates."], {}),
        ("a.xml", "<documento><metadatos><titulo>Ley</titulo></metadatos><texto><p>Esta ley regula las "
         "presas.</p></texto>"
                  "</documento>", "Ley", ["Esta ley regula las presas."], {}),
        ("a.txt", "(54) Kreiselpumpe\n\nSie hebt Wasser.\n", "Kreiselpumpe", [], {}),
        ("a.txt", "(19) EPO\n(11) EP 1 A1\n(54) Bezeichnung: Pumpe mit\n     Tor\n(57) Sie hebt Wasser.\n", 
         "Pumpe mit Tor", ["(11) EP 1 A1"], {}),
        ("a.html", html("<section><heading>FIELD</heading><ol><li>1. A pump.</li></ol></section>"), "T",
         ["FIELD\n1. A pump."], {}),
        ("a.html", html("<p>x</p>").replace("T<", "US1234567B2 - Pump - Google Patents<"), "Pump", [], {}),
        ("a.xml", "<docdb><document><bibliographic-data><invention-title>Pump</invention-title></bibliographic-data>"
                  "<claims><claim><claim-text>1、A pump.</claim-text></claim></claims></document></docdb>", "Pump",
         ["Claims\n\n1、A pump."], {}),
        ("a.xml", "<TEI><teiHeader><titleStmt><title/></titleStmt></teiHeader><text><body><head>Letters</head><p>It "
                  "rose.</p></body></text></TEI>", "Letters", ["It rose."], {}),
        ("a.xml", "<contract><title>Lease</title><parties><party>Ann Vane</party><party>Lime "
         "Ltd</party></parties><p>It runs "
                  "ten <b>ye</b><b>ars</b>.</p></contract>", "Lease", ["Ann Vane Lime Ltd\n\nIt runs ten years."], {}),
        ("a.xml", "<rootTag><Award><AwardTitle>Silt</AwardTitle><AwardDate>2019-07-04</AwardDate><Text>It "
         "&lt;b&gt;fills"
                  "&lt;/b&gt; locks.&lt;br/&gt;It leaks in May.</Text></Award></rootTag>", "Silt",
         ["Silt\n\n2019-07-04\n\nIt fills locks.\nIt leaks in May."], {"date": "2019-07-04"}),
        ("a.xml", "<FictionBook><description><title-info><author><first-name>Ann</first-name></author><book-title>Locks"
                  "</book-title></title-info></description><body><section><title><p>Gates</p></title><p>They "
                  "are old and "
                  "leak.</p></section></body></FictionBook>", "Locks", ["Gates\n\nThey are old and leak."], {}),
        ("a.xml", "<doc><absatz>Die Aale leben <fett>hier</fett> gern.</absatz><absatz>Otter auch.</absatz></doc>", "a",
         ["Die Aale leben hier gern.\n\nOtter auch."], {}),
        ("a.xml", '<posts><row Id="7" Title="Why silt?" Body="&lt;p&gt;It fills it.&lt;/p&gt;&lt;p&gt;Why?&lt;/p&gt;" '
                  'CreationDate="2019-07-04T10:00"/></posts>', "Why silt?", ["Why silt?\n\nIt fills it.\n\nWhy?"],
         {"id": "7", "date": "2019-07-04"}),
        ("a.xml", '<Law Lang="ja"><LawBody><LawTitle>水門法</LawTitle><Article><ArticleTitle>第一条</ArticleTitle>'
                  "<Sentence>水門を定める。</Sentence></Article></LawBody></Law>", "水門法", ["水門を定める。"], {}),
        ("a.html", "<html><head><title>EUR-Lex - 32001R0001 - EN</title></head><body><h1>32001R0001</h1><p><strong>Act "
                   "on silt</strong><br><em>Journal L 1</em></p><TXT_TE><p>Silt stays.</p></TXT_TE></body></html>",
         "Act on silt", ["32001R0001", "Silt stays."], {}),
        ("a.html", '<html><head><meta property="og:title" content="Silt - aim"><title>Silt - aim | The Times</title>'
                   "</head><body><p>Silt stays.</p></body></html>", "Silt - aim", ["Silt stays."], {}),
    ],
    ids=["bmc", "endnote", "alias",
         "st96", "wipo", "reissue", "judgment", "uslm", "bill", "rfc", "st36", "ops", "grant", "application", "aps",
         "canceled", "elsevier", "springer", "pubmed", "book", "dita", "docbook", "draft", "standard",
         "spanish", "inid", "front page", "google claims", "google", "docdb",
         "letters", "lease", "award", "fiction", "unknown", "posts", "law of Japan", "EUR-Lex", "name of a site"],
)  # fmt: skip
def test_formats_of_law_and_patents(
    name: str, data: str, title: str, present: Sequence[str], fields: dict[str, object]
) -> None:
    document = document_of(name, data)
    assert document.title == title
    assert [words for words in present if words not in document.text] == []
    assert {field: document.metadata.get(field) for field in fields} == fields


def test_a_weekly_file_of_aps_is_several_documents() -> None:
    found = documents_of("a.txt", f"HHHHHT        APS1\n{_APS}{_APS.replace('057006474', '057006482')}")
    assert [document.doc_id for document in found] == ["a.txt#US5700647", "a.txt#US5700648"]


def test_a_name_that_is_no_ncname_is_no_fault_of_the_text() -> None:
    document = document_of("a.tei", tei('<div xml:id="1 a"><p>Eels hide.</p></div>'))
    assert document.text == "Eels hide."


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_the_fields_of_records_can_be_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text('{"key": "k", "label": "Eels", "prose": "Eels hide.", "text": "Other."}\n')
    (document,) = read_file(path, fields=Fields("prose", "label", "key"))
    assert isinstance(document, Document)
    assert (document.title, document.text) == ("Eels", "Eels\n\nEels hide.")
    assert document.doc_id == ("k" if name == "a.jsonl" else name)
    (failure,) = read_file(path, fields=Fields("verse"))
    assert isinstance(failure, Unreadable)
    assert failure.reason == 'it has no field "verse"; its fields are key, label, prose, text'
    ((packed,), _) = unpack_requests(pack_requests([ReadRequest("a", fields=Fields("prose"))]))
    assert packed.fields == Fields("prose")


def prose(y: int) -> list[Print]:
    line = "The court weighs the lease of the quay and the keeper stands before the gate."
    return [(line, 72, y - 14 * row, 11, False) for row in range(16)]


_CAPTIONS: list[tuple[list[Print], str, dict[str, object]]] = [
    (
        [("FILED", 480, 760, 18, True), ("UNITED STATES DISTRICT COURT", 200, 720, 14, True),
         ("NORTHERN DISTRICT OF GOOLE", 210, 704, 12, True), ("HARBOUR TRUST, INC.,", 72, 670, 11, False),
         ("Plaintiff,", 150, 656, 11, False), ("v.", 100, 642, 11, False), ("LIME QUARRIES LLC,", 72, 628, 11, False),
         ("Defendant.", 150, 614, 11, False), ("Case No. 21-cv-0123", 330, 600, 11, False)],
        "HARBOUR TRUST, INC. v. LIME QUARRIES LLC",
        {"docket": "21-cv-0123", "court": "UNITED STATES DISTRICT COURT NORTHERN DISTRICT OF GOOLE"},
    ),
    (
        [("United States Court of Appeals", 170, 720, 18, True), ("FOR THE GOOLE CIRCUIT", 210, 700, 12, True),
         ("No. 21-1234", 260, 680, 11, False), ("HARBOUR TRUST,", 72, 650, 11, False),
         ("Plaintiff-Appellant,", 120, 636, 11, False), ("v.", 72, 622, 11, False),
         ("LIME QUARRIES, ET AL.,", 72, 608, 11, False), ("Decided July 9, 2021", 220, 570, 11, False)],
        "HARBOUR TRUST v. LIME QUARRIES",
        {"docket": "21-1234", "date": "2021-07-09", "year": 2021},
    ),
    ([("RECEIVED", 480, 760, 18, True), ("On the Keeping of Locks", 150, 720, 14, True)],
     "On the Keeping of Locks", {}),
]  # fmt: skip


@pytest.mark.parametrize(("caption", "title", "fields"), _CAPTIONS, ids=["district", "appeals", "stamp"])
def test_the_title_of_a_court_paper_is_its_parties(caption: list[Print], title: str, fields: dict[str, object]) -> None:
    opinion: list[Print] = [("II. FINDINGS OF FACT", 220, 740, 11, False), *prose(715)]
    ruling: list[Print] = [("OPINION", 245, 740, 11, False), *prose(715)]
    document = document_of("a.pdf", pdf_bytes([[*caption, *prose(550)], opinion, ruling]))
    assert document.title == title
    assert {field: document.metadata.get(field) for field in fields} == fields
    assert [section.heading for section in document.sections][-2:] == ["II. FINDINGS OF FACT", "OPINION"]


@pytest.mark.parametrize("order", [1, -1])
def test_columns_of_vertical_writing_go_from_right_to_left(order: int) -> None:
    font = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /HeiseiMin-W3 /Encoding /UniJIS-UCS2-V /DescendantFonts [<< /Type "
        b"/Font /Subtype /CIDFontType0 /BaseFont /HeiseiMin-W3 /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) "
        b"/Supplement 2 >> /FontDescriptor << /Type /FontDescriptor /FontName /HeiseiMin-W3 /Flags 6 /FontBBox [0 0 "
        b"1000 1000] /ItalicAngle 0 /Ascent 709 /Descent -241 /CapHeight 709 /StemV 69 >> >>] >>"
    )
    columns = ["水門は古く石で造られ", "堤防の上を人が歩く", "船は毎朝ここを通る"]
    content = b"".join(
        b"BT /F1 14 Tf 1 0 0 1 %d 700 Tm <%s> Tj ET\n" % (500 - 24 * place, column.encode("utf-16-be").hex().encode())
        for place, column in list(enumerate(columns))[::order]
    )
    document = document_of("a.pdf", pdf_of_contents([content], font))
    assert document.text == "".join(columns)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.html", "<title>Untitled Document</title><h1>Locks</h1><p>Text."),
        ("a.html", '<title>Document</title><meta name="citation_title" content="Locks"><p>Text.'),
        ("a.html", "<title>Get a Document - by Citation</title><h1>Locks</h1><p>Text."),
        ("a.md", "---\ntitle: Untitled\n---\n# Locks\n\nText."),
        ("a.tex", latex("t", r"\title{Untitled}\title{Locks}")),
    ],
)
def test_a_title_that_a_program_made_up_is_not_taken(name: str, source: str) -> None:
    document = document_of(name, source)
    assert document.title == "Locks"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("iso8859-15", "L'écluse supérieure était fermée; l'œuvre coûte 5 €. "),
        ("iso8859-2", "A víz emelkedett, az őr bezárta a felső zsilipet, és feljegyezte a szintet. "),
    ],
)
def test_letters_that_only_some_languages_have_tell_the_encoding(encoding: str, text: str) -> None:
    document = document_of("a.txt", (text * 3).encode(encoding))
    assert document.text == text * 3


_ANNOTATED = '<math><semantics><annotation encoding="application/x-tex">\\frac{a}{b}</annotation></semantics></math>'
_AMENDED = (
    '<claims lang="en"><claim num="1"><claim-text>A pump.</claim-text></claim></claims>{}<claim num="1"><claim-text>'
    "A pump with seals.</claim-text></claim></{}>"
)
_FLAT = (
    '<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:t="t" xmlns:dc="dc">'
    "<office:meta><dc:title>Locks</dc:title></office:meta><t:style t:name='R'><t:text-properties t:text-position="
    "'super 58%'/></t:style><t:header><t:p>head</t:p></t:header><office:body><office:text><t:h>One</t:h><t:p>silt"
    "<t:span t:style-name='R'>12</t:span> rose.<t:image><t:binary-data>aGVsbG8gd29y</t:binary-data></t:image></t:p>"
    "</office:text></office:body></office:document>"
)
_CHOICE_OF_BLOCKS = (
    '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><mc:Choice><w:p>'
    f"{word_run('Oak')}</w:p></mc:Choice><mc:Fallback><w:p>{word_run('old')}</w:p></mc:Fallback></mc:AlternateContent>"
)


def patent(body: str, root: str = "ep-patent-document") -> str:
    return f'<{root} lang="en">{body}</{root}>'


def signs_of(*signs: tuple[str, str]) -> bytes:
    runs = "".join(f"<w:r><w:sym w:font='{font}' w:char='{code}'/></w:r>" for font, code in signs)
    return word_of(f"<w:p>{runs}{word_run(' end')}</w:p>")


@pytest.mark.parametrize(
    ("name", "data", "text", "left_out"),
    [
        *((name, data, "rate a/b of", {}) for name, data in (
            ("a.html", html(f"<p>rate {_ANNOTATED} of</p>")),
            ("a.html", html("<p>rate <math alttext='\\frac{a}{b}'></math> of</p>")),
            ("a.html", html("<p>rate <math><annotation encoding='StarMath 5.0'>a/b</annotation></math> of</p>")),
            ("a.xml", jats("", f"<p>rate <inline-formula>{_ANNOTATED}</inline-formula> of</p>")),
            ("a.tei", tei(f"<p>rate <formula>{_ANNOTATED}</formula> of</p>")),
        )),
        ("a.xml", patent(_AMENDED.format("<amended-claims>", "amended-claims")
                         + "<amended-claims-statement>Under article 19.</amended-claims-statement>"),
         "Claims 1. A pump. Amended claims 1. A pump with seals. Under article 19.", {}),
        ("a.xml", patent(_AMENDED.format('<claims claim-type="amended">', "claims"), "wo-patent-document"),
         "Claims 1. A pump. Amended claims 1. A pump with seals.", {}),
        *(("a.xml", patent(f"<abstract><p>The {gone} gate<footnote><p>A note.</p></footnote> shuts.</p></abstract>"),
           "Abstract The gate shuts. A note.", {kind: 1}) for gone, kind in (
            ("<del>old</del>", "deleted_words"), ("<strike>old</strike>", "deleted_words"),
            ("<ruby><rt>old</rt></ruby>", "reading_words"))),
        ("a.xml", "<law><p>The toll is <strike>ten</strike> twenty pence now.</p></law>",
         "The toll is twenty pence now.", {"deleted_words": 1}),
        ("a.fodt", _FLAT, "One silt^12 rose.", {"figures": 1, "running_heads": 1}),
        ("a.docx", signs_of(("Wingdings", "F0FC"), ("Symbol", "F022"), ("Symbol", "00B0"), ("Wingdings", "F0FF"),
                            ("Webdings", "F061")), "✓∀° end", {"unreadable_characters": 2}),
        ("a.docx", word_of("<w:p>" + word_run("\uf061", "<w:rFonts w:hAnsi='Symbol'/>") + "</w:p>"), "α", {}),
        ("a.odt", odt("<text:p>rate <text:span text:style-name='T1'>\uf061</text:span></text:p>",
                      odt_style('style:font-name="Symbol"')), "rate α", {}),
        *(("a.html", html(f"<style>.s{{font-family:Symbol}}</style><p>rate <{font}</p>"), "rate α^2", {}) for font in (
            "font face='Symbol'>a</font><span class='superscript'>2</span>",
            "span class='s'>a</span><span class='superscript'>2</span>")),
        ("a.html", html("<p>a <font face='Wingdings'>&uuml;</font> tick</p>"), "a ✓ tick", {}),
        *(("a.epub", zip_bytes(members_of(epub_bytes({"a.xhtml": "<p>Oak</p>", "b.xhtml": ""})) | {"OEBPS/b.xhtml":
            data}), "Oak", {"damaged_parts": 1}) for data in (
            b"\xff\xd8\xff\xe0\0\x10JFIF<p>" + bytes(range(256)) * 9, bytes(range(255, 31, -1)) * 9 + b"<")),
        ("a.html", html("<div class='initial'>H</div><p>arbours were built</p>"), "Harbours were built", {}),
        ("a.docx", word_of(f"{_CHOICE_OF_BLOCKS}<w:del><w:p>{word_run('gone')}</w:p></w:del>"), "Oak",
         {"deleted_words": 1}),
        ("a.docx", word_of(f"<w:p>{word_run('Oak')}</w:p><w:altChunk/><w:subDoc/>"), "Oak",
         {"damaged_parts": 1, "missing_files": 1}),
        ("a.docx", word_of(f"<w:p>{word_run('noon ' + _BASE64)}</w:p>"), "noon", {"encoded_characters": 2_760}),
    ],
)  # fmt: skip
def test_the_text_of_a_kind_and_what_is_left_out(
    name: str, data: str | bytes, text: str, left_out: dict[str, int]
) -> None:
    document = document_of(name, data)
    assert " ".join(document.text.split()) == text
    assert document.left_out == left_out


_PROSE = f"<p>{'The court weighs the lease of the quay. ' * 9}</p>"
_LONG = f"<w:p>{word_run('The court weighs the lease. ' * 9)}</w:p>"
_CENTRED = (
    '<style:style style:name="C"><style:paragraph-properties style:text-align="center"/><style:text-properties '
    'style:font-weight="bold"/></style:style>'
)


@pytest.mark.parametrize(
    ("name", "data", "heading"),
    [
        *(("a.html", html(f"<style>.x{{text-align:center}}</style>{_PROSE}{line}{_PROSE}"), heading)
          for line, heading in (
            ("<center><b>Background</b></center>", "Background"),
            ("<p align=center><b>Background</b></p>", "Background"),
            ("<p style='text-align: center'><strong>Background</strong></p>", "Background"),
            ("<p style='text-align:center;font-weight:bold'>Background</p>", "Background"),
            ("<p class='x'><b>Background</b></p>", "Background"),
            ("<center>I. BACKGROUND</center>", "I. BACKGROUND"),
            ("<center><b>HARBOUR v. LIME</b></center><center><b>OPINION</b></center>", "OPINION"),
            ("<center>HARBOUR TRUST,</center><center>v.</center><center>LIME</center>", ""),
            ("<center><b>* * *</b></center>", ""),
            ("<center>decided in May</center>", ""),
            ("<table><tr><td><center><b>Rate</b></center></td></tr></table>", ""),
        )),
        ("a.epub", epub_bytes({"a.xhtml": f"{_PROSE}<p align='center'><b>Background</b></p>{_PROSE}"}), "Background"),
        ("a.jsonl", json.dumps({"id": 1, "html": f"{_PROSE}<center><b>Background</b></center>{_PROSE}"}), "Background"),
        *(("a.docx", word_of(f"{_LONG}<w:p><w:pPr>{place}</w:pPr>{word_run('Background', bold)}</w:p>{_LONG}",
                             "<w:style w:styleId='C'><w:pPr><w:jc w:val='center'/></w:pPr><w:rPr><w:b/></w:rPr>"
                             "</w:style>"), heading) for place, bold, heading in (
            ("<w:jc w:val='center'/>", "<w:b/>", "Background"), ("<w:pStyle w:val='C'/>", "", "Background"),
            ("", "<w:b/>", ""))),
        ("a.odt", odt(f"<text:p>{'The court weighs. ' * 12}</text:p><text:p text:style-name='C'>Aim</text:p><text:p>"
                      f"{'The court weighs. ' * 12}</text:p>", _CENTRED), "Aim"),
    ],
)  # fmt: skip
def test_bold_or_numbered_lines_in_the_middle_are_headings(name: str, data: str | bytes, heading: str) -> None:
    document = document_of(name, data)
    assert [section.heading for section in document.sections] == ["", heading][: 1 + bool(heading)]


def test_nested_objects_of_records_are_fields_within_bounds() -> None:
    kept = {"venue": {"name": "ACL", "place": {"city": "Goole"}}, "journal": {"volume": 3, "tags": ["a"]}}
    unread = {"vectors": {"a": [0.5]}, "many": {f"k{at}": at for at in range(101)}, "long": {"note": "word " * 300}}
    document = document_of("a.jsonl", json.dumps({"id": "1", "text": "Eels."} | kept | unread))
    assert document.metadata == {
        "venue.name": "ACL", "venue.place.city": "Goole", "journal.volume": 3, "journal.tags": ["a"],
        "left_out_field_words": 300,
    }  # fmt: skip


_THREE = ["Ann Vane", "Rin Okabe", "Ines Alvor"]
_COLLAB = (
    "<collab>Weir Group<contrib-group><contrib><name><surname>Lime</surname></name></contrib></contrib-group></collab>"
)


@pytest.mark.parametrize(
    ("name", "data", "authors"),
    [
        *(("a.tex", latex("Text.", rf"\author{{{spelling}}}"), _THREE) for spelling in (
            r"Ann Vane, Rin Okabe, and Ines Alvor",
            r"Ann Vane\inst{1} \and Rin Okabe\inst{2} \and Ines Alvor\inst{1}",
            r"\IEEEauthorblockN{Ann Vane, Rin Okabe, Ines Alvor}\IEEEauthorblockA{Weir Lab}",
            r"\IEEEauthorblockN{Ann Vane}\IEEEauthorblockA{Lab\\Hull} \IEEEauthorblockN{Rin Okabe, Ines Alvor}"
            r"\IEEEauthorblockA{Weir Lab\\ Email: a@b.c}",
            r"Ann Vane$^{1,*}$, Rin Okabe$^{2}$, Ines Alvor$^{\dagger}$ \\ $^1$Weir Lab",
            r"1\textsuperscript{st} Ann Vane \and 2\textsuperscript{nd} Rin Okabe \and Ines Alvor",
            r"Ann Vane & Rin Okabe & Ines Alvor \\ Weir & Quay & Lab",
            r"Ann Vane\affmark[1] \and Rin Okabe\affil{2}, Ines Alvor\affil{1}",
            r"ANN VANE\affmark{1}, RIN OKABE AND INES ALVOR".title().replace("And", "AND"),
            r"Ann Vane\affiliationmark{1}, Rin Okabe\affiliationmark{2}, Ines Alvor\authormark{1}",
            r"\textbf{Ann Vane} \quad \textbf{Rin Okabe} \quad \textbf{Ines Alvor}\\ Weir Lab",
        )),
        ("a.tex", latex("Text.", r"\Author[1][a@b.c]{Ann}{Vane}\Author[2]{Rin}{Okabe}"), _THREE[:2]),
        ("a.txt", "Title: Locks\nAuthor: Ann Vane <a@b.c>, Rin Okabe\n\nText of it.\n", _THREE[:2]),
        ("a.tex", latex("Text.", r"\author[a]{Ann Vane\corref{cor1}}\author[b]{Rin Okabe\fnref{f}}"), _THREE[:2]),
        ("a.html", '<head><meta name="author" content="Ann Vane, Rin Okabe and Ines Alvor"></head><p>x</p>', _THREE),
        ("a.rst", "W\n=\n\n:Author: Ann Vane\n:Author: Rin Okabe\n\nText of it.\n", _THREE[:2]),
        ("a.rst", "W\n=\n\n.. sectionauthor:: Ann Vane <a@b.c>\n\nText of it.\n", _THREE[:1]),
        ("a.tex", latex("Text.", r"\author*[1]{\fnm{Ann} \sur{Vane}}\author[2]{\fnm{Rin} \sur{Okabe}}"), _THREE[:2]),
        ("a.tex", latex("Text.", r"\author{Ann Vane}\collaboration{Weir Consortium}"), ["Ann Vane", "Weir Consortium"]),
        ("a.tei", "<TEI><teiHeader><fileDesc><titleStmt><title>W</title><author>Ann Vane and Rin Okabe</author>"
                  "</titleStmt></fileDesc></teiHeader><text><body><p>x</p></body></text></TEI>", _THREE[:2]),
        *(("a.tei", f"<TEI><teiHeader><titleStmt><title>W</title><author>{author}</author></titleStmt></teiHeader>"
                    "<text><body><p>x</p></body></text></TEI>", ["Vane, Ann"]) for author in (
            "Vane, Ann, 1870-1940", "Vane, Ann, 1870–.", "Vane, Ann (1870-1940)", "Vane, Ann, b. 1870")),
        ("a.md", '---\nauthor: "Vane, Ann; Okabe, Rin"\n---\n\nText of it.\n', ["Vane, Ann", "Okabe, Rin"]),
        ("a.md", "---\nauthor:\n- family: Vane\n  given: Ann\n---\n\nText of it.\n", ["Ann Vane"]),
        ("a.xml", jats("<contrib-group><contrib><name-alternatives><name><surname>Vane</surname><given-names>Ann"
                       "</given-names></name></name-alternatives></contrib></contrib-group>", "<p>b"
                       "</p>"), ["Ann Vane"]),
        ("a.md", "---\nauthor:\n- name: Ann Vane\n- Rin Okabe\n---\nText.", ["Ann Vane", "Rin Okabe"]),
        ("a.md", "---\nAuthors:\n- name: {given: Ann, family: Vane}\n---\nText.", ["Ann Vane"]),
        ("a.json", '{"text": "t", "authors": [{"first": "Ann", "middle": ["B."], "last": "Vane"}]}', ["Ann B. Vane"]),
        ("a.json", '{"text": "t", "authors": "Ann Vane, Rin Okabe"}', ["Ann Vane", "Rin Okabe"]),
        *(("a.json", json.dumps({"text": "t", name: ["Ann Vane", "Rin Okabe"]}), _THREE[:2]) for name in (
            "author", "creators", "author_names", "authorList", "contributors")),
        *(("a.json", json.dumps({"text": "t", "authors": [{name: "Ann Vane"}]}), _THREE[:1]) for name in (
            "creator", "preferred_name", "fullName", "display_name")),
        ("a.rst", "t\n=\n\n:Authors: - Ann Vane\n          - Rin Okabe\n\nText.\n", ["Ann Vane", "Rin Okabe"]),
        ("a.tex", latex(r"t", r"\author{\name Ann Vane \email a@b.c \AND \name Rin Okabe}"),
         ["Ann Vane", "Rin Okabe"]),
        ("a.tex", latex(r"t", r"\icmlauthor{Ann Vane}{lab}\icmlauthor{Rin Okabe}{lab}"),
         ["Ann Vane", "Rin Okabe"]),
        ("a.xml", "<rfc><front><title>T</title><author><organization>Weir Group</organization></author></front>"
                  "<middle><t>Words of it here.</t></middle></rfc>", ["Weir Group"]),
        ("a.xml", "<PubmedArticle><Article><ArticleTitle>Eels</ArticleTitle><AbstractText>Eels hide in mud."
                  "</AbstractText><Author><LastName>Vane</LastName><ForeName>Ann</ForeName></Author></Article>"
                  "</PubmedArticle>", ["Ann Vane"]),
        ("a.jsonl", '{"id": 1, "text": "x", "authorships": [{"author": {"display_name": "Ann Vane"}}]}', ["Ann Vane"]),
        ("a.html", html('<script type="application/ld+json">{"author": [{"name": "Ann Vane"}]}</script><p>x</p>'),
         ["Ann Vane"]),
        ("a.html", '<head><meta property="article:author" content="Ann Vane"></head><p>x</p>', ["Ann Vane"]),
        *(("a.xml", jats(f"<contrib-group>{people}</contrib-group>", "<p>x</p>"), authors) for people, authors in (
            ("<contrib><string-name>Ann <surname>Vane</surname></string-name></contrib>", ["Ann Vane"]),
            (f"<contrib>{_COLLAB}</contrib>", ["Weir Group"]),
            ("<contrib-group><contrib><name><surname>Vane</surname></name></contrib></contrib-group>", ["Vane"]),
            ("<contrib><name-alternatives><name name-style='eastern'><surname>岡部</surname></name><name name-style="
             "'western'><surname>Okabe</surname></name></name-alternatives></contrib>", ["Okabe"]),
        )),
        ("a.xml", "<TEI><teiHeader><titleStmt><title>T</title><author><persName>Rin <surname>Okabe</surname></persName>"
                  "</author><author><persName><roleName>Dr</roleName><forename>Ines</forename><nameLink>von</nameLink>"
                  "<surname>Alvor</surname></persName></author></titleStmt></teiHeader><text><body><p>x</p></body>"
                  "</text></TEI>", ["Rin Okabe", "Ines von Alvor"]),
        ("a.xml", "<book><book-meta><contrib-group><contrib><name><surname>Vane</surname><given-names>Ann</given-names>"
                  "</name></contrib></contrib-group></book-meta><book-body><p>Eels hide.</p></book-body></book>",
         ["Ann Vane"]),
        ("a.xml", "<rfc><front><title>T</title><author initials='A.' surname='Vane'/></front><middle><t>Words of it."
                  "</t></middle></rfc>", ["A. Vane"]),
    ],
)  # fmt: skip
def test_authors_in_all_spellings(name: str, data: str, authors: list[str]) -> None:
    assert documents_of(name, data)[0].metadata["authors"] == authors


_HEX = "89504e470d0a1a0a00" * 12
_TREES = "oak elm ash fir yew".split()
_BODIES = [f"The {tree} stood at the gate of the weir\nand its shade fell on the {tree}.\n" * 4 for tree in _TREES]
_SVG = "data:image/svg+xml;utf8," + "%3Csvg%20width%3D%221%22/%3E" * 6
_UU = "begin 644 a.png\n" + "M1F5T8V@@=&AI<R!P:6-T=7)E(&9R;VT@=&AE(&QO8VL@86YD(&=A=&4N\n" * 4 + "`\nend"


@pytest.mark.parametrize(
    ("name", "source", "text"),
    [
        # words that are cut
        ("a.md", "**H**arbours, un*believ*able a * b", "Harbours, unbelievable a * b"),
        ("a.md", "The caf&eacute; &amp; jud&shy;gment `&eacute;`", "The café & judgment `&eacute;`"),
        *((name, "A B S T R A C T\n\nA B C D E F\n", "ABSTRACT A B C D E F") for name in ("a.md", "a.txt", "a.rst")),
        *((name, "The X-\nray of the judg- \nment, jud\u00adgment", "The X-ray of the judgment, judgment")
          for name in ("a.md", "a.txt", "a.rst")),
        *((name, "The gate\u00ad\nhouse of the gate and house", "The gatehouse of the gate and house")
          for name in ("a.md", "a.txt", "a.rst", "a.html")),
        *((name, "แม่น้ำเก่าแก่มากและน้ำลึก\nเก่า", "แม่น้ำเก่าแก่มากและน้ำลึกเก่า") for name in ("a.md", "a.txt", "a.rst", "a.tex")),
        ("a.txt", "N\bNA\bA _\bg_\ba \x1b[1mold\x1b[0m", "NA ga old"),
        # words that are glued
        ("a.tex", r"Oak\marginpar[l]{Elm} fir\sidenote{Ash} yew\marginnote{Box}[2cm]", "Oak (Elm) fir (Ash) yew (Box)"),
        ("a.tex", r"one\hfill two\enspace three in\slash out self\babelhyphen{hard}made silt\up{12}",
         "one two three in/out self-made silt^12"),
        # readings
        ("a.txt", "｜水門《すいもん》は古い", "水門は古い"),
        ("a.md", "[水門]{すいもん}は水門《すいもん》", "水門は水門"),
        ("a.rst", ":ruby:`水門|すいもん`\\ は古い", "水門は古い"), ("a.tex", r"\ltjruby{水|門}{すい|もん}は", "水門は"),
        # revisions and hidden parts
        ("a.tex", r"\replace{Oak}{Elm} \change[v]{fir}{ash} \strikeout{yew} \annote[v]{box}{why}", "Elm ash box"),
        ("a.tex", r"\excludeversion{sol}Oak \begin{sol}hid\end{sol}elm \includecomment{x}", "Oak elm"),
        ("a.md", "Oak <div hidden><div>in</div>hid</div>elm", "Oak elm"),
        # names of theorems, formulas
        ("a.tex", r"\newtcbtheorem{s}{Satz}{colback=red}{t}\begin{s}{Silt}{l}Oak\end{s}", "Satz (Silt). Oak"),
        ("a.tex", r"\newmdtheoremenv{s}{Satz}\begin{s}[Silt]Oak\end{s}", "Satz (Silt). Oak"),
        ("a.rst", "Q is :math:`\\frac{a}{2}` and\n\n.. math::\n\n   \\sqrt{x}\n", "Q is a/2 and √(x)"),
        # bytes as text
        *((name, f"Oak\n\n{code}\n\nelm", "Oak elm") for name in ("a.md", "a.txt", "a.rst") for code in (_HEX, _SVG)),
        ("a.txt", f"Oak\n\n{_UU}\nelm", "Oak elm"),
        # marks of pages
        *((name, "The lock [Pg 4] held {5} and the judg[Pg 5]ment", "The lock held {5} and the judgment")
          for name in ("a.md", "a.txt")),
        *(("a.txt", "".join(f"{body}{mark % n}" for n, body in enumerate(_BODIES)), " ".join("".join(_BODIES).split()))
          for mark in ("\n- %d -\n\n", "--- Page %d ---\n", "\nVane      [Page %d]\n\nRFC 99     Telemetry\n\n")),
        ("a.txt", "\f".join(f"{body}\n1. Ibid.\n2. Id. at 7.\n" for body in _BODIES),
         " ".join(" ".join([*body.split(), "1. Ibid. 2. Id. at 7."]) for body in _BODIES)),
    ],
)  # fmt: skip
def test_a_kind_of_fault_is_mended_in_every_format_of_pages(name: str, source: str, text: str) -> None:
    document = document_of(name, source)
    assert (" ".join(document.text.split()), document.left_out.get("unexplained_words")) == (text, None)


_PARTIES = (
    "COURT OF APPEALS OF GOOLE",
    "ANN VANE,",
    "Plaintiff,",
    "v.",
    "LIME QUARRIES, INC.,",
    "Defendant.",
    "No. 20-15",
)
_AS_CELLS = "</w:p></w:tc><w:tc><w:p>".join(word_run(part) for part in (" ".join(_PARTIES[1:6]), _PARTIES[6]))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", word_of("".join(f"<w:p>{word_run(part)}</w:p>" for part in _PARTIES) + _LONG)),
        ("a.docx", word_of(f"<w:p>{word_run(_PARTIES[0])}</w:p><w:tbl><w:tr><w:tc><w:p>{_AS_CELLS}</w:p></w:tc></w:tr>"
                           f"</w:tbl>{_LONG}")),
        ("a.odt", odt("".join(f"<text:p>{part}</text:p>" for part in _PARTIES))),
        ("a.html", "<html><body>" + "".join(f"<p>{part}</p>" for part in _PARTIES)),
        ("a.tex", latex("\n\n".join(_PARTIES))),
        ("a.txt", "\n".join([*_PARTIES[:2], "Warden,", *_PARTIES[2:]])),
    ],
)  # fmt: skip
def test_a_court_paper_without_a_title_is_titled_by_its_parties(name: str, data: str | bytes) -> None:
    document = document_of(name, data)
    title = document.title.replace("Warden, ", "").replace(", Warden", "")
    assert (title, document.metadata["docket"]) == ("ANN VANE v. LIME QUARRIES, INC.", "20-15")
    assert ("Warden" in document.title) == ("Warden" in document.text)


@pytest.mark.parametrize(
    ("line", "title", "headings"),
    [("REPORT ON LOCKS", "REPORT ON LOCKS", ["", "COUNT I"]), ("DISTRICT OF GOOLE", "a", ["", "COUNT I"])],
)
def test_a_first_line_in_the_middle_is_the_title(line: str, title: str, headings: list[str]) -> None:
    middle = "<w:p><w:pPr><w:jc w:val='center'/></w:pPr>{}</w:p>"
    lines = [middle.format(word_run(text, "<w:b/>")) for text in (line, "COUNT I", "(Negligence)")]
    document = document_of(
        "a.docx", word_of(lines[0] + f"<w:p>{word_run('by Ann Vane')}</w:p>" + "".join(lines[1:]) + _LONG)
    )
    assert (document.title, [section.heading for section in document.sections][-1:]) == (title, headings[1:])


_LATEXML = (
    '<h2>1 Gates<span class="ltx_note ltx_role_footnote"><sup class="ltx_note_mark">1</sup><span class='
    '"ltx_note_outer"><span class="ltx_note_content"><span class="ltx_tag ltx_tag_note">1</span>A note.</span></span>'
    "</span></h2>"
)


@pytest.mark.parametrize(
    ("name", "data", "heading"),
    [
        ("a.html", html("<h2>Gates <a href='#n'><sup>1</sup></a></h2><p id='n'>A note.</p>"), "Gates"),
        ("a.html", html("<h1>Gates<a href='#_ftn1'><span>[1]</span></a></h1><p>[1] A note.</p>"), "Gates"),
        ("a.html", html(_LATEXML), "1 Gates"),
        ("a.md", "# Gates [^1]\n\n[^1]: A note.\n", "Gates"),
        ("a.tex", latex(r"\section{Gates\footnote{A note.}} They fall."), "Gates"),
    ],
)
def test_a_note_is_no_part_of_a_heading(name: str, data: str, heading: str) -> None:
    document = document_of(name, data)
    assert ([section.heading for section in document.sections], document.text.count("A note.")) == ([heading], 1)


def test_words_around_the_pages_of_hocr_are_read() -> None:
    pages = "".join(f"<div class='ocr_page'><p class='ocr_par'>Page {number}.</p></div>" for number in (1, 2))
    document = document_of("a.html", html(f"<p>Before.</p>{pages}<p>After.</p>"))
    assert document.text == "Before.\n\nPage 1.\n\nPage 2.\n\nAfter."
    assert [document.text[start:][:7] for start in document.pages] == ["Page 1.", "Page 2."]
