"""JSON and JSON lines: records, metadata, bad lines, and limits."""

import io
import json
import time
from typing import Any

import pytest

from engine.errors import DocumentError
from engine.readers import read_bytes
from engine.readers.jsonl import read, stream
from engine.text.document import Document, Unreadable
from engine.text.units import Unit, divide_by

BODY = "A sentence of the body that is long enough. " * 6


def one(record: dict[str, Any]) -> Document | Unreadable:
    (result,) = stream(io.BytesIO(json.dumps(record).encode() + b"\n"), "c.jsonl")
    return result


def document_of(record: dict[str, Any]) -> Document:
    result = one(record)
    assert isinstance(result, Document)
    return result


def test_a_record_of_beir_is_read_and_what_cannot_be_stored_replaced() -> None:
    document = document_of({"_id": "d1", "title": "T", "text": "Hello.", "metadata": {"url": "u", "year": 2020}})
    assert (document.doc_id, document.title, document.text) == ("d1", "T", "T\n\nHello.")
    assert document.metadata == {"url": "u", "year": 2020}
    assert document.source == "c.jsonl:1"
    document = document_of({"id": "a\ud800", "title": "t\x00", "text": "x\r\ny\ud800", "meta": {"k": "\udfff"}})
    assert (document.doc_id, document.title, document.text) == ("a\ufffd", "t\ufffd", "t\ufffd\n\nx\ny\ufffd")
    assert document.metadata == {"k": "\ufffd"}


def test_sections_keep_their_headings_and_text() -> None:
    sections = [{"heading": "One", "text": BODY}, {"title": "Two", "text": BODY, "level": 2}]
    document = document_of({"id": 7, "title": "T", "sections": sections})
    assert document.doc_id == "7"
    assert document.text == f"T\n\nOne\n\n{BODY}\n\nTwo\n\n{BODY}"
    assert [section.path for section in document.sections] == [("One",), ("One", "Two")]
    assert document.text[document.sections[1].start :].startswith("Two\n\n")


def test_metadata_is_flattened() -> None:
    meta = {"venue": {"name": "ACL"}, "authors": [{"name": "Ann"}, {"name": "Bob"}], "tags": ["x", 1], "big": 2**70}
    document = document_of({"id": "a", "text": "x", "meta": meta, "lang": "en", "topics": ["p"], "vector": [0.1, 0.2]})
    assert document.metadata == {
        "lang": "en", "topics": ["p"], "venue.name": "ACL", "authors.name": ["Ann", "Bob"], "tags": ["x", 1],
        "big": str(2**70),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"text": "x"}, 'has no id, its fields are text; give it a field "_id" with a text or a number, or name'),
        ({"id": "", "text": "x"}, "has no id, its fields are id, text; "),
        ({"id": True, "text": "x"}, "has no id, its fields are id, text; "),
        ({"id": "a", "notes": "made by hand", "body_text": []}, 'no field "text"'),
        ({"id": "a", "text": 5}, 'field "text" is int, not text'),
        ({"id": "a", "sections": {"x": 1}}, "not a list of objects"),
        ({"id": "a", "sections": [1]}, "section 0 is int"),
        ({"id": 1, "sections": [{"heading": "A", "sentences": ["Lost."]}]},
         'section 0 has no field "text"; its fields are heading, sentences'),
        ({"id": "a", "text": "x", "meta": [1]}, 'field "metadata" is list'),
        ({"id": "a", "text": "x", "meta": {"k": float("nan")}}, 'metadata "k" is nan'),
    ],
)  # fmt: skip
def test_a_bad_record_is_unreadable_with_a_reason(record: dict[str, Any], reason: str) -> None:
    result = one(record)
    assert isinstance(result, Unreadable)
    assert reason in result.reason


def test_a_section_whose_text_has_an_unknown_name_is_refused() -> None:
    result = one({"id": 1, "sections": [{"heading": "A", "sentences": ["Lost."]}]})
    assert result == Unreadable("c.jsonl:1", 'section 0 has no field "text"; its fields are heading, sentences', "1")


