"""Id, title and texts of a JSON record, by the fields in which collections hold them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from engine.errors import DocumentError
from engine.readers.blocks import Blocks
from engine.text.cleaning import clean, one_line
from engine.text.spans import Heading

# Fields of CourtListener, CAP, HUPD, S2ORC, unarXive, arXiv and Anserini that hold text, with their headings, in order.
TEXT_FIELDS = {
    "abstract": "Abstract", "abstract_text": "Abstract", "abstract_localized": "Abstract", "summary": "Summary",
    "background": "Background", "contents": "", "content": "", "page_content": "", "plain_text": "", "raw_text": "",
    "body": "", "body_text": "", "full_text": "", "fulltext": "", "article": "", "article_text": "", "document": "",
    "passage": "", "segment": "", "paragraphs": "", "chapters": "", "casebody": "", "opinions": "", "sub_opinions": "",
    "pdf_parse": "", "grobid_parse": "", "latex_parse": "", "back_matter": "", "description": "Description",
    "full_description": "Description", "description_localized": "Description", "claims": "Claims",
    "claims_localized": "Claims", "html_with_citations": "", "html": "", "html_lawbox": "", "html_columbia": "",
    "html_anon_2020": "", "xml_harvard": "",
}  # fmt: skip
_TITLES = ("title", "case_name", "name", "name_abbreviation", "headline", "case_name_full", "title_localized")
IDS = (
    "_id", "id", "paper_id", "doc_id", "docid", "corpus_id", "corpusid", "arxiv_id", "application_number",
    "publication_number", "patent_number", "cluster_id", "uuid", "article_id", "patent_id", "lens_id", "doi", "pmid",
    "pmcid", "identifier", "url",
)  # fmt: skip
_PARTS = (
    "text",
    "abstract",
    "head_matter",
    "opinions",
    "body_text",
    "back_matter",
    "data",
    "plain_text",
    "content",
    "paragraphs",
    "sections",
    "subsections",
    "claims",
    "claim_text",
)  # of an object that holds text
_MARKED = ("html_with_citations", "html", "html_lawbox", "html_columbia", "html_anon_2020", "xml_harvard")  # with tags
_ENTRIES = "ref_entries"  # figures, tables and formulas of S2ORC and unarXive
_MAX_DEPTH = 6  # of text in objects
_SENTENCE = re.compile(r"</?S> ?")  # in articles of arXiv and PubMed for summaries
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# A part of an unarXive text that stands elsewhere in the record.
_REFERENCE = re.compile(r"\{\{([a-z]{1,20}):([^{}]{1,200})\}\}")


def usual_names(record: dict[str, Any]) -> dict[str, Any]:
    """The record with fields such as "Title" and "caseName" under the names of this module."""
    known = {"text", "sections", *TEXT_FIELDS, *_TITLES, *IDS}
    others = {key: _CAPITAL.sub("_", key).lower() for key in record if key not in known}
    renamed = {key: name for key, name in others.items() if name != key and name in known and name not in record}
    record = {renamed.get(key, key): value for key, value in record.items()} if renamed else record
    places = record.get("abstract_inverted_index")  # of OpenAlex: the places of each word
    if isinstance(places, dict) and "abstract" not in record:
        order = [(place, word) for word, found in places.items() if isinstance(found, list) for place in found]
        record = {key: value for key, value in record.items() if value is not places}
        record["abstract"] = " ".join(word for _, word in sorted(order, key=lambda one: str(one[0]).zfill(9)))
    inside = record.get("metadata")
    is_whole = {"text", "sections", *TEXT_FIELDS}.isdisjoint(record)
    if is_whole and isinstance(inside, dict) and isinstance(inside.get("sections"), list):  # of Science Parse
        return usual_names({key: value for key, value in record.items() if value is not inside} | inside)
    return record


def id_of(record: Mapping[str, Any]) -> str:
    """The id of a record.

    Raises:
        DocumentError: it has none.
    """
    own_id = next((record[name] for name in IDS if name in record), None)
    if isinstance(own_id, bool) or not isinstance(own_id, str | int | float) or not str(own_id).strip():
        raise DocumentError('the record has no id; give it a field "_id" with a text or a number')
    return str(own_id)


def title_of(record: Mapping[str, Any]) -> str:
    """The title of a record, or "".

    Raises:
        DocumentError: the title is no text.
    """
    inside = record.get("metadata") if isinstance(record.get("metadata"), dict) else {}
    places = ((record, _TITLES), (inside or {}, ("title",)))
    named = (text_of(place, name) for place, names in places for name in names if isinstance(place.get(name), str))
    title = next((title for title in named if title.strip()), "")
    of_parts = (text for name in _TITLES for _, text in _parts_of(record.get(name), "", 1, Counter()))
    return title or next((text for text in of_parts if text.strip()), "")


def text_of(record: Mapping[str, Any], field: str) -> str:
    """The text, or the paragraphs, in a field; "" where the field is absent.

    Raises:
        DocumentError: the field holds something else.
    """
    value = record.get(field)
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = "\n\n".join(value)
    if not isinstance(value, str):
        raise DocumentError(f'the field "{field}" is {type(value).__name__}, not text')
    return clean(value)


def texts_of(record: Mapping[str, Any], left_out: Counter[str]) -> dict[str, list[tuple[str, str]]]:
    """The headings and texts of a record by field; {} if it has no text. Counts in `left_out` are of pages."""
    found: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    for name, heading in TEXT_FIELDS.items():
        if found and (name in _MARKED or (name == "article_text" and record.get("sections"))):
            continue  # the same text with its tags
        parts = [(title, text) for title, text in _parts_of(record.get(name), heading, 0, left_out) if text not in seen]
        seen.update(text for _, text in parts if text)
        if any(text.strip() for _, text in parts):
            found[name] = [(title, _written_out(text, record)) for title, text in parts]
    return found | ({_ENTRIES: list(_captions(record))} if found else {})


def _parts_of(value: object, heading: str, depth: int, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Headings and texts in a value: a text, a page, a list, or an object that holds a text."""
    if isinstance(value, str):
        value = _SENTENCE.sub("", value) if "</S>" in value else value
        is_page = value.lstrip().startswith("<")
        yield from _parts_of_page(value, heading, left_out) if is_page else [(heading, clean(value))]
    elif isinstance(value, list) and depth < _MAX_DEPTH:
        is_bare = heading == "Claims" and all(isinstance(item, str) and item[:1].isalpha() for item in value)
        before = ""  # the section of the paragraph before
        for item in [f"{number}. {item}" for number, item in enumerate(value, 1)] if is_bare else value:
            for name, text in _parts_of(item, heading, depth + 1, left_out):
                is_same = isinstance(item, dict) and "section" in item and name == before
                yield "" if is_same else name, text
                before, heading = name, "" if name == heading else heading
    elif isinstance(value, dict) and depth < _MAX_DEPTH:
        own = next(
            (value[name] for name in ("section", "heading", "title", "type") if isinstance(value.get(name), str)), ""
        )
        if languages := [name for name in value if len(str(name)) == 2]:  # the same text in several
            value = {"text": value.get("en", value[languages[0]])} | value
        is_read = False
        for part in (*_PARTS, *_MARKED):
            if value.get(part) and not (is_read and part in _MARKED):
                named = "Abstract" if part == "abstract" else one_line(own) or heading
                for name, text in _parts_of(value[part], named, depth + 1, left_out):
                    yield name, text
                    is_read |= bool(text.strip())


