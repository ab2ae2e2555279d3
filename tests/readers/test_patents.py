"""American and European patents in XML: metadata, abstract, description and claims."""

import pytest

from engine.readers.reader import read_bytes
from engine.readers.xml import read
from engine.text.document import Document
from engine.text.segmentation import Span

BODY = "A sentence of the body that is long enough. " * 6
_CPC = "<section>F</section><class>04</class><subclass>B</subclass><main-group>17</main-group><subgroup>03</subgroup>"
_INVENTOR = "<addressbook><last-name>Lee</last-name><first-name>Ann</first-name></addressbook>"
_NUMBER = (
    "<publication-reference><document-id><country>US</country><doc-number>08967123</doc-number>"
    "<kind>B2</kind><date>20150303</date></document-id></publication-reference>"
)
_CLAIMED = """<application-reference appl-type="utility"><document-id><country>US</country>
<doc-number>12750336</doc-number><date>20100330</date></document-id></application-reference><priority-claims>
<priority-claim sequence="01" kind="regional"><country>EP</country>
<doc-number>08166352.8</doc-number><date>20081010</date></priority-claim>
</priority-claims>
<us-related-documents><continuation-in-part><relation><parent-doc><document-id><country>US</country>
<doc-number>12576371</doc-number><date>20091009</date></document-id></parent-doc><child-doc><document-id>
<doc-number>12750336</doc-number></document-id></child-doc></relation></continuation-in-part><related-publication>
<document-id><doc-number>20110067363</doc-number><date>20000324</date></document-id></related-publication>
</us-related-documents>"""
_TEXT = f"""<abstract id="abstract"><p>A pump. {BODY}</p></abstract>
<drawings><figure><img file="a.tif"/></figure></drawings>
<description><?BRFSUM description="Brief Summary" end="lead"?><heading id="h-1" level="1">BACKGROUND</heading>
<p>Water H<sub>2</sub>O, see <figref>FIG. <b>1</b></figref>. {BODY}</p>
<heading level="2">Prior art</heading><p>{BODY}</p>
<tables><table><tgroup><tbody><row><entry>a</entry><entry>b</entry></row></tbody></tgroup></table></tables></description>"""
_CLAIMS = """<claims><claim num="1"><claim-text>1. A pump, comprising:
<claim-text>a rotor; and</claim-text><claim-text>a seal.</claim-text></claim-text></claim>
<claim num="2"><claim-text>2. The pump of <claim-ref>claim 1</claim-ref>.</claim-text></claim></claims>"""


def us_patent(kind: str, people: str) -> Document:
    data = f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE us-patent-{kind} SYSTEM "us-patent-{kind}-v45.dtd" [ ]><us-patent-{kind} lang="EN">
<us-bibliographic-data-{kind}>{_NUMBER}<invention-title>Rotor pump</invention-title>
{_CLAIMED}<classifications-ipcr><classification-ipcr>{_CPC}</classification-ipcr></classifications-ipcr>
<classifications-cpc><main-cpc><classification-cpc>{_CPC}</classification-cpc></main-cpc></classifications-cpc>{people}
<assignees><assignee><addressbook><orgname>Acme, Inc.</orgname></addressbook></assignee></assignees>
</us-bibliographic-data-{kind}>{_TEXT}<us-claim-statement>What is claimed is:</us-claim-statement>{_CLAIMS}
</us-patent-{kind}>"""
    return read(data.encode(), "a", "a.xml")


@pytest.mark.parametrize("kind", ["grant", "application"])
@pytest.mark.parametrize(
    "people",
    [
        f"<us-parties><inventors><inventor>{_INVENTOR}</inventor></inventors></us-parties>",
        f"<parties><applicants><applicant app-type='applicant-inventor'>{_INVENTOR}</applicant></applicants></parties>",
    ],
)
def test_a_us_patent_has_metadata(kind: str, people: str) -> None:
    document = us_patent(kind, people)
    assert document.title == "Rotor pump"
    assert document.metadata == {
        "number": "US08967123B2", "date": "2015-03-03", "year": 2015, "filed": "2010-03-30",
        "priority": ["EP08166352.8", "US12576371"], "priority_date": "2008-10-10", "inventors": ["Ann Lee"],
        "assignees": ["Acme, Inc."], "ipc": ["F04B 17/03"], "cpc": ["F04B 17/03"], "left_out_figures": 1,
        "left_out_front_matter_words": 6,
    }  # fmt: skip


def test_a_us_patent_has_abstract_description_and_claims() -> None:
    document = us_patent("grant", "")
    assert document.text.startswith("Rotor pump\n\nAbstract\n\nA pump. A sentence")
    assert "Description\n\nBACKGROUND\n\nWater H2O, see FIG. 1. A sentence" in document.text
    assert document.text.endswith(
        "a | b\n\nClaims\n\n1. A pump, comprising:\n\na rotor; and\n\na seal.\n\n2. The pump of claim 1."
    )
    assert [section.path for section in document.sections] == [
        ("Abstract",), ("Description", "BACKGROUND"), ("Description", "BACKGROUND", "Prior art"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("root", "pins"),
    [("us-patent-application", ["[0041]"]), ("us-patent-grant", []), ("wo-patent-document", ["[0041]"])],
    ids=["application", "printed with columns and lines", "wo"],
)
def test_the_number_of_a_paragraph_is_its_pin_where_it_is_printed(root: str, pins: list[str]) -> None:
    text = f'<description><p num="0041">The drain is shut. {BODY}</p><p>{BODY}</p></description>{_CLAIMS}'
    document = read(f"<{root}>{text}</{root}>".encode(), "a", "a.xml")
    start = document.text.index("The drain")
    assert [name for _, name in document.pins if name] == pins
    assert document.pin(Span(start, start + 5)) == "".join(pins)
    assert document.pin(Span(document.text.index("Claims"), len(document.text))) == ""


@pytest.mark.parametrize("numbers", [("num='1'", "num='2'"), ("num='0001'", "num='0002'"), ("num='xx'",) * 2, ("", "")])
def test_claims_are_numbered_where_an_attribute_or_their_order_alone_does(numbers: tuple[str, str]) -> None:
    claims = "".join(f"<claim {number}><claim-text>A pump.</claim-text></claim>" for number in numbers)
    document = read(f"<patent-document><claims>{claims}</claims></patent-document>".encode(), "a", "a.xml")
    assert document.text.split("\n\n")[-2:] == ["1. A pump.", "2. A pump."]


def test_a_european_patent_is_read_in_its_language() -> None:
    claims = "".join(
        f'<claims lang="{language}"><claim><claim-text>{language} {BODY}</claim-text></claim></claims>'
        for language in ("de", "en", "fr")
    )
    data = f"""<ep-patent-document lang="en" country="EP" doc-number="2123456" kind="B1" date-publ="20150107">