def test_bad_lines_do_not_stop_the_others() -> None:
    lines = (
        b'\xef\xbb\xbf{"id": 1, "text": "a"}\n\n{"id": 2\n\xff\xfe\n[1]\n'
        + b"[" * 100_000
        + b'\n{"id": 3, "text": "c"}'
    )
    results = list(stream(io.BytesIO(lines), "c.jsonl"))
    assert [item.source for item in results] == [f"c.jsonl:{number}" for number in (1, 3, 4, 5, 6, 7)]
    assert [item.doc_id for item in results if isinstance(item, Document)] == ["1", "3"]
    reasons = [item.reason for item in results if isinstance(item, Unreadable)]
    assert [reason[:24] for reason in reasons] == [
        "it is not JSON: Expectin", "it starts with the mark ", "it is a JSON list, not a", "it is not JSON: maximum ",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("iso-8859-1", "Die Schleuse ist größer."),
        ("iso-8859-2", "Śluza na Wiśle jest stara i pięknie położona."),
        ("cp1251", "Шлюз на реке стоит давно."),
    ],
)
def test_lines_that_are_not_utf8_have_one_encoding(encoding: str, text: str) -> None:
    records = [json.dumps({"id": number, "text": text}, ensure_ascii=False) for number in range(4)]
    lines = (record.encode(encoding if number % 2 else "utf-8") for number, record in enumerate(records))
    results = stream(io.BytesIO(b"\n".join(lines)), "c.jsonl")
    assert [one.text for one in results if isinstance(one, Document)] == [text] * 4


def test_nested_values_of_metadata_are_left_out_and_their_words_counted() -> None:
    metadata = {"k": [[1]], "spans": [1, [2], {"by": "Ann", "at": [3]}], "venue": "ACL", "notes": [["two words"]]}
    document = document_of({"id": "a", "text": "x", "metadata": metadata})
    assert document.metadata == {"spans": [1], "spans.by": ["Ann"], "venue": "ACL", "left_out_field_words": 2}


@pytest.mark.parametrize("data", [b"", b"\n \n", b"[]"])
def test_a_file_without_a_record_is_unreadable(data: bytes) -> None:
    (result,) = stream(io.BytesIO(data), "c.jsonl", doc_id="c")
    assert isinstance(result, Unreadable)
    assert (result.doc_id, result.source) == ("c", "c.jsonl")


def test_a_huge_line_is_skipped_without_being_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.readers.jsonl._MAX_LINE_BYTES", 100)
    results = list(stream(io.BytesIO(b"x" * 5000 + b'\n{"id": 2, "text": "b"}\n'), "c.jsonl"))
    assert isinstance(results[0], Unreadable)
    assert results[0].reason.startswith("the line is more than 100 bytes")
    assert results[1].source == "c.jsonl:2"


def test_a_json_file_is_one_document() -> None:
    document = read(b'{"id": "x", "text": "Hi."}', "f.json", "f.json")
    assert (document.doc_id, document.text, document.metadata) == ("f.json", "Hi.", {"id": "x"})


