"""Variants of constructs, as the files of each format have them: the whole text on one line, and fields."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.readers.test_kinds import documents

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
        ({"title": "T", "latex_parse": {"body_text": [{"text": "One."}]}}, "T One.", {}),
        ({"abstract": "An aim.", "authors_parsed": [["Vane", "Ann", ""], ["Okabe", "Rin", ""]]}, "Abstract An aim.",
         _AUTHORS),
        ({"text": None, "abstract": "An aim."}, "Abstract An aim.", {}),
        ({"text": "", "body": "Words."}, "Words.", {}),
        ({"Title": "T", "Text": "Words."}, "T Words.", {}),
        ({"title_localized": [{"text": "Pump"}], "claims_localized": [{"text": "1. A pump."}]},
         "Pump Claims 1. A pump.", {}),
        ({"abstract": {"de": "Ein Ziel.", "en": [{"text": "An aim."}]}}, "Abstract An aim.", {}),
        ({"sections": {"Intro": "One."}, "abstract": "An aim."}, "Abstract An aim. Intro One.", {}),
        ({"sections": [["One.", "Two."]], "section_names": ["Intro"], "article_text": ["One."],
          "abstract_text": ["<S> An aim . </S>"]}, "Abstract An aim . Intro One. Two.", {}),
        ({"metadata": {"title": "T", "sections": [{"heading": "I", "text": "One."}], "abstractText": "Aim."},
          "name": "x.pdf"}, "T Abstract Aim. I One.", {}),
        ({"abstract_inverted_index": {"herons": [1], "Grey": [0]}}, "Abstract Grey herons", {}),
    ],
)  # fmt: skip
def test_records_of_known_collections(record: dict[str, object], text: str, fields: Mapping[str, object]) -> None:
    (document,) = documents("a.jsonl", json.dumps({"id": "1"} | record))
    assert " ".join(document.text.split()) == text
    assert {field: document.metadata.get(field) for field in fields} == fields


@pytest.mark.parametrize("name", ["doi", "pmid", "url", "uuid", "lens_id", "article_id"])
def test_a_record_can_have_its_id_under_another_name(name: str) -> None:
    (document,) = documents("a.jsonl", json.dumps({name: "10.1/x", "text": "Words."}))
    assert document.doc_id == "10.1/x"
