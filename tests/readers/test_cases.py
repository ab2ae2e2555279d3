"""Inputs that readers once read wrongly, each of a kind: words that must be there, and words that must not."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.readers import Unreadable, is_readable, read_file
from engine.text.document import Document
from engine.text.units import Unit, divide_by

CASES = Path(__file__).parents[1] / "data" / "cases"


def documents(name: str) -> list[Document]:
    found = list(read_file(CASES / name))
    assert not any(isinstance(one, Unreadable) for one in found), found
    return [one for one in found if isinstance(one, Document)]


def on_one_line(document: Document) -> str:
    return " ".join(document.text.split())


@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        ("jats/notes.xml", ["acoustic doppler sonde", "RO designed the flume", "Batardeau", "dry."], []),
        ("html/opinion.html", ["forfeiture of wharfage"], []),
        ("docx/assembled.docx", ["Imported part", "rebuilt in basalt", "typed by hand"], []),
        ("markdown/rule.md", ["preamble speaks of the herons", "scope is the lower basin", "otters"], []),
        ("tei/letter.xml", ["lone bakr", "shew bread", "walked home to the blue door", "with maps and plates"],
         ["Capt.Captain", "bluegreen", "ran walked", "watre"]),
        ("latex/content.tex", ["47 L/s", "3 m.", "upper sluice", "lower sluice", "middle sluice", "Silt bound"],
         ["3cm"]),
        ("latex/arguments.tex", ["Les vannes are old", "sluice a gate that lets", "Warning", "Keep clear",
          "Die Schleuse"],
         ["sluicea", "WarningKeep", "french", "german"]),
        ("latex-path/main.tex", ["opening speaks of barges", "The end"], []),
        ("latex/preamble.tex", ["abstract speaks of cavitation", "Pumps move water"], []),
        ("epub/book.epub", ["speaks of eels", "speaks of otters"], []),
        ("pdf/form.pdf", ["Grey Kestrel of Goole", "Winter berth beside the malthouse"], []),
        ("pdf/japanese.pdf", ["堤防の上を人が歩く", "毎朝この", "帳面に"], [" を", "人が 歩"]),
        ("pdf/arabic.pdf", ["السلام على الأرض والأنهار"], ["السالم"]),
        ("pdf/printed-arabic.pdf", ["السلام على الأرض والأنهار في الليل (مثال) لا إله"], []),
        ("pdf/rowwise.pdf", ["records the level of the basin each morning and each evening, and reports any leak"], []),
        ("docx/dangling.docx", ["dredged to nine metres"], []),
        ("docx/strict.docx", ["tells of cofferdams"], []),
        ("html/superscripts.html", ["sediment^12 was 5 x 10^5 grains", "water^3 that"], []),
        ("jats/superscripts.xml", ["sediment^12 was 5 x 10^5 grains", "water^3 that"], []),
        ("html/redline.html", ["The toll is twenty pence. A keeper"], ["ten", "master"]),
        ("text/opinion.txt", ["judgment", "reservoir", "appurtenant", "contrary", "plaintiffs"], ["Cite as", "judg-"]),
        ("docx/ruby.docx", ["水門は古い"], ["すい"]),
        ("html/ruby.html", ["水門は古い"], ["すい"]),
        ("docx/hidden.docx", ["We offer the dredger for sale"], ["internal"]),
        ("docx/dropcap.docx", ["Harbours were built where"], []),
        ("text/rfc.txt", ["so that a tampered report is refused"], ["[Page 2]", "RFC 9999"]),
        ("markdown/survey.md", ["Locks are old"], ["Ann Vane"]),
        ("text/polish.txt", ["Śluza na Wiśle", "źródła", "Strażnik"], []),
        ("markdown/notebook.md", ["read at noon", "fell in the evening"], ["iVBOR"]),
        ("odt/formula.odt", ["The flow is Q = a/2 where a is the area"], []),
        ("docx/macros.docm", ["The banks are of clay"], []),
        ("jats/tex.xml", ["dQ/dt = κ Q", "where κ is the decay"], ["tex-math", "$"]),
        ("html/pre.html", ["Morning = 3 Noon = 4"], []),
    ],
)  # fmt: skip
def test_the_words_of_a_case(name: str, present: Sequence[str], absent: Sequence[str]) -> None:
    (document,) = documents(name)
    text = on_one_line(document)
    assert [words for words in present if words not in text] == []
    assert [words for words in absent if words in text] == []


@pytest.mark.parametrize(
    ("name", "title", "authors"),
    [
        ("tei/letter.xml", "Letters from the lock house", None),
        ("docx/titled.docx", "Survey of the lower Tarn", None),
        ("jats/authors.xml", "Silt transport in tidal locks", ["Rin Okabe", "Ines Alvor", "The Weir Consortium"]),
        ("markdown/survey.md", "Locks: a survey", ["Ann Vane", "Rin Okabe"]),
        ("latex-source/main.tex", "One paper", ["Ann Vane", "Rin Okabe", "Ines Alvor"]),
    ],
)
def test_the_title_and_the_authors_of_a_case(name: str, title: str, authors: list[str] | None) -> None:
    (document,) = documents(name)
    assert (document.title, document.metadata.get("authors")) == (title, authors)


def test_fields_of_front_matter_are_yaml() -> None:
    (document,) = documents("markdown/survey.md")
    assert document.metadata["abstract"] == "The abstract spans two lines\non barrages and weirs."
    assert document.metadata["summary"] == "A folded summary of sills."


def test_the_opening_of_a_body_is_a_section_of_its_own() -> None:
    (document,) = documents("jats/opening.xml")
    (section,) = [one for one in document.sections if "records the level" in document.text[one.start : one.stop]][:1]
    assert section.heading == ""


@pytest.mark.parametrize(
    ("name", "unread", "left_out"),
    [
        ("forty.docx", ["deleted", "ruby reading", "hidden", "deleted row", "comment", "header"],
         {"deleted_words": 2, "reading_words": 1, "hidden_words": 1, "comments": 1, "running_heads": 1}),
        ("forty-tei.xml", ["publication", "source", "reference title"], {"references": 1, "front_matter_words": 2}),
        ("forty-uspto.xml", ["patcit name", "othercit", "applicant", "chem text"],
         {"figures": 2, "references": 2, "front_matter_words": 3}),
        ("forty.html",
         ["h1", "header p", "img alt", "noscript", "svg text", "object fallback", "video fallback", "input value",
          "option", "textarea", "button", "span title", "area alt", "footer"],
         {"page_frame_words": 4, "figures": 4, "hidden_words": 2, "fallback_words": 1, "embedded_objects": 2,
          "form_words": 4, "reading_words": 1}),
        ("forty.md", ["strikethrough"], {"figures": 2, "comment_words": 1, "deleted_words": 1}),
        ("forty.rst", ["figure alt", "image alt", "raw"], {"figures": 2, "raw_words": 1, "comment_words": 3}),
    ],
)  # fmt: skip
def test_every_construct_is_read_or_counted(name: str, unread: Sequence[str], left_out: dict[str, int]) -> None:
    marks: dict[str, str] = json.loads((CASES / "forty" / "marks.json").read_text())[name]
    (document,) = documents(f"forty/{name}")
    shown = f"{document.title} {document.text} {json.dumps(dict(document.metadata), ensure_ascii=False)}"
    assert [construct for construct, mark in marks.items() if mark not in shown] == unread
    assert document.left_out == left_out
    assert [construct for construct, mark in marks.items() if document.text.count(mark) > 1] == []


@pytest.mark.parametrize(
    ("name", "unread", "left_out"),
    [
        ("forty-jats.xml", ["Reference words"], {"references": 1}),
        (
            "forty.tex",
            ["Short words", "State state words", "Bib words"],
            {"variant_words": 2, "comment_words": 2, "figures": 1, "references": 1, "undefined_labels": 2},
        ),
    ],
)
def test_every_word_of_a_construct_is_read(name: str, unread: Sequence[str], left_out: dict[str, int]) -> None:
    (document,) = documents(f"forty/{name}")
    source = (CASES / "forty" / name).read_text()
    shown = f"{document.text} {dict(document.metadata)}"
    constructs = re.findall(r"[A-Z][a-z]+(?: [a-z]+)? words", source)
    assert [words for words in constructs if words not in shown] == unread
    assert document.left_out == left_out


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("jats/set.xml", ["Lagoons hold herons.", "Estuaries hold otters.", "Fens hold bitterns."]),
        ("patents/weekly.xml", ["A pump with two seals.", "A gate of oak with a paddle."]),
        ("json/records.jsonl", ["eels hide", "hunt at dusk", "slow the current", "stand in the reeds"]),
        ("json/hupd.json", ["A pump moves water.\n\nDescription"]),
        ("json/courtlistener.jsonl", ["decides about pumps"]),
        ("json/s2orc.json", ["Introduction\n\nPumps move"]),
    ],
)
def test_a_file_can_hold_several_documents(name: str, texts: Sequence[str]) -> None:
    found = documents(name)
    assert [words in document.text for words, document in zip(texts, found, strict=False)] == [True] * len(texts)
    assert len({document.doc_id for document in found}) == len(texts)


def test_the_text_layer_has_answers_of_a_transcript_but_no_stamp() -> None:
    (document,) = documents("pdf/transcript.pdf")
    assert document.text.count("A. ") == 150
    (found,) = read_file(CASES / "pdf/stamp.pdf")
    assert isinstance(found, Unreadable) and "run OCR first" in found.reason


@pytest.mark.parametrize("name", ["ep.xml", "what.txt", "escaped.md", "german.md"])
def test_claims_are_found_by_their_numbers(name: str) -> None:
    (document,) = documents(f"claims/{name}")
    divided = divide_by(document, Unit.CLAIM)
    assert [divided.document.sections[row].heading for row in divided.rows] == ["Claim 1", "Claim 2"]


def test_no_word_of_a_case_is_lost_without_a_reason() -> None:
    files = [file for file in sorted(CASES.rglob("*")) if file.is_file() and is_readable(file)]
    lost = {
        (file.name, document.doc_id): document.left_out["unexplained_words"]
        for file in files
        for document in read_file(file)
        if isinstance(document, Document) and "unexplained_words" in document.left_out
    }
    assert lost == {}