@pytest.mark.parametrize(
    ("source", "ids"),
    [
        ('{"US1": {"title": "Gate", "claims": ["A gate."]}, "US2": {"full_text": "A pump."}}', ["US1", "US2"]),
        ('{"a": {"_id": "own", "text": "A gate."}, "b": {"text": "A pump."}}', ["own", "b"]),
        ('{"abstract": {"text": "A gate."}, "body": {"text": "A pump."}}', []),
        ('{"title": "Gate", "metadata": {"text": "of oak"}, "text": "A gate."}', []),
        ('{"query": {"pages": {"7": {"extract": "A gate."}, "8": {"extract": "A pump."}}}}', ["7", "8"]),
        ('{"docstore/metadata": {"n": {"doc_hash": "ab"}}, "docstore/data": {"n": {"__data__": {"id_": "n", "text": '
         '"A gate."}, "__type__": "1"}, "m": {"__data__": {"text": "A pump."}, "__type__": "1"}}}', ["n", "m"]),
        ('{"ids": ["a", "b"], "documents": ["A gate.", "A pump."], "metadatas": [null, null], "embeddings": null}',
         ["a", "b"]),
        ('{"title": {"0": "Gate", "1": "Pump"}, "text": {"0": "A gate.", "1": "A pump."}}', ["1", "2"]),
        ('{"title": ["Gate", "Pump"], "text": ["A gate.", "A pump."]}', ["1", "2"]),
    ],
)  # fmt: skip
def test_an_object_of_records_is_several_documents(source: str, ids: list[str]) -> None:
    documents = list(read_bytes(source.encode(), "a.json"))
    assert [document.doc_id for document in documents] == ([f"a.json#{own_id}" for own_id in ids] or ["a.json"])


def test_lines_without_an_id_are_named_by_their_numbers_and_those_of_a_bulk_file_by_its_actions() -> None:
    lines = [
        '{"text": "A."}',
        "",
        '{"id": "x", "text": "B."}',
        '{"index": {"_index": "i", "_id": "7"}}',
        '{"text": "C."}',
    ]
    lines += [
        '{"delete": {"_id": 9}}',
        '{"create": {}}',
        '{"text": "D.", "user_id": 5}',
        '{"index": {"text": "E."}}',
        '{"id": "y"}',
    ]
    found = read_bytes("\n".join(lines).encode(), "a.jsonl")
    assert [one.doc_id for one in found] == ["a.jsonl#1", "x", "7", "a.jsonl#8", "a.jsonl#9", "y"]


@pytest.mark.parametrize("blank", [b"\n", b" \r\n"])
def test_blank_lines_are_skipped_and_counted(blank: bytes) -> None:
    data = blank * 3_000_000 + b'{"id": 1, "text": "a"}\n' + blank * 9 + b"bad\n  "
    stream_of_bytes = io.BytesIO(data)
    first, second = stream(stream_of_bytes, "c.jsonl")
    assert isinstance(first, Document) and isinstance(second, Unreadable)
    assert (first.source, second.source) == ("c.jsonl:3000001", "c.jsonl:3000011")
    assert not stream_of_bytes.closed


_ONE, _TWO = '{"id": 1,\t"text": "One."}', '{"id": 2, "text": "Two."}'