<SDOBI lang="en">
<B200><B220><date>20080628</date></B220></B200><B300><B310>07275</B310><B320><date>20070707</date></B320>
<B330><ctry>DE</ctry></B330><B310>08331</B310><B320><date>20080102</date></B320><B330><ctry>FR</ctry></B330></B300>
<B500><B510EP><classification-ipcr sequence="1"><text>F04B  17/03        20060101AFI20140512BHEP        </text>
</classification-ipcr></B510EP><B540><B541>de</B541><B542>PUMPE</B542><B541>en</B541><B542>PUMP</B542></B540></B500>
<B700><B720><B721><snm>LEE, Ann</snm><adr><city>Bern</city></adr></B721></B720>
<B730><B731><snm>Acme AG</snm><iid>1</iid></B731></B730></B700></SDOBI>
<description lang="en"><heading>Field</heading><p>{BODY}</p></description>{claims}</ep-patent-document>"""
    document = read(data.encode(), "a", "a.xml")
    assert document.title == "PUMP"
    assert document.metadata == {
        "number": "EP2123456B1", "date": "2015-01-07", "year": 2015, "filed": "2008-06-28",
        "priority": ["DE07275", "FR08331"], "priority_date": "2007-07-07", "inventors": ["LEE, Ann"],
        "assignees": ["Acme AG"], "ipc": ["F04B 17/03"], "left_out_front_matter_words": 6,
        "left_out_translation_words": 110,
    }  # fmt: skip
    assert [section.path for section in document.sections] == [("Description", "Field"), ("Claims",)]
    assert "en A sentence" in document.text and "de A sentence" not in document.text


def test_a_patent_of_docdb_has_a_family_and_each_priority_once() -> None:
    claims = "".join(
        f'<priority-claim sequence="1" data-format="{spelling}"><document-id>{number}<date>{date}</date></document-id>'
        "</priority-claim>"
        for spelling, number, date in [
            ("docdb", "<country>DE</country><doc-number>2730644</doc-number>", "19770707"),
            ("epodoc", "<doc-number>DE19772730644</doc-number>", "19770707"),
        ]
    )
    data = f"""<exchange-document xmlns="http://www.epo.org/exchange" family-id="6013297" country="EP" doc-number="346"
    kind="B1"><bibliographic-data><priority-claims>{claims}</priority-claims></bibliographic-data>
    <abstract><p>{BODY}</p></abstract></exchange-document>"""
    assert read(data.encode(), "a", "a.xml").metadata == {
        "number": "EP346B1", "priority": ["DE2730644"], "priority_date": "1977-07-07", "family": "6013297",
        "left_out_front_matter_words": 2,
    }  # fmt: skip


def test_a_patent_of_lines_has_the_priorities_of_its_groups() -> None:
    data = f"""PATN
WKU  043479036
APN  1925296
APD  19800310
TTL  Rotor pump
ISD  19820907
RLAP
COD  72
APN  351745
APD  19790416
PRIR
CNT  JPX
APD  19780710
APN  53/84696
ABST
PAL  {BODY}
"""
    document = next(iter(read_bytes(data.encode(), "a.txt")))
    assert isinstance(document, Document)
    names = ("number", "date", "filed", "priority", "priority_date")
    assert [document.metadata[name] for name in names] == [
        "US4347903", "1982-09-07", "1980-03-10", ["JP53/84696", "US351745"], "1978-07-10",
    ]  # fmt: skip
