"""The corpus `proposals`: PEPs, EIPs and XEPs at three commits. Numbers of proposals are masked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from benchmarks.fetching.markdown_proposals import parse_eip
from benchmarks.fetching.masking import mask_proposals
from benchmarks.fetching.parsed import ParsedDocument
from benchmarks.fetching.recipe import Files, Recipe, corpus_document, github_archive
from benchmarks.fetching.recorded import CorpusDocument, Recorded
from benchmarks.fetching.rst_proposals import parse_pep
from benchmarks.fetching.xml_proposals import parse_xep

_PARSERS = {"pep": parse_pep, "eip": parse_eip, "xep": parse_xep}
_FILE = re.compile(r"(?:^|/)(?:peps/(pep)-(\d{4})\.rst|EIPS/(eip)-(\d+)\.md|(?<!inbox/)(xep)-(\d{4})\.xml)$")


def parse_proposal(doc_id: str, text: str) -> ParsedDocument:
    """Read a proposal by its family, the first three letters of its id."""
    return _PARSERS[doc_id[:3]](text)


def _key(name: str) -> str:
    found = _FILE.search(name)
    if not found:
        return ""
    family, number = (part for part in found.groups() if part)
    return f"{family}{int(number)}"


def _documents(recorded: Recorded, files: Files) -> Iterator[CorpusDocument]:
    for doc_id in recorded.ids:
        if doc_id in files:
            yield _document(doc_id, parse_proposal(doc_id, files[doc_id].decode("utf-8", "replace")))


def _document(doc_id: str, parsed: ParsedDocument) -> CorpusDocument:
    mask = partial(mask_proposals, lists=not doc_id.startswith("xep"))
    meta = {"family": doc_id[:3], "number": int(doc_id[3:]), **parsed.meta}
    sections = ((mask(heading), mask(text)) for heading, text in parsed.sections)
    return corpus_document(doc_id, mask(parsed.title), sections, meta)


RECIPE = Recipe(
    "proposals",
    (
        github_archive("python/peps", "ba4deeb7969588d937da609008d05bb83a47b1ab"),
        github_archive("ethereum/EIPs", "f767a1e8078e17c9b381a91d35a09492189ede1b"),
        github_archive("xsf/xeps", "3ad7aaaa34241eeb4deb1231e05227823baa6676"),
    ),
    _key,
    bool,
    _documents,
)
