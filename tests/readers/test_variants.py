"""Variants of constructs, as the files of each format have them: the whole text on one line, and fields."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from engine.readers import Unreadable, read_bytes
from tests.cases import cases
from tests.readers.made import document_of, documents_of, pdf_bytes
from tests.readers.test_docx_parts import numbered, word_of
from tests.readers.test_kinds import html, jats, latex, odt, prose, tei, word_run
from tests.readers.zipped import epub_bytes

_PROSE = "The silt fills the locks, and the otters leave. " * 9
_AUTHORS = {"authors": ["Ann Vane", "Rin Okabe"]}


@pytest.mark.parametrize(
    ("record", "text", "fields"),
    [
        ({"plain_text": "", "html_lawbox": "<p>Held.</p>", "html_anon_2020": "<p>Held.</p>"}, "Held.", {}),
        ({"case_name": "A", "xml_harvard": "<opinion><p>Held.</p></opinion>"}, "A Held.", {}),
        ({"caseName": "A", "opinions": [{"type": "lead", "plain_text": "Held.", "html": "<p>Held.</p>"}]},
         "A lead Held.", {}),
        ({"abstract": "An aim.", "pdf_parse": {"abstract": [{"text": "An aim."}], "body_text": [
            {"text": "One.", "section": "Intro"}, {"text": "Two.", "section": "Intro"}], "back_matter": [
            {"text": "Thanks.", "section": "Ack"}]}}, "Abstract An aim. Intro One. Two. Ack Thanks.", {}),
        ({"metadata": {"title": "T", "authors": [{"first": "Ann", "middle": ["B"], "last": "Vane"}]},
          "grobid_parse": {"body_text": [{"text": "One.", "section": "Intro"}]}}, "T Intro One.",
         {"authors": ["Ann B Vane"]}),
        ({"title": "T", "latex_parse": {"body_text": [{"text": "One."}]}}, "T One.", {}),
        ({"abstract": "An aim.", "authors_parsed": [["Vane", "Ann", ""], ["Okabe", "Rin", ""]]}, "Abstract An aim.",
         _AUTHORS),
        ({"text": None, "abstract": "An aim."}, "Abstract An aim.", {}),
        ({"text": "", "body": "Words."}, "Words.", {}),
        ({"segment": "Words."}, "Words.", {}),
        ({"Title": "T", "Text": "Words."}, "T Words.", {}),
        ({"title_localized": [{"text": "Pump"}], "claims_localized": [{"text": "1. A pump."}]},
         "Pump Claims 1. A pump.", {}),
        ({"abstract": {"de": "Ein Ziel.", "en": [{"text": "An aim."}]}}, "Abstract An aim.", {}),
        ({"sections": {"Intro": "One."}, "abstract": "An aim."}, "Abstract An aim. Intro One.", {}),
        ({"sections": [["One.", "Two."]], "section_names": ["Intro"], "article_text": ["One."],
          "abstract_text": ["<S> An aim . </S>"]}, "Abstract An aim . Intro One. Two.", {}),
        ({"patent_title": "Weir", "patentAbstract": "A weir."}, "Weir Abstract A weir.", {}),
        ({"name": "OAK, Plaintiff, v. ELM", "name_abbreviation": "Oak v. Elm", "casebody": {"data": {"head_matter":
          "Held."}}}, "Oak v. Elm Held.", {}),
        ({"pdf_parse": {"body_text": [{"text": "One."}], "ref_entries": {"f": {"text": "A map."}}, "bib_entries": {
            "b": {"title": "Elm"}}}}, "One. Figures and tables A map.", {"left_out_references": 1}),
        ({"abstract": "An aim.", "authors": "A. V\\'ane", "authors_parsed": [["Váne", "A.", ""]]}, "Abstract An aim.",
         {"authors": ["A. Váne"]}),
        ({"metadata": {"title": "T", "sections": [{"heading": "I", "text": "One."}], "abstractText": "Aim."},
          "name": "x.pdf"}, "T Abstract Aim. I One.", {}),
        ({"claims": [{"num": 1, "text": "A pump."}, {"claim_number": "02", "claim_text": "A gate."}]},
         "Claims 1. A pump. 2. A gate.", {}),
        ({"full_description": "FIELD Locks. Old locks. More.", "background": "Old locks.", "inventor_list": [
            {"city": "Goole"}]}, "Description FIELD Locks. Background Old locks. More.", {"left_out_field_words": 1}),
        ({"sub_opinions": [{"type": "040dissent", "plain_text": "No."}]}, "dissent No.", {}),
        ({"text": "<p>Held <b>now</b>.</p>", "cites": [{"to": "elsewhere"}], "bib_entries": {"b0": {"title": "Elm"}}},
         "Held now.", {"left_out_field_words": 1, "left_out_references": 1}),
        ({"sections": [{"heading": "I", "text": "One.", "remark": {"by": "Vane"}}], "text": "Unread words."}, "I One.",
         {"left_out_field_words": 3}),
        ({"body_text": [{"text": "One."}], "ref_entries": {"t": {"text": "Cap.", "content": "<table><tr><td>1</td><td>2"
          "</td></tr></table>"}}}, "One. Figures and tables Cap. 1 | 2", {}),
        ({"corpusid": 1, "content": {"text": "Locks\nAim.\nIntro\nOne.\nRef.", "annotations": {
            "title": '[{"start": 0, "end": 5}]', "abstract": '[{"start": 6, "end": 10}]', "bibentry":
            '[{"start": 22, "end": 26}]', "sectionheader": '[{"start": 11, "end": 16}]', "paragraph":
            '[{"start": 6, "end": 10}, {"start": 17, "end": 21}, '
            '{"start": 3, "end": 9999999999}]'}}}, "Locks Abstract Aim. Intro One.",
         {"left_out_references": 1}),
        ({"sections": [{"heading": "Aim", "text": "One."}, {"heading": "", "text": "Two."}]}, "Aim One. Two.", {}),
        ({"facts": ["1. She moored."], "law": ["2. It holds."], "tldr": "She won."},
         "Facts 1. She moored. Law 2. It holds. Summary She won.", {}),
        ({"celex_id": "3", "recitals": ",\nWeirs are old.", "main_body": ["Article 1\nWeirs stay."], "attachments":
            "Done."}, ", Weirs are old. Article 1 Weirs stay. Done.", {"celex_id": "3"}),
        *(({name: "Oak leaks."}, "Oak leaks.", {}) for name in (
            "full-text", "articleBody", "opinion_text", "main_text", "doc_text", "judgment", "transcript")),
        ({"title": {"rendered": "Oak &amp; elm"}, "content": {"rendered": "<p>Old <b>locks</b>.</p>"}},
         "Oak & elm Old locks.", {}),
        ({"abstract_inverted_index": {"herons": [1], "Grey": [0]}}, "Abstract Grey herons", {}),
        ({"indexed_abstract": {"IndexLength": 2, "InvertedIndex": {"herons": [1], "Grey": [0]}}},
         "Abstract Grey herons", {}),
        ({"bibjson": {"title": "Silt", "abstract": "An aim.", "author": [{"name": "Ann Vane"}, {"name":
            "Rin Okabe"}]}}, "Silt Abstract An aim.", _AUTHORS),
        ({"text": [{"heading": "Aim", "text": "One."}, ["Two.", "Three."]]}, "Aim One. Two. Three.", {}),
        ({"text": {"Aim": "One gate.", "End": "Two gates."}}, "Aim One gate. End Two gates.", {}),
        ({"content": [{"type": "heading", "text": "Aim"}, {"type": "p", "text": "One."}]}, "Aim One.", {}),
        ({"sections": {"Aim": ["One.", "Two."], "End": {"text": "Three."}}}, "Aim One. Two. End Three.", {}),
        ({"content": {"1.docx": [{"content": "One.", "elements": [{"content": "Two."}]}]}}, "One. Two.", {}),
        ({"sections": [{"name": "Aim", "content": [{"text": "One."}, {"text": "Two."}]}]}, "Aim One. Two.", {}),
        ({"paragraphs": [{"number": 7, "text": "It holds."}, "It stays."]}, "7. It holds. It stays.", {}),
        ({"body_markdown": "One.", "footnotes": [{"num": 1, "text": "A note."}]}, "One. Notes 1. A note.", {}),
        ({"casebody": {"data": "<?xml version='1.0'?><casebody xmlns='u'><parties>Oak v. Elm</parties><opinion><author>"
          "Vane</author><p>It is void.<footnotemark>1</footnotemark> It <page-number>*13</page-number>ends.</p>"
          "<footnote label='1'><p>A note.</p></footnote></opinion></casebody>"}},
         "Oak v. Elm Vane It is void.^1 It ends. A note.", {"left_out_running_heads": 1}),
        ({"abstract": "<jats:title>Abstract</jats:title><jats:sec><jats:title>One</jats:title><jats:p>H<jats:sub>2"
          "</jats:sub>O fell.</jats:p></jats:sec>"}, "Abstract One H2O fell.", {}),
        ({"title": "T", "full_text": {"section_name": ["Aim", "End"], "paragraphs": [["One.", "Two."], ["Three."]]}},
         "T Aim One. Two. End Three.", {}),
        ({"summary": ["An aim."], "report": {"section_title": "", "paragraphs": [], "subsections": [
            {"section_title": "Aim", "paragraphs": ["One."]}]}}, "Summary An aim. Aim One.", {}),
        ({"title_t": "T", "body_txt_en": "One."}, "T One.", {}),
        ({"text": "One.", "metadata": {"title": ["T"], "abstract": ["Aim."]}}, "T One.", {"abstract": ["Aim."]}),
        ({"lc": 1, "type": "constructor", "id": ["langchain", "Document"], "kwargs": {"page_content": "One.",
            "metadata": {"page": 1}}}, "One.", {"page": 1}),
        ({"summary": "An aim.", "full_report": _PROSE, "license": _PROSE},
         f"Summary An aim. Full report {_PROSE.strip()}", {"license": _PROSE}),
        ({"text": "One.", "authors": "A. Vane, R. Okabe, et al."}, "One.", {"authors": ["A. Vane", "R. Okabe"]}),
        ({"text": "One.", "authorString": "Vane A", "authorList": {"author": [{"fullName": "Vane A", "firstName":
            "Ann", "lastName": "Vane"}, {"collectiveName": "Rin Okabe"}]}}, "One.", _AUTHORS),
        ({"data": {"id": "7", "type": "articles", "attributes": {"title": "T", "body": {"value": "<b>One.</b>",
            "format": "html", "processed": "<p>One.</p>"}}}}, "T One.", {}),
        ({"content": {"title": {"value": "T"}, "abstract": {"value": "An aim."}, "authors": {"value": ["Ann Vane",
            "Rin Okabe"]}}}, "T Abstract An aim.", _AUTHORS),
        ({"titles": [{"title": "Silt"}], "descriptions": [{"description": "An aim."}], "creators": [
            {"name": "Ann Vane"}, {"name": "Rin Okabe"}]}, "Silt Description An aim.", _AUTHORS),
        ({"name": "T", "metadata": {"dc.description.abstract": [{"value": "An aim.", "language": "en"}],
            "dc.contributor.author": [{"value": "Ann Vane"}, {"value": "Rin Okabe"}]}}, "T Abstract An aim.", _AUTHORS),
        ({"text": {"en": "An aim.", "de": "Ein ganz anderes Ziel."}}, "An aim.", {"left_out_field_words": 4}),
        ({"Article": {"ArticleTitle": "T", "Abstract": {"AbstractText": ["An aim."]}}}, "T Abstract An aim.", {}),
        ({"raw_content": "One.", "score": float("nan")}, "One.", {"score": None}),
        ({"title": "T", "abstract": float("nan"), "full_text": "One."}, "T One.", {}),
        ({"title": "T &amp; U", "text": "&lt;p&gt;One &amp; two.&lt;/p&gt;"}, "T & U One & two.", {}),
        ({"title": "T", "text": "One.\\nTwo.\\n\\nThree."}, "T One. Two. Three.", {}),
        ({"titel": "T", "zusammenfassung": "Ein Ziel.", "volltext": "Oak."}, "T Oak.", {}),
        ({"标题": "水门", "正文": "水门很旧。"}, "水门 水门很旧。", {}),
        ({"id": 1, "messages": [{"role": "user", "content": "Why?"}, {"role": "bot", "content": "Silt."}]},
         "user: Why? bot: Silt.", {}),
        ({"id": 1, "conversations": [{"from": "human", "value": "Why?"}]}, "human: Why?", {}),
        ({"title": "T", "paragraphs": [{"context": "One."}, {"context": "Two."}]}, "T One. Two.", {}),
        ({"title": "T", "article": ["6"], "content": "Oak."}, "T Oak.", {"article": ["6"]}),
        ({"data": {"title": "T", "abstractNote": "An aim."}}, "T Abstract An aim.", {}),
        *(({"title": "T", "authors": ["Ann Vane"]} | of_text, "T", {"authors": ["Ann Vane"]}) for of_text in (
            {"abstract": None}, {"abstract_inverted_index": None}, {"type": "book", "issued": {}})),
        ({"title": "T", "abstract": "An aim.", "issued": {"date-parts": [[2019, 7, 4]]}}, "T Abstract An aim.",
         {"date": "2019-07-04", "year": 2019}),
    ],
)  # fmt: skip
def test_records_of_known_collections(record: dict[str, object], text: str, fields: Mapping[str, object]) -> None:
    document = document_of("a.jsonl", json.dumps({"id": "1"} | record))
    assert " ".join(document.text.split()) == text
    assert {field: document.metadata.get(field) for field in fields} == fields


_PASSAGES: list[dict[str, Any]] = [
    {"infons": {"section_type": "TITLE", "type": "front", "article-id_doi": "10.1/x", "year": "2019",
                "name_0": "surname:Vane;given-names:Ann"}, "text": "Silt"},
    {"infons": {"section_type": "ABSTRACT", "type": "abstract"}, "text": "It fills locks."},
    {"infons": {"section_type": "METHODS", "type": "title_1"}, "text": "Cores"},
    {"infons": {"section_type": "METHODS", "type": "paragraph"}, "text": "We took some."},
    {"infons": {"section_type": "FIG", "type": "fig_caption"}, "text": "A core."},
    {"infons": {"section_type": "REF", "type": "title"}, "text": "References"},
    {"infons": {"section_type": "REF", "type": "ref"}, "text": "An old paper."},
]  # fmt: skip
_COLLECTION = {"source": "PMC", "key": "k", "documents": [{"id": "1", "infons": {}, "passages": _PASSAGES}]}
_BIOC = "".join(
    "<passage>{}<text>{}</text></passage>".format(
        "".join(f'<infon key="{key}">{value}</infon>' for key, value in passage["infons"].items()), passage["text"]
    )
    for passage in _PASSAGES
)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", json.dumps(_COLLECTION)),
        ("a.json", json.dumps([_COLLECTION])),
        ("a.jsonl", json.dumps(_COLLECTION)),
        ("a.jsonl", json.dumps(_COLLECTION["documents"][0])),
        ("a.xml", f"<collection><source>PMC</source><key>k</key><document><id>1</id>{_BIOC}</document></collection>"),
    ],
)
def test_passages_of_bioc_are_a_title_sections_captions_and_references(name: str, data: str) -> None:
    document = document_of(name, data)
    assert document.text == "Silt\n\nAbstract\n\nIt fills locks.\n\nCores\n\nWe took some.\n\nA core."
    fields = {"authors": ["Ann Vane"], "year": 2019, "doi": "10.1/x", "left_out_references": 1}
    assert {field: document.metadata.get(field) for field in fields} == fields


def test_a_collection_of_bioc_is_several_documents() -> None:
    passages = [{"infons": {"type": "abstract"}, "sentences": [{"text": "One."}, {"text": "Two."}]}]
    found = documents_of("a.json", json.dumps({"documents": [{"id": one, "passages": passages} for one in "ab"]}))
    assert [(one.doc_id, one.text) for one in found] == [
        ("a.json#a", "Abstract\n\nOne. Two."), ("a.json#b", "Abstract\n\nOne. Two."),
    ]  # fmt: skip


_BOOK_PART = (
    "<book-part><book-part-meta><title-group><label>1</label><title>Gates</title></title-group><contrib-group><contrib>"
    "<name><surname>Okabe</surname> <given-names>Rin</given-names></name></contrib></contrib-group><abstract><p>On "
    "gates.</p></abstract></book-part-meta><body><p>Gates are old.</p><sec><title>Oak</title><p>It lasts."
    "</p></sec></body></book-part>"
)


def _item(place: str, label: str, *children: str, **fields: object) -> dict[str, object]:
    return {"self_ref": place, "label": label, "children": [{"$ref": child} for child in children]} | fields


_OF_DOCLING = {
    "schema_name": "DoclingDocument", "name": "locks", "pages": {"1": {"page_no": 1}},
    "body": _item("#/body", "unspecified", "t/0", "t/1", "t/2", "g/0", "tab/0", "p/0", "g/1"),
    "groups": [_item("g/0", "list", "t/3"), _item("g/1", "inline", "t/4", "t/5")],
    "texts": [_item("t/0", "page_header", text="River J", content_layer="furniture"),
              _item("t/1", "title", text="Silt"), _item("t/2", "section_header", text="Gates", level=1),
              _item("t/3", "list_item", text="oak", marker="1."), _item("t/4", "text", text="See"),
              _item("t/5", "formula", text=r"\frac{a}{b}"), _item("t/6", "caption", text="Depths"),
              _item("t/7", "caption", text="A core."), _item("t/8", "text", text="Lost words.")],
    "tables": [_item("tab/0", "table", captions=[{"cref": "t/6"}], data={"grid": [
        [{"text": "Site", "start_row_offset_idx": 0, "start_col_offset_idx": 0}] * 2, [{"text": "Goole"}, {"text": 3}]]
    })],
    "pictures": [_item("p/0", "picture", "t/7", captions=[{"$ref": "t/7"}])],
}  # fmt: skip


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_document_of_docling_is_read_in_the_order_of_its_body(name: str) -> None:
    document = document_of(name, json.dumps(_OF_DOCLING))
    assert " ".join(document.text.split()) == "Silt Gates 1. oak Depths Site Goole | 3 A core. See a/b"
    assert (document.title, [one.heading for one in document.sections][-1]) == ("Silt", "Gates")
    counts = {"figures": 1, "running_heads": 1, "field_words": 2}
    assert {name: document.left_out[name] for name in counts} == counts
    broken = json.dumps(_OF_DOCLING | {"texts": [_item("t/1", "text", captions="none")]})
    assert all(isinstance(one, Unreadable) for one in read_bytes(broken.encode(), name))


def test_blocks_of_mineru_are_one_document_in_their_order() -> None:
    blocks: list[dict[str, object]] = [
        {"type": "text", "text": "Silt", "text_level": 1},
        {"type": "text", "text": "Gates", "text_level": 2},
        {"type": "table", "table_caption": ["Depths"], "table_footnote": ["In metres."],
         "table_body": "<table><tr><th>Site</th><th>A &amp; B</th></tr><tr><td>Goole</td><td>3</td></tr></table>"},
        {"type": "equation", "text": r"$$\n\frac{a}{b}\n$$"},
        {"type": "image", "img_path": "a.jpg", "image_caption": ["A core."], "img_footnote": []},
        {"type": "list", "list_items": ["1. oak", "2. elm"]},
        {"type": "page_number", "text": "7"},
    ]  # fmt: skip
    document = document_of("a_content_list.json", json.dumps([block | {"page_idx": 0} for block in blocks]))
    text = "Gates Depths Site | A & B Goole | 3 In metres. a/b A core. 1. oak 2. elm"
    assert (document.title, " ".join(document.text.split())) == ("Silt", f"Silt {text}")
    assert [section.heading for section in document.sections][-1] == "Gates"
    assert document.left_out == {"figures": 1, "running_heads": 1}


_BOOK_META = (
    "<book-meta><book-id>b1</book-id><book-title-group><book-title>On Locks</book-title></book-title-group>"
    "<pub-date><year>2015</year></pub-date></book-meta>"
)


@pytest.mark.parametrize(
    ("data", "title", "text", "heading"),
    [
        ("<DIV5><HEAD>PART 3—WEIRS</HEAD><DIV8><HEAD>§ 3.1 Scope.</HEAD><P>(a) This covers weirs.</P><P>(b) <I>Terms."
         "</I> A weir is a dam.</P></DIV8></DIV5>", "PART 3—WEIRS",
         "PART 3—WEIRS § 3.1 Scope. (a) This covers weirs. (b) Terms. A weir is a dam.", "§ 3.1 Scope."),
        ("<DLPSTEXTCLASS><HEADER><TITLESTMT><TITLE>Title 33: "
         "Navigation</TITLE></TITLESTMT></HEADER><TEXT><DIV8><HEAD>§ 3.1 "
         "Scope.</HEAD><P>This covers weirs.</P></DIV8></TEXT></DLPSTEXTCLASS>", "Title 33: Navigation",
         "Title 33: Navigation § 3.1 Scope. This covers weirs.", "§ 3.1 Scope."),
        ("<RULE><PREAMB><SUBJECT>On weirs</SUBJECT></PREAMB><SUPLINF><HD SOURCE='HED'>INFORMATION:</HD>"
         "<HD SOURCE='HD1'>I. Background</HD><P>Weirs are old.<SU>1</SU> They leak.</P></SUPLINF></RULE>", "On weirs",
         "On weirs INFORMATION: I. Background Weirs are old.^1 They leak.", "I. Background"),
        ("<Legislation><Body><Part><Number>Part 1</Number><Title>General</Title><P1><Pnumber>1</Pnumber><P2><Pnumber>2"
         "</Pnumber><Text>A weir is a <Term>dam</Term> in a river.</Text></P2></P1></Part></Body></Legislation>", "a",
         "Part 1 General 1 (2) A weir is a dam in a river.", "Part 1 General"),
        ("<ACT><BIB.INSTANCE><COLL>L</COLL></BIB.INSTANCE><TITLE><TI><P>REGULATION</P><P>on weirs</P></TI></TITLE>"
         "<ARTICLE><TI.ART>Article 1</TI.ART><STI.ART>Scope</STI.ART><PARAG><NO.PARAG>1.</NO.PARAG><ALINEA>It covers "
         "weirs<NOTE><P>OJ L 1.</P></NOTE> in rivers.</ALINEA></PARAG></ARTICLE></ACT>", "REGULATION on weirs",
         "REGULATION on weirs Article 1 Scope 1. It covers weirs in rivers. OJ L 1.", "Article 1 Scope"),
        ("<statutesAtLarge><section><num>2.</num><heading>Tolls</heading><content>The toll of the<page>124 "
         "STAT. 1</page> "
         "gate is<sidenote><p>Deadline.</p></sidenote> ten m<E "
         "T='51'>3</E>.</content></section></statutesAtLarge>", "a",
         "2. Tolls The toll of the gate is ten m^3. Deadline.", "2. Tolls"),
        ("<ACT><TITLE><TI><P>On weirs</P></TI></TITLE><VISA>Having regard to the Treaty<NOTE><P>OJ C "
         "1.</P></NOTE>, and:"
         "</VISA><ARTICLE><TI.ART>Article "
         "1</TI.ART><LIST><ITEM><NP><NO.P>(a)</NO.P><TXT>weirs;</TXT></NP></ITEM></LIST>"
         "</ARTICLE></ACT>", "On weirs", "On weirs Having regard to the Treaty, and: OJ C 1. Article 1 (a) weirs;",
         ""),
        ("<dokumente><norm><metadaten><langue>Wehrgesetz</langue><enbez>§ "
         "1</enbez><titel>Anwendung</titel></metadaten><textdaten><P>Es "
         "gilt nicht für "
         "<DL><DT>1.</DT><DD><LA>Brücken und</LA></DD><DT>2.</DT><DD><LA>Stege.</LA></DD></DL></P></textdaten></norm>"
         "</dokumente>", "Wehrgesetz", "Wehrgesetz § 1 Anwendung Es gilt nicht für 1. Brücken und 2. Stege.", ""),
        ("<akomaNtoso><judgment><header><p>Between: <party>Vane</party></p></header><judgmentBody><decision><paragraph>"
         "<num>1.</num><content><p>It holds.</p></content></paragraph><crossHeading>Conclusion</crossHeading>"
         "<paragraph><p>The appeal is allowed with costs of it.</p></paragraph></decision></judgmentBody></judgment>"
         "</akomaNtoso>", "a", "Between: Vane 1. It holds. Conclusion The appeal is allowed with costs of it.",
         "Conclusion"),
        ("<akomaNtoso><judgment><judgmentBody><decision><paragraph><num>1.</num><content><p>It leaks.</p></content>"
         "</paragraph><level><num>II.</num><heading>Law</heading></level><paragraph><num>2.</num><content><p>It holds."
         "</p></content></paragraph></decision></judgmentBody></judgment></akomaNtoso>", "a",
         "1. It leaks. II. Law 2. It holds.", "II. Law"),
    ],
    ids=[
        "ecfr", "ecfr-part", "federal-register", "uk", "formex", "page", "visa", "german", "judgment", "heading-alone",
    ],
)  # fmt: skip
def test_headings_and_numbers_of_laws(data: str, title: str, text: str, heading: str) -> None:
    document = document_of("a.xml", data)
    assert (document.title, " ".join(document.text.split())) == (title, text)
    assert [section.heading for section in document.sections] == [heading]


@pytest.mark.parametrize(
    ("answer", "titles", "text"),
    [
        ({"hitCount": 2, "resultList": {"result": [
            {"id": "1", "title": "Eels", "authorString": "Ann Vane, Rin Okabe", "abstractText":
             "<h4>Aim</h4>They hide."},
            {"id": "2", "title": "Otters", "abstractText": "They swim."}]}}, ["Eels", "Otters"],
         "Eels Abstract Aim They hide."),
        ({"status": "ok", "message": {"DOI": "10.1/x", "title": ["Silt in <i>E. coli</i>"], "author": [
            {"given": "Ann", "family": "Vane"}, {"name": "Rin Okabe"}], "abstract": "<jats:p>We study CO<sub>2</sub>."
            "</jats:p>"}}, ["Silt in E. coli"], "Silt in E. coli Abstract We study CO2."),
        ({"hits": {"hits": [{"_id": "1", "_source": {"title": "Silt", "text": "See<sup>12</sup> <b>it</b>.", "authors":
            [{"name": {"preferred": "Ann Vane"}}, "Rin Okabe"]}}]}}, ["Silt"], "Silt See^12 it."),
        ({"id": "1", "title": "Silt", "authors_parsed": [["Vane", "Ann", ""], ["Okabe", "Rin", "", "Goole"]],
          "data": {"text": "It fills."}}, ["Silt"], "Silt It fills."),
        ({"lens_id": "1", "biblio": {"invention_title": [{"text": "Gate", "lang": "en"}]}, "claims": ["1. A gate."],
          "authors": ["Ann Vane", "Rin Okabe"]}, ["Gate"], "Gate Claims 1. A gate."),
    ],
)  # fmt: skip
def test_answers_of_services_are_the_records_inside_of_them(
    answer: dict[str, Any], titles: list[str], text: str
) -> None:
    found = documents_of("a.json", json.dumps(answer))
    assert [document.title for document in found] == titles
    assert " ".join(found[0].text.split()) == text
    assert found[0].metadata["authors"] == _AUTHORS["authors"]


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("modsCollection", "<mods><titleInfo><title>{}</title></titleInfo><abstract>It fills locks in "
         "May.</abstract></mods>"),
        ("MedlineCitationSet", "<MedlineCitation><Article><ArticleTitle>{}</ArticleTitle><Abstract><AbstractText>It "
         "fills locks in May.</AbstractText></Abstract></Article></MedlineCitation>"),
        ("TEI", "<TEI><teiHeader><titleStmt><title>{}</title></titleStmt></teiHeader><text><p>It fills locks in "
         "May.</p></text>"
         "</TEI>"),
        ("items", "<item><title>{}</title><text>It fills locks in May.</text></item>"),
        ("PubmedArticleSet", "<PubmedBookArticle><ArticleTitle>{}</ArticleTitle><Abstract><AbstractText>It "
         "fills locks in "
         "May.</AbstractText></Abstract></PubmedBookArticle>"),
    ],
)  # fmt: skip
def test_the_members_of_a_set_are_several_documents(name: str, member: str) -> None:
    found = documents_of("a.xml", f"<{name}>{member.format('Silt')}{member.format('Eels')}</{name}>")
    assert [one.title for one in found] == ["Silt", "Eels"]
    assert all("It fills locks in May." in one.text for one in found)
    chapters = "<chapter><title>One</title><p>It fills locks.</p></chapter>" * 2
    assert len(documents_of("a.xml", f"<chapters>{chapters}</chapters>")) == 1


def test_a_feed_of_arxiv_is_several_documents() -> None:
    entry = (
        "<entry><id>{}</id><title>Silt</title><summary>We study silt.</summary><author><name>Ann Vane</name></author>"
    )
    found = documents_of(
        "a.xml", f"<feed><title>Query</title>{entry.format('u1')}</entry>{entry.format('u2')}</entry></feed>"
    )
    assert [(one.doc_id, one.title, one.text) for one in found] == [
        ("a.xml#u1", "Silt", "Silt\n\nWe study silt."), ("a.xml#u2", "Silt", "Silt\n\nWe study silt."),
    ]  # fmt: skip
    assert [one.metadata["authors"] for one in found] == [["Ann Vane"]] * 2


def test_html_in_a_feed_of_news_is_read() -> None:
    page = "&lt;h2&gt;Rain&lt;/h2&gt;&lt;p&gt;It rained &amp;amp; poured.&lt;/p&gt;&lt;p&gt;Then sun.&lt;/p&gt;"
    document = document_of(
        "a.xml",
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><title type='html'>A &lt;b&gt;wet&lt;/b&gt; day</title>"
        f"<updated>2012-03-04T00:00:00Z</updated><content type='html'>{page}</content></entry></feed>",
    )
    assert (document.title, document.metadata["date"]) == ("A wet day", "2012-03-04")
    assert document.text == "A wet day\n\nRain\n\nIt rained & poured.\n\nThen sun."
    assert [section.heading for section in document.sections] == ["Rain"]


@pytest.mark.parametrize(
    "name", ["bill_id", "itemid", "caseId", "docno", "uid", "doi", "pmid", "url", "uuid", "lens_id", "article_id"]
)
def test_a_record_can_have_its_id_under_another_name(name: str) -> None:
    document = document_of("a.jsonl", json.dumps({name: "10.1/x", "text": "Words."}))
    assert document.doc_id == "10.1/x"


_ORDER = '<ol type="a"><li>Oak</li><li>Elm</li></ol>'
_HEADED = f'<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr>{word_run("Aim")}</w:p>'
_CENTRED = "<w:p><w:pPr><w:jc w:val='center'/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>"
_BOX = "<w:r><w:drawing><w:txbxContent><w:p><w:r><w:t>In a box.</w:t></w:r></w:p></w:txbxContent></w:drawing></w:r>"
_CHOICE = (
    '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="Red"/>'
    '<w:listEntry w:val="Green"/></w:ddList></w:ffData></w:fldChar><w:fldChar w:fldCharType="end"/></w:r>'
)
_NUMBERS = (
    '<w:abstractNum w:abstractNumId="91"><w:lvl w:ilvl="0"><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1."/>'
    '</w:lvl></w:abstractNum><w:num w:numId="9"><w:abstractNumId w:val="91"/></w:num>'
)
_LIFTED = '<w:position w:val="6"/>'
_HIDDEN = (
    f"<w:p><w:pPr><w:pStyle w:val='Hid'/></w:pPr>{word_run('hid')}</w:p><w:p>{word_run('Oak')}"
    f"{word_run('12', _LIFTED)}<w:r><w:ptab/></w:r>{word_run('elm')}</w:p>"
)
_LEGAL = (
    '<w:abstractNum w:abstractNumId="91"><w:lvl w:ilvl="0"><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1."/>'
    '</w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/><w:isLgl/><w:lvlText w:val="%1.%2"/></w:lvl>'
    '<w:styleLink w:val="S"/></w:abstractNum><w:abstractNum w:abstractNumId="92"><w:numStyleLink w:val="S"/>'
    '</w:abstractNum><w:num w:numId="9"><w:abstractNumId w:val="91"/></w:num><w:num w:numId="7"><w:abstractNumId '
    'w:val="92"/></w:num><w:num w:numId="8"><w:abstractNumId w:val="91"/><w:lvlOverride w:ilvl="0"><w:lvl w:ilvl="0">'
    '<w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%1)"/></w:lvl></w:lvlOverride></w:num>'
)
_ODT_LEVELS = (
    '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" '
    'style:num-suffix="."/><text:list-level-style-number text:level="2" style:num-format="1" style:num-suffix="." '
    'text:display-levels="2"/></text:list-style><text:outline-style><text:outline-level-style text:level="1" '
    'style:num-format="1" style:num-suffix="." text:start-value="2"/></text:outline-style>'
)
_ODT_LISTS = (
    '<text:list text:style-name="L"><text:list-item><text:p>Oak</text:p><text:list><text:list-item><text:p>elm'
    "</text:p></text:list-item></text:list></text:list-item></text:list><text:p>Ash</text:p><text:list "
    'text:style-name="L" text:continue-numbering="true"><text:list-item><text:p>Oak</text:p></text:list-item>'
    '</text:list><text:list text:style-name="L"><text:list-header><text:p>Fir</text:p></text:list-header></text:list>'
    "<text:h>Yew</text:h>"
)


def _list(*items: str, at: str = 'text:style-name="L"') -> str:
    shown = (f"<text:p>{item}</text:p>" if item[0] != "<" else item for item in items)
    return f"<text:list {at}>{''.join(f'<text:list-item>{item}</text:list-item>' for item in shown)}</text:list>"


_SUB = _list("fir", "ash", at="")
_GOES_ON = 'text:style-name="L" text:continue-'


@pytest.mark.parametrize(
    ("lists", "text"),
    [
        (_list("oak") + _list("elm"), "1. oak 1. elm"),
        (_list(f"<text:p>oak</text:p>{_SUB}", f"<text:p>elm</text:p>{_SUB}"),
         "1. oak 1.1. fir 1.2. ash 2. elm 2.1. fir 2.2. ash"),
        (_list("oak", at='text:style-name="L" xml:id="a"') + _list("elm") + _list("yew", at=f'{_GOES_ON}list="a"'),
         "1. oak 1. elm 2. yew"),
        (_list(f"<text:p>oak</text:p>{_SUB}") + _list(_list("elm", at=""), "yew", at=f'{_GOES_ON}numbering="true"'),
         "1. oak 1.1. fir 1.2. ash 1.3. elm 2. yew"),
    ],
    ids=["restart", "nested", "continue another", "continue inside"],
)  # fmt: skip
def test_lists_of_odt_start_again_unless_they_continue_others(lists: str, text: str) -> None:
    assert " ".join(document_of("a.odt", odt(lists, _ODT_LEVELS)).text.split()) == text


def _field(code: str, result: str) -> str:
    marks = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))
    begin, separate, end = marks
    code = code if code.startswith("<") else f"<w:r><w:instrText> {code} </w:instrText></w:r>"
    return f"{begin}{code}{separate}{result}{end}"


def _odt_note(text: str) -> str:
    return (
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>"
        f"{text}</text:p></text:note-body></text:note>"
    )


def _numbered(level: int, number: str) -> str:
    return (
        f'<text:numbered-paragraph text:list-id="a" text:style-name="L" text:level="{level}"><text:number>{number}'
        "</text:number><text:p>Oak</text:p></text:numbered-paragraph>"
    )


def _cell(note: str) -> str:
    cells = "".join(f"<t:table-cell><text:p>{text}</text:p></t:table-cell>" for text in (f"Oak{note}", "elm"))
    return f'<t:table xmlns:t="t"><t:table-row>{cells}</t:table-row></t:table>'


_CITED = "<xref ref-type='bibr'>1</xref>,"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        *(("a.html", html(f'<p>Oak <b style="{style}">hid</b>elm</p>'), "Oak elm") for style in (
            "visibility:collapse", "opacity:0", "color:transparent", "position:absolute;left:-9999px")),
        ("a.html", html('<p>Oak <b style="opacity:.5;left:-10px">seen</b> elm <i class="sr-only">hid</i></p>'),
         "Oak seen elm"),
        ("a.html", html("<style>.x, #y{display:none} @media print{.z{display:none}}</style><p>Oak <b class='x'>hid</b>"
                        "<b id='y'>hid</b><b class='z'>seen</b></p>"), "Oak seen"),
        ("a.html", html("<style>.x{text-decoration:line-through} .y{vertical-align:super}</style><p>Oak <b class='x'>"
                        "del</b>silt<span class='y'>12</span></p>"), "Oak silt^12"),
        ("a.html", html("<style>.x{display:none}</style><style>.x{opacity:1;display:none}</style><p class='x'>hid</p>"
                        "<p>jud&shy;gment</p>"), "judgment"),
        ("a.html", html("<p>Oak</p><footer>(c) <ol class='footnotes'><li>A note.</li></ol></footer>"),
         "Oak 1. A note."),
        ("a.html", html("<p>Oak<span class='sidenote'>A side note.</span> tree</p>"), "Oak tree A side note."),
        ("a.html", html('<p><span class="MathJax_Preview">x</span><script type="math/tex">\\frac{a}{b}</script></p>'),
         "a/b"),
        ("a.html", html(f"{_ORDER}{_ORDER.replace('a', 'I', 1)}"), "a. Oak b. Elm I. Oak II. Elm"),
        ("a.html", html('<ol reversed><li>Oak</li><li value="7">Elm</li></ol>'), "2. Oak 7. Elm"),
        ("a.html", html("<section class='casebody'><h4>Oak v. Elm</h4><article><p>The court <a class="
                        "'page-label'>*12</a>held.</p></article></section>"), "Oak v. Elm The court held."),
        ("a.html", html("<dialog><p>hid</p></dialog><p style='mso-hide:all'>hid</p><p>Oak</p>"), "Oak"),
        ("a.html", html(f"<main><p>{'Oak ' * 9}</p></main><section role='doc-endnotes'><p>Elm</p></section>"),
         f"{'Oak ' * 9}Elm"),
        ("a.epub", epub_bytes({"a.xhtml": "<p>Oak</p>", "b.xhtml": f"<ol>{'<li><a>Elm</a></li>' * 9}</ol>"}), "Oak"),
        ("a.xml", jats("", "<media><caption><p>Oak</p></caption></media><p>Elm</p>"), "Oak Elm"),
        ("a.xml", jats("", "<def-list><term-head>Tree</term-head><def-head>Use</def-head><def-item><term>oak</term>"
                       "<def><p>ships</p></def></def-item></def-list>"), "Tree Use oak ships"),
        ("a.html", html("<blockquote><p>It rose.</p><footer>Ann Vane</footer></blockquote>"), "It rose. Ann Vane"),
        ("a.html", html("<p>Oak\x01 &#2;elm<aside class='footnote'>A \x1fnote.</aside>&#x1; ash</p>"),
         "Oak elm ash A note."),
        ("a.html", html("<p>zero&#8203;width and &#65279;marks</p>"), "zerowidth and marks"),
        ("a.txt", "zero\u200bwidth and no\u2060break", "zerowidth and nobreak"),
        ("a.md", "super<wbr>structure", "superstructure"),
        ("a.md", "<aside>\nOak\n</aside><article>elm</article>", "Oak elm"),
        ("a.xml", "<bill><main><section><num>1.</num><content>A <deletedText>ten</deletedText>"
         "<addedText>twenty</addedText> pence toll.</content></section></main></bill>", "1. A twenty pence toll."),
        ("a.docx", word_of(f"<w:p>{word_run('Oak')}</w:p></w:body><w:body><w:p>{word_run('elm')}</w:p>"), "Oak elm"),
        ("a.docx", word_of(f"<w:p>{word_run('The reser-')}<w:r><w:br/></w:r>{word_run('voir')}</w:p>"),
         "The reservoir"),
        ("a.tex", latex(r"The \LaTeX{} source"), "The LaTeX source"),
        ("a.tex", latex(r"The \del{ten} \add{twenty} toll.\comment[id=A]{Why?}"), "The twenty toll."),
        ("a.xml", tei("<u>Oak</u><u>judg¬<lb/>ment</u>"), "Oak judgment"),
        ("a.docx", word_of("<w:tbl><w:tr><w:trPr><w:del/></w:trPr><w:tc><w:p><w:r><w:t>gone</w:t></w:r></w:p></w:tc>"
                           f"</w:tr></w:tbl><w:p>{word_run('Oak')}</w:p>"), "Oak"),
        ("a.epub", epub_bytes({"a.xhtml": "<p>x <m:math><m:mfrac><m:mi>a</m:mi><m:mi>b</m:mi></m:mfrac></m:math></p>"}),
         "x a/b"),
        ("a.xml", jats("", "<p>Held (<xref ref-type='bibr'>Vane 2020</xref>) here<xref ref-type='bibr'>2</xref>.</p>"),
         "Held (Vane 2020) here^2."),
        ("a.xml", jats("", "<list list-type='roman-lower'><list-item><p>Oak</p></list-item><list-item>"
                       "<label>(b)</label><p>Elm</p></list-item></list>"), "i. Oak (b) Elm"),
        ("a.xml", jats("", "<boxed-text><label>Box 1</label><caption><title>Oak</title></caption><p>Elm</p>"
                       "</boxed-text><table-wrap><table><tgroup><tbody><row><entry>1</entry><entry>2</entry></row>"
                       "</tbody></tgroup></table></table-wrap>"), "Box 1 Oak Elm 1 | 2"),
        ("a.xml", "<article><front><article-meta/></front><body><p>Oak</p></body>"
                  "<floats-wrap><fig><caption><p>Elm</p></caption></fig></floats-wrap>"
                  "<sub-article><front><article-meta><title-group><article-title>Ash</article-title></title-group>"
                  "<abstract><p>Fir</p></abstract></article-meta></front><body><p>Yew</p></body></sub-article>"
                  "</article>", "Oak Elm Ash Fir Yew"),
        ("a.xml", "<article xmlns='http://docbook.org/ns/docbook'><section><title>Oak</title><para>The old elm tree."
                  "</para></section></article>", "Oak The old elm tree."),
        ("a.xml", tei("<p>a word-<pb n='3'/><lb/>less <restore><del>kept</del></restore> "
                      "<app><rdgGrp><rdg>one</rdg><rdg>two</rdg></rdgGrp></app></p>"), "a wordless kept one"),
        ("a.xml", tei("<list rend='numbered'><item>Oak</item><item>Elm</item></list>"), "1. Oak 2. Elm"),
        ("a.xml", "<rfc><middle><section><t>Boats shall moor here.</t><ol type='(%c)'><li>Oak</li></ol>"
                  "<t hangText='Elm:'>A tree.</t></section></middle></rfc>",
         "Boats shall moor here. (a) Oak Elm: A tree."),
        ("a.odt", odt("<text:p>Oak <text:span text:style-name='B'>del</text:span>elm<text:text-box><text:p>In a box."
                      "</text:p></text:text-box> tree</text:p>",
                      '<style:style style:name="A"><style:text-properties style:text-line-through-type="single"/>'
                      '</style:style><style:style style:name="B" style:parent-style-name="A"/>'),
         "Oak elm tree In a box."),
        ("a.odt", odt("".join(map(_numbered, (1, 2, 2, 1), ("", "", "(x)", ""))), _ODT_LEVELS),
         "1. Oak 1.1. Oak (x) Oak 2. Oak"),
        ("a.odt", odt('<text:list text:style-name="L"><text:list-item text:start-value="4"><text:p>Oak</text:p>'
                      "</text:list-item><text:list-item><text:p>Elm</text:p></text:list-item></text:list>",
                      '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format='
                      '"a" style:num-prefix="(" style:num-suffix=")"/></text:list-style>'), "(d) Oak (e) Elm"),
        ("a.docx", word_of(f"<w:p>{word_run('Oak ')}{_BOX}{word_run('elm ')}{_CHOICE}</w:p>"),
         "Oak elm Green In a box."),
        ("a.docx", word_of("<w:p><w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>"
                           f"{word_run('Click here.')}</w:sdtContent></w:sdt>{word_run('Oak')}</w:p>"), "Oak"),
        ("a.docx", word_of(f"<w:tbl><w:tr><w:tc><w:p/></w:tc><w:tc><w:p><w:pPr>{numbered(9, 0)}</w:pPr>"
                           f"{word_run('Oak')}</w:p></w:tc></w:tr></w:tbl>", numbering=_NUMBERS), "I. Oak"),
        ("a.docx", word_of(f"<w:p>{_field('TOC', word_run('Elm 1'))}</w:p><w:p>{word_run('Oak')}</w:p>"), "Oak"),
        ("a.docx", word_of("<w:sdt><w:sdtPr><w:docPartObj><w:docPartGallery w:val='Table of Contents'/></w:docPartObj>"
                           f"</w:sdtPr><w:sdtContent><w:p>{word_run('Elm 1')}</w:p></w:sdtContent></w:sdt><w:p>"
                           f"{word_run('Oak')}</w:p>"), "Oak"),
        ("a.docx", word_of(f"<w:p>{_field(_field('IF', word_run('hid')), word_run('Oak'))}</w:p>"), "Oak"),
        ("a.docx", word_of(_HIDDEN, "<w:style w:type='paragraph' w:styleId='Hid'><w:rPr><w:vanish/></w:rPr></w:style>"),
         "Oak^12 elm"),
        ("a.docx", word_of("".join(f"<w:p><w:pPr>{numbered(*place)}</w:pPr>{word_run('Oak')}</w:p>" for place in (
            (9, 0), (9, 1), (8, 0), (7, 0))), numbering=_LEGAL), "I. Oak 1.1 Oak (b) Oak III. Oak"),
        ("a.odt", odt('<text:section text:is-hidden="true"><text:p>hid</text:p></text:section><text:p>Oak'
                      '<text:hidden-text text:is-hidden="false"> elm</text:hidden-text><draw:rect xmlns:draw="d">'
                      "<text:p>Box</text:p></draw:rect> tree</text:p>"), "Oak elm tree Box"),
        ("a.odt", odt(f"{_cell(_odt_note('cell'))}<text:h>Aim{_odt_note('head')}</text:h>"),
         "Oak[1] | elm [1] cell Aim head"),
        ("a.odt", odt(_ODT_LISTS, _ODT_LEVELS), "1. Oak 1.1. elm Ash 2. Oak Fir 2. Yew"),
        ("a.html", html('<p>Silt moves<span class="ltx_note"><sup class="ltx_note_mark">1</sup><span class="'
                        'ltx_note_outer"><sup>1</sup><span class="ltx_tag_note">1</span>A note.</span></span> on.</p>'),
         "Silt moves^1 on. 1 A note."),
        ("a.html", html('<ol style="list-style-type: lower-roman"><li>Oak<a href="#r" role="doc-backlink">back</a></li>'
                        '<li><span class="mw-cite-backlink">^</span> Elm <a href="#r">↩</a></li></ol>'),
         "i. Oak ii. Elm"),
        ("a.html", html("<p>1<sup>a</sup> of 2<sup><a href='#a'>a</a></sup></p>"), "1a of 2^a"),
        ("a.xml", jats("", "<p>2<xref ref-type='table-fn'><sup>a</sup></xref></p>"), "2^a"),
        ("a.html", html("<h2>Oak trees<sup>12</sup></h2><p>10<sup>-3</sup> m</p><table><tr><td>a<br>b<td>c</table>"),
         "Oak trees 10^-3 m a b | c"),
        ("a.xml", jats("", "<p>Oak<fn><label>1</label><p>A note.</p></fn></p><fig><caption><p>Elm</p></caption>"
                       "<alt-text>one</alt-text><long-desc>two</long-desc></fig>"), "Oak 1 A note. Elm one two"),
        ("a.xml", tei("<p><s>Oak.</s><s>Elm.</s></p>"), "Oak. Elm."),
        ("a.xml", "<akomaNtoso><act><body><section><content><blockList><item><num>(a)</num><p>Oak</p></item>"
                  "</blockList></content></section></body></act></akomaNtoso>", "(a) Oak"),
        ("a.xml", "<rfc><front><title>T</title><author><address><email>a@b</email></address></author><keyword>elm"
                  "</keyword></front><middle><t>Oak<cref>why</cref></t></middle></rfc>", "T Oak why"),
        ("a.epub", epub_bytes({"a.xhtml": "<p><a href='b#r'>12</a>. See Vane.</p><p><sup>3</sup>Id. at 4.</p>"}),
         "12. See Vane. 3 Id. at 4."),
        ("a.epub", epub_bytes({"a.xhtml": "<svg><style>x</style><path/><text>Oak <tspan>at</tspan></text><text>elm"
                               "</text></svg>"}), "Oak at elm"),
        ("a.epub", epub_bytes({"toc.xhtml": "<p>Elm</p>", "a.xhtml": "<p>Oak</p>"}, guide='<guide><reference type="toc"'
                              ' href="toc.xhtml"/></guide>'), "Oak"),
        ("a.txt", "水門《すいもん》は古い。", "水門は古い。"),
        ("a.xml", tei('<p>The <hi rend="strikethrough">ten</hi> toll is <hi rendition="#sup">a</hi>.</p>'),
         "The toll is a."),
        ("a.xml", tei("<p>The judg-<lb/>ment<ref target='#n1'>1</ref></p>"), "The judgment^1"),
        ("a.html", '<p>A <span class="struck">old</span> toll<span style="vertical-align: super">2</span>', "A toll^2"),
        ("a.html", '<p>A <span style="font-size: 0">zero</span>toll, <span style="font-size: 0.8em">small</span>',
         "A toll, small"),
        ("a.html", "<title>t</title><main><p>Held.</p></main><footer>foot</footer>", "Held."),
        ("a.html", "<html><body><p>Herons.</p></body></html><html><body><p>Otters.</p></body></html>",
         "Herons. Otters."),
        ("a.html", f'<article><p>{"Held. " * 9}</p></article><div id="footnotes"><p>A note.</p></div>',
         "Held. " * 9 + "A note."),
        ("a.html", "<p>Oak <![CDATA[a < b & c]]></p><script>'<![CDATA['</script><p>Elm</p>", "Oak a < b & c Elm"),
        ("a.html", '<p>The jud<span role="doc-pagebreak">4</span>gment', "The judgment"),
        ("a.html", '<p><img src="o.png" alt="O">nce upon a time', "Once upon a time"),
        ("a.html", '<ol start="3"><li>Oak<ol><li>old</li></ol></li><li>Elm</li></ol>', "3. Oak 1. old 4. Elm"),
        ("a.html", "<pre>The judg-\nment of the reser-\nvoir</pre>", "The judgment of the reservoir"),
        ("a.xml", "<TEI><teiHeader/><sourceDoc><surface><zone><line>The gate at</line><line>nine in the mor"
         "<hi>ning</hi></line></zone></surface><surface>Leaf two.</surface></sourceDoc></TEI>",
         "The gate at nine in the morning Leaf two."),
        ("a.txt",
         "The judg-\nment of pre-\nand post-war weirs, well-\nknown to twenty-\nfive self-\nless self-\ntaught men",
         "The judgment of pre- and post-war weirs, well-known to twenty-five selfless self-taught men"),
        ("a.md", "The toll {--ten--} is due.\n\n[//]: # (a remark)\n", "The toll is due."),
        ("a.md", "The judg-\nment of the reser-\nvoir", "The judgment of the reservoir"),
        ("a.md", "---\nOn herons: they wade.\n---\nText.", "--- On herons: they wade. --- Text."),
        ("a.md", "Oak %%no%% elm <p>ash</p><p>fir</p><summary>box</summary>yew 1%% a", "Oak elm ash fir box yew 1%% a"),
        ("a.tex", latex(r"\def\oak#1{oak #1}\let\elm\oak \elm{tree}\glsadd{x}"), "oak tree"),
        ("a.tex", latex(r"Oak\footnotemark[1] elm.\footnotetext[1]{A tree.} Ash."), "Oak elm. (A tree.) Ash."),
        ("a.tex", latex(r"\begin{acks}We thank.\end{acks}"), "Acknowledgments We thank."),
        ("a.tex", latex(r"\begin{algorithmic}\If{dry}\State rest\Else\State run\EndIf\Return oak\end{algorithmic}"),
         "if dry then rest else run return oak"),
        ("a.tex", latex(r"\begin{algorithm2e}\KwIn{oak}\If{dry}{run}\end{algorithm2e}"), "Input: oak if dry then run"),
        ("a.tex", latex(r"\begin{longtable}{ll}Oak & elm\\\endfirsthead Oak & (next)\\\endhead Go on\endfoot 1 & 2\\"
                        r"\end{longtable}"), "Oak elm 1 2"),
        ("a.tex", latex(r"\def\a{x}\def\b{x}\ifx\a\b oak\else elm\fi \ifx\no\undefined ash\else fir\fi"), "oak ash"),
        ("a.tex", latex(r"\subtitle{Elm}Ash."), "Elm Ash."),
        ("a.tex", latex(r"\plotone{f}Oak\tablenotemark{a}\tablewidth{0pt}\tablenotetext{a}{Elm.}"), "Oak^a a Elm."),
        ("a.tex", latex(r"He said \enquote{ash} and `fir', it's \oak{Yew}{}{Elm.} \acknowledgments Box."),
         "He said “ash” and ‘fir’, it's Yew Elm. Acknowledgments Box."),
        ("a.md", '::: {.callout-note title="Oak"}\nElm.\n:::\n', "Oak Elm."),
        ("a.txt", "ASH,\n   -against-\nFIR,\nand a reser-\nvoir", "ASH, -against- FIR, and a reservoir"),
        ("a.tex", latex("堤防の上を人が\n歩く。"), "堤防の上を人が歩く。"),
        ("a.tex", latex(r"A \texorpdfstring{shown}{listed} word"), "A shown word"),
        ("a.json", '{"sections": [{"heading": "h", "text": "The judg-\\nment of the reser-\\nvoir"}]}',
         "h The judgment of the reservoir"),
        ("a.json", '{"claims": ["A pump.", "A gate."]}', "Claims 1. A pump. 2. A gate."),
        *(("a.xml", jats("", f"<p>{words}</p>"), text) for words, text in (
            (f"Eels [{_CITED}<xref ref-type='bibr'>2</xref>] hide, CO<sub>2</sub>.", "Eels [1,2] hide, CO2."),
            ("It rose.<xref ref-type='bibr'>1</xref>,<xref ref-type='bibr'>2</xref>", "It rose.^1,^2"),
            ("<table><tr><td>1<hr/>2</td><td>3</td></tr></table>", "1 2 | 3"),
            ("<math><mtable><mtr><mtd><mi>x</mi></mtd><mtd><mo>=</mo><mi>y</mi></mtd></mtr></mtable></math>", "x = y"),
        )),
        *(("a.xml", tei(f"<p>{words}</p>"), text) for words, text in (
            ("<address><addrLine>Goole</addrLine><addrLine>Lock 3</addrLine></address>", "Goole Lock 3"),
            ("<placeName>Hull</placeName>s, <surname>Vane</surname><surname>Lime</surname>", "Hulls, Vane Lime"),
        )),
        ("a.html", html('<p><span class="LegP1No">1</span><span class="LegDS LegP2No">(1)</span><b>A keeper</b> shall '
                        '<span class="paranumber">2</span>mend<span class="num">3</span>.</p>'),
         "1 (1) A keeper shall 2 mend3."),
        ("a.html", html('<table><tr><td class="linenos"><pre>1\n2</pre></td><td><pre>open\nshut</pre></td></tr></table>'
                        "<label>Oak</label><label>Elm</label>"), "open shut Oak Elm"),
        *(("a.html", html(f"<p>Oak <span class='{name}'>ash</span>elm</p>"), "Oak elm") for name in (
            "amendment-deletion", "DeletedText", "redline-del", "diff-removed", "page_no")),
        *(("a.html", html(f"<p>silt<span {look}>12</span></p>"), "silt^12") for look in (
            "class='sup'", "style='position:relative; top:-4pt'")),
        *(("a.html", html(f"<main><p>It is held that the lock leaks.</p></main>{note}"),
           "It is held that the lock leaks. Note.") for note in (
            "<aside class='note'>Note.</aside>", "<aside class='sidenote'>Note.</aside>",
            "<aside id='fn1'>Note.</aside>", "<aside><p class='footnote'>Note.</p></aside>")),
        ("a.html", html("<p>The judg<page-number label='12'>*12</page-number>ment.</p>"), "The judgment."),
        ("a.tei", tei("<u><seg>We mend.</seg><seg>More.</seg></u>"), "We mend. More."),
        ("a.xml", "<RULE><P>Locks are old here.</P><GPOTABLE><BOXHD><CHED>Site</CHED><CHED>cm</CHED></BOXHD><ROW>"
                  "<ENT>Goole</ENT><ENT>3</ENT></ROW></GPOTABLE></RULE>", "Locks are old here. Site | cm Goole | 3"),
        ("a.xml", "<x><art><num>第一条</num><p>本法适用于闸门。</p></art></x>", "第一条 本法适用于闸门。"),
        ("a.json", '{"title": "T", "full_text": [{"section_name": "Gates", "paragraphs": ["Oak.", "Elm."]}]}',
         "T Gates Oak. Elm."),
        ("a.xml", "<rfc><middle><t>Words of it<vspace/>are by <contact fullname='Ann Vane'/>.</t></middle></rfc>",
         "Words of it are by Ann Vane."),
        ("a.txt", "PATN\nWKU  1\nDETD\nPAR  H.sub.2 O, 25.degree. C., 10.sup.-3 m of .beta.-oak, R.sub.1 is it.",
         "Detailed description H2O, 25° C., 10^-3 m of β-oak, R1 is it."),
        ("a.txt", "\f".join(f"CHAPTER {n}\n\nThe {it} rose.\n\nThe {it} fell." for n, it in enumerate("abcde", 1)),
         " ".join(f"CHAPTER {n} The {it} rose. The {it} fell." for n, it in enumerate("abcde", 1))),
    ],
)  # fmt: skip
def test_the_text_of_a_variant(name: str, data: str | bytes, text: str) -> None:
    document = document_of(name, data)
    assert " ".join(document.text.split()) == text.strip()
    assert "unexplained_words" not in document.left_out


@pytest.mark.parametrize(
    ("name", "data", "headings"),
    [
        ("a.html", html('<div role="heading" aria-level="2">Oak</div><p>Elm</p>'), ["Oak"]),
        ("a.docx", word_of(f"<w:tbl><w:tr><w:tc>{_HEADED}</w:tc></w:tr></w:tbl>"), ["Aim"]),
        ("a.tei", tei("<head>Oak</head><p>Elm</p>"), ["Oak"]),
        ("a.html", html("<p class='oj-ti-art'>Article 1</p><div><p class='oj-sti-art'>Scope</p></div><p>Elm</p>"),
         ["Article 1 Scope"]),
        ("a.xml", "<article xmlns='http://www.elsevier.com/x'><body><section><label>1</label><section-title>Oak"
         "</section-title><para>The eels hide in mud.</para></section></body></article>", ["1 Oak"]),
        ("a.tex", latex(r"\begin{frame}[t]{Oak}{Tree}Elm\end{frame}"), ["Oak"]),
        ("a.tex", latex(r"\begin{frame}\frametitle{Oak}Elm\end{frame}"), ["Oak"]),
        ("a.html", html("<center><b>ARTICLE I</b></center><center><b>TOLLS</b></center><p>Twenty pence.</p>"),
         ["ARTICLE I TOLLS"]),
        ("a.html", html("<p align=center>I.</p><p align=center>BACKGROUND</p><p>Twenty pence.</p>"), ["I. BACKGROUND"]),
        ("a.docx", word_of(f"{_CENTRED.format('ARTICLE I')}{_CENTRED.format('TOLLS')}<w:p>{word_run('Elm')}</w:p>"),
         ["ARTICLE I TOLLS"]),
        ("a.odt", odt("<text:p text:style-name='C'>ARTICLE I</text:p><text:p text:style-name='C'>TOLLS</text:p><text:p>"
         "Elm</text:p>", "<style:style style:name='C'><style:paragraph-properties style:text-align='center'/>"
         "</style:style>"), ["ARTICLE I TOLLS"]),
        ("a.xml", "<PubmedArticle><MedlineCitation><PMID>11</PMID><Article><Journal><Title>Silt</Title></Journal>"
         "<Abstract><AbstractText Label='AIM'>Elm.</AbstractText></Abstract></Article></MedlineCitation>"
         "</PubmedArticle>", ["AIM"]),
        ("a.xml", "<book><book-part><book-part-meta><title-group><title>Oak</title></title-group></book-part-meta>"
         "<body><p>The eels hide in mud.</p></body></book-part></book>", ["Oak"]),
    ],
)  # fmt: skip
def test_headings_of_other_kinds(name: str, data: str | bytes, headings: list[str]) -> None:
    document = document_of(name, data)
    assert [section.heading for section in document.sections] == headings


@pytest.mark.parametrize("note", ["{} See R. at 12.", "{} Vane, supra, at 12.", "{} Old Silt, at 12.", "* A deed."])
def test_a_note_at_the_foot_of_each_page_is_no_running_head(note: str) -> None:
    document = document_of(
        "a.pdf", pdf_bytes([[*prose(700), (note.format(n), 72, 110, 8, False)] for n in range(1, 7)])
    )
    assert document.text.count(note.removeprefix("{} ")) == 6


_PERSONS = "".join(
    f'<dc:creator id="{name}">{name}</dc:creator><meta refines="#{name}" property="role">{role}</meta>'
    for name, role in (("Vane", "aut"), ("Elm", "edt"))
)


@pytest.mark.parametrize(
    "dates",
    [
        "<pub-date><year>2020</year></pub-date><pub-date><day>3</day><month>4</month><year>2020</year></pub-date>",
        "<pub-date><day>3</day><month>Apr</month><year>2020</year></pub-date>",
        "<pub-date><string-date>April 3, 2020</string-date></pub-date>",
        '<pub-date iso-8601-date="2020-04-03"/>',
    ],
)
def test_the_date_of_an_article_is_the_earliest(dates: str) -> None:
    metadata = documents_of("a.xml", jats(dates, "<p>Oak</p>"))[0].metadata
    assert (metadata["date"], metadata["year"]) == ("2020-04-03", 2020)


_MAIN_AND_SUBTITLE = (
    '<dc:title id="s">Sub</dc:title><meta refines="#s" property="title-type">subtitle</meta><dc:title id="m">Main'
    '</dc:title><meta refines="#m" property="title-type">main</meta>'
)
_DATES = '<dc:date o:event="modification" xmlns:o="o">2021</dc:date><dc:date>1999</dc:date>'
_FROM_OPS = {"@country": "EP", "@doc-number": "1000", "@kind": "A1", "bibliographic-data": {
    "invention-title": [{"@lang": "de", "$": "Pumpe"}, {"@lang": "en", "$": "Pump"}]},
    "abstract": {"@lang": "en", "p": {"$": "A pump with seals."}}}  # fmt: skip


@cases(
    "name, data, title, text, fields",
    {
        "a book of BITS": ("a.xml", f"<book>{_BOOK_META}<book-body>{_BOOK_PART}</book-body></book>", "On Locks",
         "On Locks 1 Gates On gates. Gates are old. Oak It lasts.", {"year": 2015, "authors": ["Rin Okabe"]}),
        "a part of a book of BITS": ("a.xml", f"<book-part-wrapper>{_BOOK_META}{_BOOK_PART}</book-part-wrapper>",
         "Gates", "Gates Abstract On gates. Gates are old. Oak It lasts.", {"authors": ["Rin Okabe"]}),
        "patents of other offices have other roots": (
            "a.xml", "<wo-published-application><wo-bibliographic-data><invention-title>Weir</invention-title>"
            "</wo-bibliographic-data><claims><claim num='1'><claim-text>A weir.</claim-text></claim></claims>"
            "</wo-published-application>", "Weir", "Weir Claims 1. A weir.", {}),
        "an answer of OPS can be JSON": (
            "a.json", json.dumps({"ops:world-patent-data": {"exchange-documents": {"exchange-document": _FROM_OPS}}}),
            "Pump", "Pump Abstract A pump with seals.", {"number": "EP1000A1"}),
        "a note of a title is text": (
            "a.xml", jats("<title-group><article-title>Oak<fn><label>*</label><p>Read in Goole.</p></fn>"
            "</article-title></title-group>", "<p>Elm</p>"), "Oak", "Oak * Read in Goole. Elm", {}),
        "a review without a title has that of its book, and an id of PMC two spellings": (
            "a.xml", jats('<article-id pub-id-type="pmcid">PMC7</article-id><title-group><article-title/></title-group>'
            "<product><source>On Locks</source></product>", "<p>Good.</p>"), "On Locks", "On Locks Good.",
            {"pmc": "PMC7"}),
        "fields of a book say what they are": (
            "a.epub", epub_bytes({"a.xhtml": "<p>Oak</p>"}, fields=f"{_MAIN_AND_SUBTITLE}{_PERSONS}{_DATES}"), "Main",
            "Oak", {"authors": ["Vane"], "subtitle": "Sub", "year": 1999}),
        "fields below a second title are metadata": (
            "a.rst", "Oak\n===\n\nElm\n---\n\n:Author: Ann Vane\n\nText.\n", "Oak", "Oak Elm Author: Ann Vane Text.",
            {"authors": ["Ann Vane"]}),
    },
)  # fmt: skip
def test_the_title_the_text_and_the_fields(
    name: str, data: str | bytes, title: str, text: str, fields: dict[str, object]
) -> None:
    document = document_of(name, data)
    assert (document.title, " ".join(document.text.split())) == (title, text)
    assert {field: document.metadata.get(field) for field in fields} == fields


@pytest.mark.parametrize("between", ['\n<?xml version="1.0"?>', "<?xml version='1.0'?>", "\n<!DOCTYPE a SYSTEM 'b'>\n"])
def test_patents_one_after_the_other(between: str) -> None:
    one = "<us-patent-grant><description><p>Words of it.</p></description></us-patent-grant>"
    assert len(documents_of("a.xml", f"{one}{between}{one}")) == 2


@pytest.mark.parametrize(
    ("source", "title", "text"),
    [
        ('{\n  "title": "Locks"\n}\n\nText.', "Locks", "Text."),
        ("---\ntitle: Locks\nsubtitle: A: b\nauthor: Ann Vane <a@b.c>\ntags:\n- a\n---\nText.", "Locks", "Text."),
        (';;;\n{"title": "Locks"}\n;;;\nText.', "Locks", "Text."),
        ('---json\n{"title": "Locks"}\n---\nText.', "Locks", "Text."),
        ('---toml\ntitle = "Locks"\n---\nText.', "Locks", "Text."),
        ("% Locks of the\n  Tarn\n% Ann Vane\n  Rin Okabe\n% 2020\n\nText.", "Locks of the Tarn", "Text."),
        ("Title: Locks\nAuthor: Ann Vane\n\nText.", "Locks", "Title: Locks Author: Ann Vane Text."),
        ("---\nTitle: Locks\nauthor:\n- Ann Vane^[Weir Lab]\n---\nText.", "Locks", "Text."),
        ('<h1 align="center">Locks</h1>\n<p><img src="a.png">Silt<sup>12</sup> <kbd>Esc</kbd></p>', "Locks",
         "# Locks Silt^12 Esc"),
        ('<div style="display:none">hid</div>\n<script>a < 1</script>\n<b hidden>hid</b>Text.', "a", "Text."),
        ("The ~~ten\nold~~ toll {~~was~>is~~} {++one++}{>>why?<<} {--gone--} {==here==}.", "a",
         "The toll is one here."),
        ("{水門|すいもん}は古い。 `<b>~~a~~</b>`\n\n```\n<b>~~b~~</b>\n```\n", "a",
         "水門は古い。 `<b>~~a~~</b>` ``` <b>~~b~~</b> ```"),
        ('import A from "./a"\nexport const b = {\n  c: 1\n}\n\nimport "x"\n\nimport duties from the\nexport lock\n',
         "a", "import duties from the export lock"),
        ("**COURT OF GOOLE**\n\n**ANN VANE**,\nPlaintiff,\n\nv.\n\nLIME INC.,\nDefendant.", "ANN VANE v. LIME INC.",
         "**COURT OF GOOLE** **ANN VANE**, Plaintiff, v. LIME INC., Defendant."),
        ("Silt^1,^2 and sand^3^", "a", "Silt^1,2 and sand^3"),
        ("a < b and c > d, x<sub>2</sub>, <https://a.b> ![a](data:image/png;base64,iVBORw0KGgoAAAA=)", "a",
         "a < b and c > d, x2, <https://a.b> ![a]()"),
    ],
)  # fmt: skip
def test_markdown_of_other_programs(source: str, title: str, text: str) -> None:
    document = document_of("a.mdx" if "import" in source else "a.md", source)
    assert (document.title, " ".join(document.text.split())) == (title, text)
    if "Ann Vane" in source:
        assert document.metadata["authors"] == ["Ann Vane", "Rin Okabe"][: 1 + ("Rin" in source)]


@pytest.mark.parametrize(
    ("source", "text", "left_out"),
    [
        (".. role:: del\n\nThe :del:`ten` toll :strike:`old` is due.", "The toll is due.", {"deleted_words": 2}),
        ("1. Oak\n2. Elm\n\na) Ash\nb) Fir\n", "1. Oak 2. Elm a) Ash b) Fir", {}),
        ("Text.\n\n.. a remark\n\n.. include:: b.rst\n", "Text.", {"comment_words": 2, "missing_files": 1}),
        (".. math:: a\n   :label: e\n\n.. note::\n   :class: x\n\n   Oak\n\nElm : Ash\n  Fir\n",
         "a Oak Elm : Ash Fir", {}),
        (".. csv-table:: Oak\n   :file: a.csv\n\n.. csv-table:: Elm\n\n   a, b\n",
         "Oak Elm a | b", {"missing_files": 1}),
        ("The judg-\nment of the reser-\nvoir.", "The judgment of the reservoir.", {}),
    ],
)  # fmt: skip
def test_restructured_text_of_other_programs(source: str, text: str, left_out: dict[str, int]) -> None:
    document = document_of("a.rst", source)
    assert " ".join(document.text.split()) == text
    assert document.left_out == left_out


@pytest.mark.parametrize(("name", "page"), [("a.html", html("{}")), ("a.xml", jats("", "{}"))])
def test_tex_between_delimiters_is_written_as_text(name: str, page: str) -> None:
    body = r"<p>Let \(x^2 + \alpha\) be \[\frac{a}{b}\], <i>\(n\)</i>; \(foo\) <code>\(y\)</code> costs $$5, $$6.</p>"
    document = document_of(name, page.replace("{}", body))
    text = " ".join(document.text.split())
    assert text.endswith(r"Let x^2 + α be a/b, n; \(foo\) \(y\) costs $$5, $$6.")
    assert "left_out_unexplained_words" not in document.metadata


@pytest.mark.parametrize(
    ("name", "data", "text", "left_out"),
    [
        ("a.tei", tei("<entry><form><orth>sill</orth><pron>sɪl</pron></form><pos>noun</pos></entry>"), 
         "sill sɪl noun", {}),
        ("a.xml", "<book><book-body><toc><toc-entry>Gates 1</toc-entry></toc><book-part><book-part-meta><title-group>"
                  "<title>Gates</title></title-group></book-part-meta><body><p>Oak.</p></body></book-part></book-body>"
                  "<book-back><index><index-entry>oak</index-entry></index></book-back></book>", "Gates Oak.",
         {"contents_words": 3}),
    ],
    ids=["a dictionary", "contents of a book"],
)  # fmt: skip
def test_parts_of_entries_and_of_books(name: str, data: str, text: str, left_out: Mapping[str, int]) -> None:
    document = document_of(name, data)
    assert (" ".join(document.text.split()), document.left_out) == (text, left_out)


def test_citations_of_pubmed_are_named_by_their_numbers() -> None:
    one = "<PubmedArticle><PMID>{}</PMID><ArticleTitle>Eels</ArticleTitle><Abstract><AbstractText>They hide."
    articles = [f"{one.format(number)}</AbstractText></Abstract></PubmedArticle>" for number in (31, 32)]
    found = documents_of("a.xml", f"<PubmedArticleSet>{''.join(articles)}</PubmedArticleSet>")
    assert [document.doc_id for document in found] == ["a.xml#31", "a.xml#32"]


_WIKI = """{{Infobox lock|name={{x}}}}
A '''lock''' raises [[ship|boats]].&lt;ref name="a"&gt;Elm 2001&lt;/ref&gt;&lt;!-- hidden --&gt;

