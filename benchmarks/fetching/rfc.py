"""The corpus `rfc`: texts of the RFC Editor, which do not change once published. Citations are masked.

The terms of the IETF Trust allow copies of whole RFCs; altered copies, as this corpus, must not be published.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from benchmarks.fetching.archives import FetchError
from benchmarks.fetching.masking import mask_rfcs
from benchmarks.fetching.parsed import one_line
from benchmarks.fetching.recipe import Files, Recipe, Source, corpus_document
from benchmarks.fetching.recorded import CorpusDocument, Recorded
from benchmarks.fetching.rfc_text import decode_rfc, parse_rfc

_INDEX = "rfc-index.xml"
_FILE = re.compile(r"(?:^|/)rfc0*(\d+)\.(txt|json)$")
_NAMESPACE = "{https://www.rfc-editor.org/rfc-index}"


def _key(name: str) -> str:
    if name.rpartition("/")[2] == _INDEX:
        return _INDEX
    found = _FILE.search(name)
    return f"rfc{found[1]}.{found[2]}" if found else ""


def _documents(recorded: Recorded, files: Files) -> Iterator[CorpusDocument]:
    index = _read_index(files[_INDEX]) if _INDEX in files else {}
    for doc_id in recorded.ids:
        text = files.get(f"{doc_id}.txt")
        if text is None:
            continue
        page = files.get(f"{doc_id}.json")
        meta = _read_page(doc_id, page) if page is not None else index.get(doc_id)
        if meta is None:
            raise FetchError(
                f"the title of {doc_id} is in neither {doc_id}.json nor {_INDEX}; "
                f"put https://www.rfc-editor.org/{_INDEX} beside the texts"
            )
        yield _document(doc_id, decode_rfc(text), meta)


def _document(doc_id: str, text: str, page: Mapping[str, object]) -> CorpusDocument:
    sections, labels = parse_rfc(text)
    meta = {
        "number": int(doc_id[3:]),
        "date": page["pub_date"],
        "status": page["pub_status"],
        "wg": page["source"],
        "keywords": page["keywords"],
        "obsoletes": page["obsoletes"],
        "updates": page["updates"],
    }
    masked = ((mask_rfcs(heading, labels), mask_rfcs(body, labels)) for heading, body in sections)
    return corpus_document(doc_id, one_line(str(page["title"])), masked, meta)


def _read_page(doc_id: str, data: bytes) -> Mapping[str, object]:
    try:
        page: Mapping[str, object] = json.loads(data)
    except ValueError as error:
        raise FetchError(f"{doc_id}.json cannot be read ({error}); delete it and download it again") from error
    return page


def _read_index(data: bytes) -> dict[str, Mapping[str, object]]:
    """The entries of the RFC Editor's index, with the names of its JSON pages; working groups by their short name."""
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise FetchError(f"{_INDEX} cannot be read ({error}); delete it and download it again") from error
    entries = root.iter(f"{_NAMESPACE}rfc-entry")
    return {_doc_id(_text(entry, "doc-id")): _entry(entry) for entry in entries}


def _entry(entry: ElementTree.Element) -> Mapping[str, object]:
    date = " ".join(_text(entry, f"date/{_NAMESPACE}{part}") for part in ("month", "year"))
    listed = {name: [found.text or "" for found in _all(entry, name)] for name in ("obsoletes", "updates")}
    return {
        "title": _text(entry, "title"),
        "pub_date": date,
        "pub_status": _text(entry, "publication-status"),
        "source": _text(entry, "wg_acronym"),
        "keywords": [found.text or "" for found in entry.iterfind(f"{_NAMESPACE}keywords/{_NAMESPACE}kw")],
        **listed,
    }


def _all(entry: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    return entry.iterfind(f"{_NAMESPACE}{name}/{_NAMESPACE}doc-id")


def _text(entry: ElementTree.Element, name: str) -> str:
    return entry.findtext(f"{_NAMESPACE}{name}") or ""


def _doc_id(name: str) -> str:
    """RFC0020 as rfc20."""
    digits = name.removeprefix("RFC")
    return f"rfc{int(digits)}" if digits.isdigit() else name


RECIPE = Recipe(
    "rfc",
    (
        Source(
            "RFC-all.tar.gz",
            "https://www.rfc-editor.org/in-notes/tar/RFC-all.tar.gz",
            ("RFC-all*", "doc-rfc-*.deb"),
        ),
        Source(_INDEX, f"https://www.rfc-editor.org/{_INDEX}", (_INDEX,), is_optional=True),
    ),
    _key,
    lambda key: key.endswith(".txt"),
    _documents,
)
