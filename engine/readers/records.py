"""Id, title and texts of a JSON record, by the fields in which collections hold them."""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from engine.errors import DocumentError
from engine.readers import left_out as reasons
from engine.readers.blocks import Blocks, n_lost
from engine.text.cleaning import clean, one_line, raised
from engine.text.segmentation import Heading

# Fields of CourtListener, CAP, HUPD, S2ORC, unarXive, arXiv and Anserini that hold text, with their headings, in order.
TEXT_FIELDS = {
    "abstract": "Abstract", "abstract_text": "Abstract", "abstract_localized": "Abstract", "abstract_note": "Abstract",
    "summary": "Summary",
    "background": "Background", "contents": "", "content": "", "page_content": "", "plain_text": "", "raw_text": "",
    "body": "", "body_text": "", "full_text": "", "fulltext": "", "article": "", "article_text": "", "document": "",
    "passage": "", "segment": "", "paragraphs": "", "chapters": "", "casebody": "", "opinions": "", "sub_opinions": "",
    "pdf_parse": "", "grobid_parse": "", "latex_parse": "", "back_matter": "", "description": "Description",
    "full_description": "Description", "description_localized": "Description", "claims": "Claims",
    "claims_localized": "Claims", "html_with_citations": "", "html": "", "html_lawbox": "", "html_columbia": "",
    "html_anon_2020": "", "xml_harvard": "", "recitals": "", "main_body": "", "attachments": "", "facts": "Facts",
    "law": "Law", "tldr": "Summary", "judgment": "", "judgement": "", "transcript": "", "markdown": "",
    "content_html": "", "extract": "", "report": "", "reports": "", "highlight": "Highlights", "snippet": "",
    "context": "",
}  # fmt: skip
_NOTES = dict.fromkeys(["footnotes", "notes", "endnotes"], "Notes")  # of a text in another field
_TITLES = ("title", "case_name", "name_abbreviation", "name", "headline", "case_name_full", "title_localized",
           "invention_title", "docname")  # fmt: skip
IDS = (
    "_id", "id", "paper_id", "doc_id", "docid", "corpus_id", "corpusid", "arxiv_id", "application_number",
    "publication_number", "patent_number", "cluster_id", "uuid", "article_id", "patent_id", "lens_id", "doi", "pmid",
    "pmcid", "identifier", "docno", "doc_no", "uid", "guid", "bibcode", "accession_number", "accession_no", "pid",
    "ecli", "url", "filename", "file_name", "key", "slug", "index", "idx", "id_",
)  # fmt: skip
_PAGE_FURNITURE = frozenset(["header", "footer", "page_number", "aside_text"])
_KINDS = {  # of blocks, as MinerU names them
    "PageNumber": "page_number", "Formula": "equation", "Picture": "image", "Page-header": "header",
    "Page-footer": "footer",
}  # fmt: skip
_CELL_END, _ROW_END = re.compile(r"</t[dh]>(?=\s*<t[dh])"), re.compile("</tr>")
_ID = re.compile(  # of a field beside those, but not one that many records share
    r"(?!.*(?:author|user|owner|journal|venue|source|court|company|parent|group|category|language)_?(?:u?id|Id)$)"
    r"(?:[a-z]+(?:_u?id|Id)$|id_$|(?:bill|case|doc|file|item|record)id$)"
)
_PARTS = (
    "text", "abstract", "head_matter", "opinions", "body_text", "back_matter", "data", "plain_text", "content",
    "paragraphs", "sections", "subsections", "elements", "claims", "claim_text", "rendered", "description", "context",
)  # fmt: skip  # of an object that holds text
_COLUMNS = {"ids": "id", "documents": "text", "metadatas": "metadata"}  # of Chroma
_NAMES_OF_SECTIONS = ("section", "heading", "title", "section_name", "section_title")
_EXCERPTS = ("snippet", "context")  # of a text that may stand beside them
_MARKED = ("html_with_citations", "html", "html_lawbox", "html_columbia", "html_anon_2020", "xml_harvard")  # with tags
COUNTED = {  # fields with parts that are counted instead of read
    **dict.fromkeys(["bib_entries", "references", "bibliography"], reasons.REFERENCES),
    "pictures": reasons.FIGURES,
    "furniture": reasons.RUNNING_HEADS,
}
_PAGE_NUMBERS = frozenset(["page", "page_number", "page_no", "page_num", "pageNumber", "page_index", "index"])
_NUMBERS = ("claim_number", "claim_num", "number", "num", "claim_no", "paragraph_number", "para_num")
_NUMBERED = ("text", "claim_text", "content")
_NEXT_CLAIM = re.compile(r"(?<=[.;,])\s*\b(\d{1,3})\s?\.\s+(?=[A-Z])")
_FIRST_CLAIM = re.compile(r"((?:[^.:\d]{0,80}:)?)\s*+1\s?[.)]")  # maybe behind "What is claimed is:"
_OF_XML = re.compile(r"\s*<(?:\?xml\b|([A-Za-z][\w.:-]*))")
_PROLOG, _PREFIX = re.compile(r"<\?[^<>]*\?>|<!DOCTYPE[^<>]*>"), re.compile(r"(</?)\w+:(?=\w)")
_BLOCK_END = re.compile(r"<br\s*/?>|</(?:p|div|li|h[1-6])>", re.IGNORECASE)
_BLOCK_TAGS = {"title": "h4", "heading": "h4", "head": "h4", "footnotemark": "sup", "page-number": "b"}
_SENTENCE_END = re.compile(r"\w\w[.?!;:][)\"\u201d]?(?:\s|$)")
_LEAST_PROSE, _LEAST_SENTENCES = 40, 2  # words and sentences of a field that is no metadata
_INLINE = re.compile(r"<(i|b|em|strong|su[bp]|u|scp|mark)(?:\s[^<>]{0,200})?>([^<>]{0,500})</\1>")
_TAG = re.compile(r"<[^<>]{1,2000}>")
_OPINION = re.compile(
    r"(?:\d{3})?((?:combined|unanimous|lead|majority|plurality|concur|dissent|in-?part|per.?curiam|rehearing|remittitur"
    r"|addendum|opinion|on-the-merits|trial-?court)[\w -]{0,40})",
    re.IGNORECASE,
)  # kinds of opinions in CourtListener and CAP
_ENTRIES = "ref_entries"  # figures, tables and formulas of S2ORC and unarXive
_MAX_DEPTH = 6  # of text in objects
_MAX_WRAPPED = 3  # objects around a record
_WRAPPERS, _HEAD = ("content", "article", "document"), re.compile("(?:title|abstract)$", re.IGNORECASE)
_LISTED = ("title", "abstract", "description")  # fields that can be lists with names in the plural
_HEADINGS_OF_BIOC = {  # of sections without a title
    "ABSTRACT": "Abstract", "INTRO": "Introduction", "METHODS": "Methods", "RESULTS": "Results",
    "DISCUSS": "Discussion", "CONCL": "Conclusions",
}  # fmt: skip
_INFONS = ("article-id_doi", "article-id_pmid", "article-id_pmc", "journal")
_SENTENCE = re.compile(r"</?S> ?")  # in articles of arXiv and PubMed for summaries
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NOTATION = re.compile("_(?:html|text|txt(?:_[a-z]{2})?|xml|md|markdown|raw|t|s)$")
_OF_OTHERS = re.compile("author|inventor|affil|licen|copyright|referenc|citation|keyword|url|prompt|metadata")
_OWNER = re.compile(
    r"^(?:patent|invention|paper|article|document|doc|case|opinion|main|clean|book|bill|report|work|publication)_"
    r"(?=(?:title|abstract|claims|description|text|body)$)|^(?:raw|ocr|extracted)_(?=content$)|^dc(?:terms)?[.:](?:\w+\.)?"
)
_PARSES = ("pdf_parse", "latex_parse", "grobid_parse")
# A part of an unarXive text that stands elsewhere in the record.
_REFERENCE = re.compile(r"([ \t]?)\{\{([a-z]{1,20}):([^{}]{1,200})\}\}")