@pytest.mark.parametrize(
    ("source", "n_failed"),
    [
        (f"[{_ONE}, {_TWO}]", 0), (f"[\n{_ONE},\n{_TWO}\n]\n", 0), (f"{_ONE},\n{_TWO},\n", 0), (_ONE + _TWO, 0),
        (json.dumps([json.loads(one) for one in (_ONE, _TWO)], indent=1), 0), (f"[{_ONE},{_TWO}]", 0),
        ("\n".join(json.dumps(json.loads(one), indent=2) for one in (_ONE, _TWO)), 0),
        (_ONE.replace("One.", "One\n\t.") + f"\n{_TWO}", 0), (f"[\n{_ONE},\n{{,}},\n{_TWO}", 1),
        (f'[{_ONE}, {_TWO}, {{"id": 3', 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_objects_are_read_in_lists_and_one_after_the_other(
    source: str, n_failed: int, name: str, encoding: str
) -> None:
    if encoding != "utf-16" and name == "a.jsonl":
        source = source.replace("\n\t.", "\t.")  # a line break ends an object of lines
    found = list(read_bytes(source.encode(encoding), name))
    assert ["".join(one.text.split()) for one in found if isinstance(one, Document)] == ["One.", "Two."]
    assert sum(isinstance(one, Unreadable) for one in found) == n_failed


def test_records_of_a_list_with_the_same_id_are_named_by_their_places() -> None:
    found = read_bytes(f"[{_ONE}, {_ONE}]".encode(), "a.json")
    assert [one.doc_id for one in found] == ["a.json#1", "a.json#2"]


@pytest.mark.parametrize(
    "claims",
    [
        "1. A pump of brass. 2. The pump of claim 1, with 3. Seals; and\n3. A drain.",
        "What is claimed is: 1. A pump. 2. A gate. 3. A drain.",
        [{"text": "1. A pump. 2. A gate. 3. A drain.", "language": "en"}],
        ["A pump.", "The pump of claim 1.", "A drain."],
        [{"id": "CLM-1", "text": "A pump."}, {"id": "CLM-2", "text": "The pump of claim 1."}, {"text": "A drain."}],
        [
            {"num": "0001", "text": "A pump."},
            {"num": 2, "claim_text": "A gate."},
            {"claim_number": 3, "text": "A drain."},
        ],
        {"1": "A pump.", "2": "A gate.", "3": "A drain."},
        "<claims><claim><claim-text>1. A pump with: <claim-text>a seal.</claim-text></claim-text></claim>"
        "<claim><claim-text>2. A gate.</claim-text></claim><claim><claim-text>3. Drain.</claim-text></claim></claims>",
        "What is claimed is: <br />1. A pump.<br />2. A gate.<br />3. Drain.",
        "<ol><li>A pump.</li><li>A gate.</li><li>A drain.</li></ol>",
    ],
)
@pytest.mark.parametrize("name", ["claims", "claims_html", "claimText"])
def test_claims_of_a_record_are_found_by_their_numbers(claims: object, name: str) -> None:
    document = document_of({"id": 1, "title": "Pump", name: claims, "description": "It lifts."})
    found = divide_by(document, Unit.CLAIM)
    assert [found.document.sections[row].heading for row in found.rows] == ["Claim 1", "Claim 2", "Claim 3"]


def test_many_fields_of_many_objects_take_linear_time() -> None:
    objects = [{f"k{number}": number} for number in range(50_000)]
    start = time.process_time()
    metadata = document_of({"id": 1, "text": "a", "metadata": {"x": objects}}).metadata
    assert time.process_time() - start < 5
    assert (metadata["x.k0"], metadata["x.k49999"], len(metadata)) == ([0], [49999], 50_000)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[]", "write one object a line"),
        (b'{"text": "a", "x": [' + b"[],{}," * 1_500_000 + b"1]}", "it has 3,000,002 brackets, the limit is 3,000,000"),
        (b'{"text": "a", "metadata": ' + b'{"ab":' * 400 + b"1" + b"}" * 401, "nested too deeply"),
    ],
    ids=["a list", "values that would fill the memory", "metadata nested without end"],
)
def test_a_file_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(data, "a", "a.json")


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"title": "Only this", "text": ""}, "Only this"),
        ({"plain_text": "", "html_with_citations": "<p>raised the gate.<sup>1</sup></p><pre>ORDER</pre><del>ten</del>"},
         "raised the gate.^1\n\nORDER"),
        ({"html": "<h2>Facts</h2><p>A gate.</p><h2>Law</h2><p>A rule.</p>"}, "Facts\n\nA gate.\n\nLaw\n\nA rule."),
        ({"sections": [{"heading": "A", "paragraphs": ["One.", "Two."]}, {"heading": "B", "content": "Three."}]},
         "A\n\nOne.\n\nTwo.\n\nB\n\nThree."),
        ({"sections": [{"heading": "A", "text": "One.", "subsections": [{"heading": "A1", "text": "Two."}]}]},
         "A\n\nOne.\n\nA1\n\nTwo."),
        ({"body_text": [{"section": "Proof", "text": "Let {{formula:f1}} be, see {{cite:c1}}."}],
          "ref_entries": {"f1": {"type": "formula", "latex": "x^2"}, "t": {"type": "table", "caption": "Rates"}}},
         "Proof\n\nLet x^2 be, see.\n\nFigures and tables\n\nRates"),
        ({"snippet": "The <mark>board</mark> took it."}, "The board took it."),
        ({"opinions": [{"snippet": "The board.", "type": "lead-opinion"}]}, "lead-opinion\n\nThe board."),
        ({"plain_text": "All of it.", "snippet": "of it"}, "All of it."),
    ],
)  # fmt: skip
def test_records_of_other_collections_lose_no_text(record: dict[str, Any], text: str) -> None:
    assert document_of({"publication_number": "US1", **record}).text == text