== Gates ==
* oak
# iron
{| class="wikitable"
! Lock !! style="width:3%" | Rise
|-
| Goole || 3
|}
See [https://x.org the site].
[[File:A.jpg|thumb|A [[lock]] at Goole]][[Category:Locks]]"""


def test_a_page_of_mediawiki_is_a_document_and_a_redirect_is_none() -> None:
    page = "<page><title>{}</title><id>{}</id>{}<revision><timestamp>2020-01-02T00:00:00Z</timestamp><text>{}</text>"
    pages = (
        ("Lock", 12, "", _WIKI),
        ("Sluice", 13, "<redirect title='Gate'/>", "#REDIRECT"),
        ("Weir", 14, "", "Slow."),
    )
    export = "".join(f"{page.format(*one)}</revision></page>" for one in pages)
    found = documents_of("a.xml", f"<mediawiki><siteinfo/>{export}</mediawiki>")
    assert [(document.doc_id, document.title) for document in found] == [("a.xml#12", "Lock"), ("a.xml#14", "Weir")]
    assert " ".join(found[0].text.split()) == (
        "Lock A lock raises boats. Gates - oak - iron Lock | Rise Goole | 3 See the site. A lock at Goole"
    )
    assert (found[0].metadata["keywords"], found[0].metadata["date"]) == (["Locks"], "2020-01-02")
    assert found[0].left_out == {"comments": 1, "references": 1, "raw_words": 4, "figures": 1, "other_documents": 1}


def test_a_book_without_an_order_is_read_in_the_order_of_its_files() -> None:
    pages = {"a.xhtml": "<p>One.</p>", "b.xhtml": "<p>Two.</p>"}
    assert document_of("a.epub", epub_bytes(pages, spine=["gone"])).text == "One.\n\nTwo."


def test_the_title_of_a_work_goes_before_that_of_its_journal() -> None:
    journal = "<journal_metadata><full_title>Weirs</full_title></journal_metadata>"
    work = "<work><titles><title>Silt</title></titles><abstract>Silt fills the old locks.</abstract></work>"
    assert document_of("a.xml", f"<doi_record>{journal}{work}</doi_record>").title == "Silt"