def is_bioc(record: object) -> bool:
    """Whether a record is a document of BioC."""
    passages = record.get("passages") if isinstance(record, dict) else None
    return isinstance(passages, list) and bool(passages) and isinstance(passages[0], dict) and "infons" in passages[0]


def of_bioc(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a document of BioC (PubMed Central, PubTator), whose passages say what they are."""
    record: dict[str, Any] = {
        key: value for key, value in document.items() if key not in ("passages", "annotations", "relations")
    }
    sections: list[dict[str, Any]] = []
    cited, part_before = [], ""
    for passage in document["passages"]:
        if not isinstance(passage, dict) or not isinstance(infons := passage.get("infons") or {}, dict):
            raise DocumentError("a passage of it is no object with infons and a text")
        kind, part = (str(infons.get(name) or "") for name in ("type", "section_type"))
        text = _text_of_passage(passage)
        level = re.search(r"title(?:_(\d))?$", kind)
        part = part or ("ABSTRACT" if kind == "abstract" else "")
        if part == "REF" or kind == "ref":
            cited += [{"text": text}] if level is None else []
        elif not record.get("title") and (part == "TITLE" or kind in ("title", "front")):
            record |= {"title": one_line(text)} | _fields_of_bioc(infons)
        elif level is not None:
            sections.append({"heading": one_line(text), "level": int(level[1] or 1), "text": ""})
            part_before = part
        elif (part != part_before and part in _HEADINGS_OF_BIOC) or not sections:
            sections.append({"heading": _HEADINGS_OF_BIOC.get(part, ""), "level": 1, "text": text})
            part_before = part
        else:
            sections[-1]["text"] += f"\n\n{text}"
    return record | {"sections": sections} | ({"references": cited} if cited else {})


def _of_docling(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a document of docling, whose body names its items in order."""
    lists = {
        name: value
        for name, value in document.items()
        if isinstance(value, list) and all(isinstance(item, dict) and "self_ref" in item for item in value)
    }
    items = {str(item["self_ref"]): item for of_kind in lists.values() for item in of_kind}
    others = (*lists, "body", "pages", "schema_name")
    record = {name: value for name, value in document.items() if name not in others}
    record |= {"id": document.get("name"), "pictures": document.get("pictures"), "unread": []}
    record |= {"furniture": [one for one in items.values() if one.get("content_layer") == "furniture"]}
    sections: list[dict[str, Any]] = [{"text": ""}]

    def named_by(item: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        """The items that an item names, each once in a document."""
        links = (str(link.get("$ref") or link.get("cref")) for link in item.get(name) or [])
        return [items.pop(link) for link in links if link in items]

    todo = named_by(document.get("body") or {}, "children")[::-1]
    while todo:
        item = todo.pop()
        label, border = item.get("label"), "\n" if item.get("label") == "list_item" else "\n\n"
        if item.get("content_layer", "body") != "body":
            continue
        if label == "title" and "title" not in record:
            record["title"] = item.get("text")
        elif label in ("title", "section_header"):
            sections.append({"heading": item.get("text"), "level": item.get("level"), "text": ""})
        else:
            parts = [*map(_text_of_item, named_by(item, "captions")), _text_of_item(item)]
            parts += [" ".join(map(_text_of_item, named_by(item, "children")))] if label == "inline" else []
            parts += map(_text_of_item, named_by(item, "footnotes"))
            text = "".join(f"{border}{part}" for part in parts if part)
            if label == "document_index":
                record["unread"].append({"text": text})
            else:
                sections[-1]["text"] += text
        todo += named_by(item, "children")[::-1]
    unread = (one for one in items.values() if one.get("content_layer") != "furniture")
    record["unread"] += [{"text": _text_of_item(one)} for one in unread]
    return {key: value for key, value in record.items() if value} | {"sections": sections}


def _text_of_item(item: Mapping[str, Any]) -> str:
    """The text of an item of docling, or the rows of a table, whose cells stand in each place that they span."""
    text, label = str(item.get("text") or item.get("orig") or ""), item.get("label")
    rows = (item.get("data") or {}).get("grid") or []
    for number, row in enumerate(rows):
        places = ((cell.get("start_row_offset_idx", number), cell.get("start_col_offset_idx", n), cell)
                  for n, cell in enumerate(row))  # fmt: skip
        cells = (str(cell.get("text")) for n, (at, start, cell) in enumerate(places) if (at, start) == (number, n))
        text += f"{' | '.join(cells)}\n"
    if label == "formula":
        from engine.readers.markup import tex_text  # most records hold no markup

        return tex_text(text)
    marker = str(item.get("marker") or "-")
    return f"{marker} {text}" if label == "list_item" else text


def is_block_list(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether objects are the blocks of one document, as MinerU, Unstructured and dots.ocr list them."""
    kinds = ({"type", "page_idx"}, {"type", "element_id"}, {"category", "bbox"})
    return all(any(kind <= record.keys() for kind in kinds) for record in records)


def of_block_list(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of a document whose blocks are listed in order; the first one is the title if it is a heading."""
    from engine.readers.markup import tex_text  # most records hold no markup

    kinds = [block.get("category") or block["type"] for block in blocks]
    if odd := next((number for number, kind in enumerate(kinds, 1) if not isinstance(kind, str)), 0):
        raise DocumentError(f'the "type" of its block {odd} is no text')
    blocks = [block if "page_idx" in block else _of_others(block) for block in blocks]
    sections: list[dict[str, Any]] = [{"text": ""}]
    title, furniture = "", []
    for number, block in enumerate(blocks):
        text = str(block.get("text") or block.get("code_body") or "")
        if block["type"] in _PAGE_FURNITURE:
            furniture.append({"text": text})
        elif block.get("text_level") and number and (title or block["type"] != "title"):
            sections.append({"heading": text, "level": block["text_level"], "text": ""})
        elif block.get("text_level"):
            title = text
        else:
            rows = _CELL_END.sub(" | ", _ROW_END.sub("\n", str(block.get("table_body") or "")))
            parts = [tex_text(text.strip(" $\n")) if block["type"] == "equation" else text]
            parts += [html.unescape(_TAG.sub("", rows)), *_lines(block.get("list_items"))]
            before, after = (
                [line for name, lines in block.items() if name.endswith(kind) for line in _lines(lines)]
                for kind in ("_caption", "_footnote")
            )
            sections[-1]["text"] += "".join(f"\n\n{part}" for part in (*before, *parts, *after) if part.strip())
    pictures = [{"type": "image"} for block in blocks if block["type"] == "image"]
    record = {"title": title, "sections": sections, "furniture": furniture, "pictures": pictures}
    return {name: value for name, value in record.items() if value}


def _of_others(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block of Unstructured, or of dots.ocr, whose headings are those of Markdown, as one of MinerU."""
    fields = block["metadata"] if isinstance(block.get("metadata"), dict) else {}
    kind, text, depth = str(block.get("category") or block["type"]), str(block.get("text") or ""), None
    depth = fields.get("category_depth", len(text) - len(text.lstrip("#")) - 1)
    rows = fields.get("text_as_html", text) if kind == "Table" else None
    least = {"Title": 1, "Section-header": 2}.get(kind)
    level = least and max(least, depth + 1 if isinstance(depth, int) else 1)
    text = "" if rows else text.lstrip("# ") if "bbox" in block else text
    return {"type": _KINDS.get(kind, kind.lower()), "text": text, "table_body": rows, "text_level": level}


def text_of_turns(items: object) -> str:
    """The text of a conversation or of the cues of a recording; "" for any other value."""
    turns = items if isinstance(items, list) else []
    if not turns or not all(isinstance(one, dict) and not _OF_TURN.isdisjoint(one) for one in turns):
        return ""
    said = [str(one[name]) for one in turns for name in _SAID if isinstance(one.get(name), str)]
    if len(said) != len(turns) or not _OF_RECORD.isdisjoint(name for one in turns for name in one):
        return ""
    who = [one.get("speaker") or one.get("role") or one.get("from") or "" for one in turns]
    border = "\n\n" if any(who) else "\n"
    return border.join(
        f"{name}: {text.strip()}" if name else text.strip() for name, text in zip(who, said, strict=True)
    )


def _of_marker(block: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a document of Marker, whose blocks lie inside of each other and hold HTML."""
    found: dict[str, list[Any]] = {"html": [], "furniture": [], "pictures": []}
    todo = [block]
    while todo:
        block = todo.pop()
        kind, page = str(block.get("block_type")), str(block.get("html") or "")
        if kind in ("PageHeader", "PageFooter"):
            found["furniture"].append({"text": page})
        elif block.get("children"):
            todo += reversed(block["children"])
        elif kind in ("Picture", "Figure"):
            found["pictures"].append({"type": kind})
        else:
            found["html"].append(page)
    title = without_tags(_TAG.sub("", found["html"][0])) if found["html"] and found["html"][0].startswith("<h") else ""
    record = {name: value for name, value in found.items() if value}
    return record | {"title": title, "html": "\n".join(found["html"][bool(title) :])}


def _lines(value: object) -> list[str]:
    return [str(line) for line in value] if isinstance(value, list) else [str(value or "")]


def _text_of_passage(passage: Mapping[str, Any]) -> str:
    """The text of a passage, or of its sentences."""
    sentences = passage["sentences"] if isinstance(passage.get("sentences"), list) else []
    inside = [str(one.get("text") or "") for one in sentences if isinstance(one, dict)]
    return clean(str(passage.get("text") or " ".join(inside)))


def _fields_of_bioc(infons: Mapping[str, Any]) -> dict[str, Any]:
    """The authors and the identifiers that BioC has beside the title."""
    people = [
        dict(part.partition(":")[::2] for part in str(infons[key]).split(";"))
        for key in infons
        if re.fullmatch(r"name_\d+", key)
    ]
    authors = [f"{name.get('given-names', '')} {name.get('surname', '')}".strip() for name in people]
    fields = {name.removeprefix("article-id_"): infons.get(name) for name in _INFONS}
    year = str(infons.get("year") or "")
    fields |= {"year": int(year) if year.isdecimal() else None, "authors": authors or infons.get("authors")}
    return {name: value for name, value in fields.items() if value}


_OF_TURN = frozenset(["role", "speaker", "from", "start", "start_time", "timestamp"])
_OF_RECORD = frozenset(["title", "abstract", "sections", "metadata", *IDS]) - {"id", "uid", "uuid", "index"}
_SAID = ("text", "content", "value", "utterance")
_TURNS = ("messages", "conversations", "conversation", "dialogue", "turns", "utterances", "transcript", "segments")
_OF_LANGUAGES = {  # names of fields
    **dict.fromkeys(("texte", "texto", "testo", "tekst", "volltext", "inhalt", "contenu", "contenido", "contenuto",
                     "текст", "正文", "内容", "全文", "本文"), "text"),
    **dict.fromkeys(("titel", "titre", "titulo", "título", "titolo", "tytuł", "название", "заголовок", "标题", "題名",
                     "タイトル"), "title"),
    **dict.fromkeys(("zusammenfassung", "résumé", "resumen", "resumo", "riassunto", "аннотация", "摘要", "要旨"),
                    "abstract"),
}  # fmt: skip
_KNOWN = frozenset(["text", "sections", "author", *TEXT_FIELDS, *_TITLES, *IDS])
_LITERAL_BREAK = re.compile(r"\\[rnt](?![a-z])")


def usual_names(record: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """The record with fields such as "Title" and "caseName" under the names of this module."""
    record = {name: _unwrapped(value) for name, value in record.items()}
    if isinstance(record.get("documents"), list) and len(record["documents"]) == 1:  # a collection of BioC
        record = record["documents"][0] if is_bioc(record["documents"][0]) else record
    record = of_bioc(record) if is_bioc(record) else record
    record = _of_blocks_or_pages(record)
    others = {
        key: _OWNER.sub("", _CAPITAL.sub("_", key).replace("-", "_").lower()) for key in record if key not in _KNOWN
    }
    for key, name in others.items():
        short = _OF_LANGUAGES.get(name, _NOTATION.sub("", name))
        names = (name, short, f"{short}s", *(one for one in _LISTED if f"{one}s" == short))
        others[key] = next((one for one in names if one in _KNOWN), name)
    renamed = {key: name for key, name in others.items() if name != key and name in _KNOWN and name not in record}
    record = {renamed.get(key, key): value for key, value in record.items()} if renamed else record
    for name in _LISTED:
        if isinstance(items := record.get(name), list):
            record[name] = [one.get(name, one) if isinstance(one, dict) else one for one in items]
    indexed = record.get("abstract_inverted_index") or record.get("indexed_abstract")  # the places of each word
    if isinstance(indexed, dict) and "abstract" not in record:
        places = indexed.get("InvertedIndex", indexed)
        order = [(place, word) for word, found in places.items() if isinstance(found, list) for place in found]
        record = {key: value for key, value in record.items() if value is not indexed}
        record["abstract"] = " ".join(word for _, word in sorted(order, key=lambda one: str(one[0]).zfill(9)))
    content = record.get("content")
    if isinstance(content, dict) and isinstance(content.get("annotations"), dict):  # of S2ORC since 2022
        parts = _annotated(str(content.get("text") or ""), content["annotations"])
        record = {key: value for key, value in record.items() if key != "content" or not parts} | parts
    parsed = next((value for name in _PARSES if isinstance(value := record.get(name), dict) and value), {})
    record |= {name: parsed[name] for name in (_ENTRIES, "bib_entries") if parsed.get(name) and name not in record}
    has_text = {"text", "sections", *TEXT_FIELDS}
    of_record = {
        name for name in _WRAPPERS if isinstance(part := record.get(name), dict) and any(map(_HEAD.search, part))
    }
    if depth < _MAX_WRAPPED and (has_text - of_record).isdisjoint(record):
        found = {key: usual_names(value, depth + 1) for key, value in record.items() if isinstance(value, dict)}
        inside = {key: value for key, value in found.items() if not has_text.isdisjoint(value)}
        if len(inside) == 1:  # the one part of it that is a record, as in DOAJ and JSON:API
            ((name, part),) = inside.items()
            return usual_names({key: value for key, value in record.items() if key != name} | part, depth + 1)
    return record


def _unwrapped(value: object) -> object:
    """The value of an object that holds no other, as in OpenReview and MongoDB, or its notations, as in Drupal.

    "Not a number" is no value: so do tables mark what is missing.
    """
    if isinstance(value, str) and value.lstrip().startswith("&lt;") and "&lt;/" in value:
        return html.unescape(value)
    if isinstance(value, str) and "\\n" in value and "\n" not in value and len(_LITERAL_BREAK.findall(value)) > 1:
        return _LITERAL_BREAK.sub("\n", value)
    if isinstance(value, list) and value and all(isinstance(one, dict) and "value" in one for one in value):
        if any(not _OF_TURN.isdisjoint(one) for one in value):
            return value
        return [one["value"] for one in value]  # of DSpace
    if not isinstance(value, dict):
        return None if value != value else value
    if len(value) == 1:
        ((name, inner),) = value.items()
        return inner if name == "value" or str(name).startswith("$") else value
    if not value.keys().isdisjoint(_NAMES_OF_SECTIONS) and not {"text", "paragraphs", "content"}.isdisjoint(value):
        return _rows(value) or value
    return value.get("processed") or value["value"] if {"value", "format"} <= {*value} else value


def rows_of(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of a table written column by column (pandas, Chroma); [] for any other object."""
    columns = {_COLUMNS.get(name, name): column for name, column in table.items() if column is not None}
    if columns and all(isinstance(column, dict) and "0" in column for column in columns.values()):
        columns = {name: [*column.values()] for name, column in columns.items()}
    return _rows(columns) if not columns.keys().isdisjoint((*_TITLES, *IDS)) else []


def _rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of columns of one length; [] where they are no such columns."""
    lengths = {len(column) if isinstance(column, list) else 0 for column in columns.values()}
    is_table = len(columns) > 1 and len(lengths) == 1 and lengths != {0}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)] if is_table else []


def _of_blocks_or_pages(record: dict[str, Any]) -> dict[str, Any]:
    """A record of docling or Marker as one with fields of text, and the pages of olmOCR with form feeds between."""
    children, attributes, text = (record.get(name) for name in ("children", "attributes", "text"))
    first = children[0] if isinstance(children, list) and children else None
    try:
        if record.get("schema_name") == "DoclingDocument":
            return _of_docling(record)
        if isinstance(first, dict) and "block_type" in first:
            return {key: value for key, value in record.items() if key in IDS} | _of_marker(record)
    except (AttributeError, TypeError) as error:
        raise DocumentError("a part of its document is no object with the fields of its kind") from error
    if isinstance(pages := record.get("pages"), list) and all(isinstance(page, str) for page in pages):
        record = record | {"pages": [{"page": number, "text": page} for number, page in enumerate(pages, 1)]}
    lists = {name for name, value in record.items() if isinstance(value, list)}
    for name in _TURNS if not text else ():
        if name in lists and (turns := text_of_turns(record[name])):
            return {key: value for key, value in record.items() if key != name} | {"text": turns}
    for name in ("pages", *TEXT_FIELDS) if lists else ():
        if name in lists and (whole := _text_of_pages(record[name])):  # of Mistral OCR, and of many programs
            return {key: value for key, value in record.items() if key != name} | {"text": text or whole}
    spans = attributes.get("pdf_page_numbers") if isinstance(attributes, dict) else None
    if not isinstance(spans, list) or not isinstance(text, str) or "\f" in text:
        return record
    starts = sorted(span[0] for span in spans if isinstance(span, list) and span and isinstance(span[0], int))
    pages = (text[start:stop].strip("\n") for start, stop in pairwise([0, *starts[1:], len(text)]))
    return record | {"text": "\f".join(pages)}


def _text_of_pages(pages: list[Any]) -> str:
    """The texts of a list of numbered pages, with form feeds between; "" for other lists."""
    found = [
        next((page[name] for name in ("text", "markdown", "content") if isinstance(page.get(name), str)), "")
        for page in pages
        if isinstance(page, dict) and not _PAGE_NUMBERS.isdisjoint(page)
    ]
    return "\f".join(found) if len(found) == len(pages) and any(map(str.strip, found)) else ""


def _in_one_language(texts: list[Any]) -> list[Any]:
    """The English text, or the first, of a list of the same text in several languages."""
    languages = [one.get("language") or one.get("lang") if isinstance(one, dict) else None for one in texts]
    if not texts or not all(languages) or len(set(languages)) < len(texts):
        return texts
    return [texts[languages.index("en") if "en" in languages else 0]]


def _annotated(text: str, annotations: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a text whose parts are marked by their places, as JSON inside of JSON."""

    def places(name: str) -> list[tuple[int, int]]:
        try:
            marks = json.loads(annotations.get(name) or "[]")
            ends = ((int(mark["start"]), int(mark["end"])) for mark in marks)
            return [(start, stop) for start, stop in ends if 0 <= start < stop <= len(text)]
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            return []

    headings = sorted(places("sectionheader") + places("section_header"))
    abstract, title, authors = places("abstract"), places("title"), places("author")
    body = [(start, stop) for start, stop in places("paragraph") if not any(a <= start < b for a, b in abstract)]
    if not body:
        return {}
    before = [bisect_right(headings, (start, len(text))) for start, _ in body]
    sections = [text[slice(*headings[at - 1])] if at else "" for at in before]
    entries = places("bibentry") + places("bib_entry")
    unmarked = list(text)
    for start, stop in (*headings, *abstract, *title[:1], *authors, *body, *entries):
        unmarked[start:stop] = " " * (stop - start)
    return {
        **({"title": text[slice(*title[0])]} if title else {}),
        "abstract": [text[start:stop] for start, stop in abstract],
        "body_text": [
            {"section": section, "text": text[start:stop]}
            for section, (start, stop) in zip(sections, body, strict=True)
        ],
        **({"authors": [one_line(text[start:stop]) for start, stop in authors]} if authors else {}),
        **({"bib_entries": [{"place": place} for place in entries]} if entries else {}),
        "unmarked": [{"text": "".join(unmarked)}],
    }


def id_of(record: Mapping[str, Any], default: str = "") -> str:
    """The id of a record; a default, if there is one, where it has none."""
    names = (*IDS, *(name for name in record if _ID.match(name)))
    own_id = next((record[name] for name in names if name in record), None)
    is_usable = isinstance(own_id, str | int | float) and not isinstance(own_id, bool) and str(own_id).strip()
    if not is_usable and not default:
        fields = ", ".join(map(str, [*record][:20])) or "none"
        raise DocumentError(
            f'the record has no id, its fields are {fields}; give it a field "_id" with a text or a number, or name '
            "its own with --id-field"
        )
    return str(own_id) if is_usable else default


def title_of(record: Mapping[str, Any]) -> str:
    """The title of a record, or ""."""
    parts = (record.get(name) for name in ("metadata", "biblio", "content"))  # of Lens and OpenReview
    inside = next((part for part in parts if isinstance(part, dict)), {})
    places = ((record, _TITLES), (inside, ("title", "invention_title")))
    named = (text_of(place, name) for place, names in places for name in names if isinstance(place.get(name), str))
    title = next((title for title in named if title.strip()), "")
    of_parts = (
        text for place, names in places for name in names for _, text in _parts_of(place.get(name), "", 1, Counter())
    )
    return one_line(html.unescape(without_tags(title or next((text for text in of_parts if text.strip()), ""))))


def without_tags(text: str) -> str:
    """A text without the marks of HTML inside of its sentences."""
    return _INLINE.sub(lambda tag: raised(text[: tag.start()][-8:], tag[2]) if tag[1] == "sup" else tag[2], text)


def text_of(record: Mapping[str, Any], field: str) -> str:
    """The text, or the paragraphs, in a field; "" where the field is absent."""
    value = record.get(field)
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = "\n\n".join(value)
    if not isinstance(value, str):
        raise DocumentError(f'the field "{field}" is {type(value).__name__}, not text')
    return clean(without_tags(value))


def texts_of(record: Mapping[str, Any], left_out: Counter[str]) -> dict[str, list[tuple[str, str]]]:
    """The headings and texts of a record by field; {} if it has no text. Counts in `left_out` are of pages."""
    found: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    for name, heading in (TEXT_FIELDS | _NOTES).items():
        if name in _NOTES and not found:
            continue
        if found and (name in (*_MARKED, *_EXCERPTS) or (name == "article_text" and record.get("sections"))):
            continue  # the same text with its tags, or a part of it
        parts = [(title, text) for title, text in _parts_of(record.get(name), heading, 0, left_out) if text not in seen]
        seen.update(text for _, text in parts if text)
        if any(re.search(r"[^\W\d_]", text) for _, text in parts):
            found[name] = [(title, _written_out(text, record)) for title, text in parts]
    _divide_description(found)
    for name, value in record.items():
        prose = "\n\n".join(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else value
        if name not in (*TEXT_FIELDS, *found) and _is_prose(name, prose) and not any(prose in text for text in seen):
            found[name] = [(f"{name[:1].upper()}{name[1:]}".replace("_", " "), clean(without_tags(prose)))]
    return found | ({_ENTRIES: list(_captions(record))} if found else {})


def _is_prose(name: str, value: object) -> bool:
    """Whether a field of a record has sentences that are too long for metadata."""
    if not isinstance(value, str) or _OF_OTHERS.search(name.lower()) or len(value.split()) < _LEAST_PROSE:
        return False
    return len(_SENTENCE_END.findall(value)) >= _LEAST_SENTENCES


def _divide_description(found: dict[str, list[tuple[str, str]]]) -> None:
    """Where a description repeats the background and the summary of a patent (HUPD), they become its sections."""
    whole = next((name for name in ("description", "full_description") if name in found), "")
    for name in ("background", "summary") if whole else ():
        ((heading, text), *others) = found.get(name) or [("", "")]
        place = next((at for at, (_, part) in enumerate(found[whole]) if text.strip() and text.strip() in part), None)
        if others or place is None:
            continue
        title, part = found[whole][place]
        before, _, after = part.partition(text.strip())
        pieces = [(title, before), (heading, text.strip()), ("" if before.strip() else title, after)]
        found[whole][place : place + 1] = [piece for piece in pieces if piece[1].strip()]
        found[name] = []


def count_unread(record: Mapping[str, Any], read: set[str], shown: list[str], left_out: Counter[str]) -> None:
    """Count the words of fields that are neither text nor metadata; those in `read` are known to be one of these."""
    for name, reason in COUNTED.items():
        if isinstance(record.get(name), dict | list) and name not in read:
            left_out[reason] += len(record[name])
    unread = ([*_texts_in(value)] for name, value in record.items() if name not in (*read, *COUNTED))
    left_out[reasons.FIELDS] += n_lost(shown, *filter(None, unread))  # each by itself, because fields repeat each other


def _texts_in(value: object) -> Iterator[str]:
    """All texts inside of a value, without tags."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            yield html.unescape(_TAG.sub(" ", part) if part.lstrip().startswith("<") else part)
        elif isinstance(part, dict | list):
            todo += reversed(part.values() if isinstance(part, dict) else part)


def _parts_of(value: object, heading: str, depth: int, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Headings and texts in a value: a text, a page, a list, or an object that holds a text."""
    if isinstance(value, str):
        value = _SENTENCE.sub("", value) if "</S>" in value else value
        value = _on_lines(value) if heading == "Claims" and depth == 0 else value
        is_page = value.lstrip().startswith("<") or _BLOCK_END.search(value) is not None
        yield from _parts_of_page(value, heading, left_out) if is_page else [(heading, clean(without_tags(value)))]
    elif isinstance(value, list) and depth < _MAX_DEPTH:
        before, items = "", _in_one_language(value)  # the section of the paragraph before
        whole = items[0].get("text") if len(items) == 1 and isinstance(items[0], dict) else ""
        if heading == "Claims" and isinstance(whole, str) and _FIRST_CLAIM.match(whole):
            yield from _parts_of(whole, heading, 0, left_out)
            return
        for item in _numbered(items, are_claims=heading == "Claims"):
            for name, text in _parts_of(item, heading, depth + 1, left_out):
                is_same = isinstance(item, dict) and "section" in item and name == before
                yield "" if is_same else name, text
                before, heading = name, "" if name == heading else heading
    elif isinstance(value, dict) and depth < _MAX_DEPTH:
        yield from _parts_of_object(value, heading, depth, left_out)


def _parts_of_object(
    value: dict[str, Any], heading: str, depth: int, left_out: Counter[str]
) -> Iterator[tuple[str, str]]:
    own = next((value[name] for name in _NAMES_OF_SECTIONS if isinstance(value.get(name), str)), "")
    kind = _OPINION.fullmatch(value["type"]) if isinstance(value.get("type"), str) else None
    if value.get("type") in ("heading", "header", "title", "section_header") and isinstance(value.get("text"), str):
        yield value["text"], ""
        return
    own = own or (kind[1] if kind else "")
    if value and all(len(name) == 2 and name.isalpha() for name in value):  # the same text in languages
        value = {"text": value.get("en", next(iter(value.values())))}
    elif value and all(map(str.isdecimal, value)):
        value = {"text": [f"{name}. {part}" for name, part in value.items()]}
    elif not any(value.get(part) for part in (*_PARTS, *_MARKED, "snippet")):  # texts by their headings
        for name, part in value.items():
            if isinstance(part, list) or (isinstance(part, str) and " " in part):
                yield from _parts_of(part, heading if len(value) == 1 else name, depth + 1, left_out)
    is_read = False
    for part in (*_PARTS, *_MARKED, "snippet"):
        if value.get(part) and not (is_read and part not in _PARTS):
            named = "Abstract" if part == "abstract" else one_line(own) or heading
            for name, text in _parts_of(value[part], named, depth + 1, left_out):
                yield name, text
                is_read |= bool(text.strip())


def _parts_of_page(page: str, heading: str, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Headings and texts of HTML or XML in a field, as the reader of HTML has them."""
    from engine.readers.html import add_page  # most records hold no markup

    blocks = Blocks()
    add_page(_as_html(page).encode(), blocks)
    left_out.update(blocks.left_out)
    marks = [*blocks.headings, Heading("", 1, len(blocks.text))]
    if marks[0].start or marks[0].title.casefold() != heading.casefold():
        marks.insert(0, Heading(heading, 1, 0))
    for mark, following in pairwise(marks):
        yield mark.title, blocks.text[mark.start : following.start].removeprefix(mark.title)


def _as_html(page: str) -> str:
    """A page, or XML as a page: what lies in a part without words of its own is a block, and a title is a heading."""
    from lxml import etree  # most records hold no markup
    from lxml.html import defs

    from engine.readers.markup import local_name, parse_safely

    first = _OF_XML.match(page)
    if first is None or (first[1] or "").lower() in defs.tags:
        return page
    bare = _PREFIX.sub(r"\1", _PROLOG.sub("", page))
    try:
        root = parse_safely(f"<div>{bare}</div>".encode())
    except DocumentError:
        return page
    for element in [*root.iterdescendants(etree.Element)]:
        tag, parent = local_name(element), element.getparent()
        around = (parent.text, *(child.tail for child in parent))
        is_inline = any((text or "").strip() for text in around)
        known = tag if tag in defs.tags else "span" if is_inline else "div"
        element.tag = _BLOCK_TAGS.get(tag, known)
        element.set("class", f"{tag} {element.get('class') or ''}")
    return str(etree.tostring(root, encoding="unicode"))


def _numbered(items: list[Any], *, are_claims: bool) -> list[Any]:
    """Claims and paragraphs with their numbers before their texts, from a field of their own or by their places."""
    if not all(isinstance(item, str | dict) for item in items):
        return items
    objects = [{"text": item} if isinstance(item, str) else item for item in items]
    names = [next((name for name in _NUMBERED if isinstance(one.get(name), str)), "") for one in objects]
    pairs = [*zip(objects, names, strict=True)]
    is_bare = are_claims and all(one.get(name, "")[:1].isalpha() for one, name in pairs)
    for place, (one, name) in enumerate(pairs):
        own = [str(one[field]).lstrip("0") for field in _NUMBERS if isinstance(one.get(field), str | int)]
        number = next(iter(own), str(place + 1) if is_bare else "")
        is_headed = any(one.get(field) for field in _NAMES_OF_SECTIONS)
        if name and number.isdecimal() and not is_headed and not re.match(r"\s*\d", one[name]):
            objects[place] = {**one, name: f"{number}. {one[name]}"}
    return objects


def _on_lines(claims: str) -> str:
    """Claims that follow each other in a line, each on a line of its own; their numbers rise by one."""
    last = 1

    def begun(match: re.Match[str]) -> str:
        nonlocal last
        is_next = int(match[1]) == last + 1
        last += is_next
        return f"\n{match[1]}. " if is_next else match.group()

    first = _FIRST_CLAIM.match(claims)
    return f"{first[1]}\n{_NEXT_CLAIM.sub(begun, claims[first.end(1) :])}" if first else claims


def _written_out(text: str, record: Mapping[str, Any]) -> str:
    """A text of unarXive with its formulas in place, and without its marks of citations, figures and tables."""
    if "{{" not in text:
        return text
    from engine.readers.markup import tex_text  # most records hold no markup

    entries = record.get(_ENTRIES)

    def written(mark: re.Match[str]) -> str:
        entry = entries.get(mark.group(3)) if isinstance(entries, dict) else None
        formula = entry.get("latex") if isinstance(entry, dict) else None
        return f"{mark.group(1)}{tex_text(formula)}" if isinstance(formula, str) else ""

    return _REFERENCE.sub(written, text)


def _captions(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The captions of figures and tables, which S2ORC and unarXive have beside the text."""
    entries, heading = record.get(_ENTRIES), "Figures and tables"
    for entry in entries.values() if isinstance(entries, dict) else ():
        for name in ("caption", "text", "content", "html") if isinstance(entry, dict) else ():
            for _, caption in _parts_of(entry.get(name), "", 1, Counter()):
                if caption.strip():
                    yield heading, caption
                    heading = ""