def test_inventors_of_hupd_are_named_and_a_block_of_mineru_without_a_type_is_refused() -> None:
    people = [{"inventor_name_last": "Vane", "inventor_name_first": "Ann", "inventor_city": "Goole"}]
    for name in ("inventor_list", "inventors"):
        document = document_of({"id": 1, "text": "A pump.", name: people})
        assert document.metadata == {"inventors": ["Ann Vane"], "left_out_field_words": 1}
    with pytest.raises(DocumentError, match='the "type" of its block 1 is no text'):
        read(b'[{"type": {}, "text": "a", "page_idx": 0}]', "a", "a.json")


def test_sections_inside_of_sections_have_their_levels_and_pages_count_what_they_leave_out() -> None:
    inner = {"heading": "A1", "text": BODY}
    nested = document_of({"id": 1, "sections": [{"heading": "A", "text": BODY, "sections": [inner]}]})
    assert [section.path for section in nested.sections] == [("A",), ("A", "A1")]
    page = document_of({"id": 1, "html": f"<p>{BODY} <del>two words</del></p>"})
    assert page.metadata["left_out_deleted_words"] == 2


@pytest.mark.parametrize(
    ("record", "title", "text"),
    [
        ({"pages": [{"index": 0, "markdown": "The judg-"}, {"index": 1, "markdown": "ment."}]}, "1", "The judgment."),
        ({"pages": ["The judg-", "ment."]}, "1", "The judgment."),
        ({"full_text": [{"page": 1, "text": "One."}, {"page": 2, "text": "Two."}]}, "1", "One. Two."),
        ({"title": "T", "text": "One.", "pages": "12-34"}, "T", "T One."),
        ({"title_localized": [{"text": "Pumpe", "language": "de"}, {"text": "Pump", "language": "en"}],
          "abstract_localized": [{"text": "Eine.", "language": "de"}, {"text": "One.", "language": "en"}]}, "Pump",
         "Pump Abstract One."),
        ({"title": "Opinion", "text": "COURT OF GOOLE\n\nANN VANE,\nPlaintiff,\n\nv.\n\nLIME INC.,\nDefendant.\n"},
         "ANN VANE v. LIME INC.", "Opinion COURT OF GOOLE ANN VANE, Plaintiff, v. LIME INC., Defendant."),
    ],
    ids=["pages of Mistral", "bare pages", "pages", "pages of a journal", "languages", "a title of many"],
)  # fmt: skip
def test_pages_languages_and_titles_of_records(record: dict[str, object], title: str, text: str) -> None:
    (document,) = read_bytes(json.dumps({"id": "1"} | record).encode(), "a.jsonl")
    assert isinstance(document, Document)
    assert (document.title, " ".join(document.text.split())) == (title, text)


def test_what_an_answer_has_beside_its_records_is_counted() -> None:
    records = [{"id": number, "attributes": {"title": "T", "text": "One."}} for number in (1, 2)]
    answer = {"response": {"docs": records, "note": "two words"}, "included": [{"name": "Ann Vane"}], "unread": 5}
    found = [one for one in read_bytes(json.dumps(answer).encode(), "a.json") if isinstance(one, Document)]
    assert [(one.doc_id, one.left_out) for one in found] == [("a.json#1", {"field_words": 4}), ("a.json#2", {})]