def _parts_of_page(page: str, heading: str, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Headings and texts of HTML or XML in a field, as the reader of HTML has them."""
    from engine.readers import html  # most records hold no markup

    blocks = Blocks()
    html.add_page(page.encode(), blocks)
    left_out.update(blocks.left_out)
    marks = [Heading(heading, 1, 0), *blocks.headings, Heading("", 1, len(blocks.text))]
    for mark, following in pairwise(marks):
        yield mark.title, blocks.text[mark.start : following.start].removeprefix(mark.title)


def _written_out(text: str, record: Mapping[str, Any]) -> str:
    """A text of unarXive with its formulas in place, and without its marks of citations, figures and tables."""
    if "{{" not in text:
        return text
    entries = record.get(_ENTRIES)

    def written(mark: re.Match[str]) -> str:
        entry = entries.get(mark.group(2)) if isinstance(entries, dict) else None
        formula = entry.get("latex") if isinstance(entry, dict) else None
        return f"${formula}$" if isinstance(formula, str) else ""

    return _REFERENCE.sub(written, text)


def _captions(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The captions of figures and tables, which S2ORC and unarXive have beside the text."""
    entries, heading = record.get(_ENTRIES), "Figures and tables"
    for entry in entries.values() if isinstance(entries, dict) else ():
        named = (entry.get(name) for name in ("caption", "text")) if isinstance(entry, dict) else ()
        for caption in named:
            if isinstance(caption, str) and caption.strip():
                yield heading, clean(caption)
                heading = ""
