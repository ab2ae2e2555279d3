"""CL-SciSumm as documents: papers in XML, human summaries, and the papers that cite them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from benchmarks.fetching.sources import (
    CorpusDocument,
    Files,
    ParsedDocument,
    Recipe,
    Recorded,
    corpus_document,
    decoded,
    github_archive,
    one_line,
)

_SENTENCE = re.compile(r"<S\b[^>]*>(.*?)</S>", re.DOTALL)
_ABSTRACT = re.compile(r"<ABSTRACT\b[^>]*>(.*?)</ABSTRACT>", re.DOTALL)
_TITLE = re.compile(r"<PAPER[^>]*>\s*<S\b[^>]*>(.*?)</S>", re.DOTALL)
_SECTION = re.compile(r"<SECTION\b[^>]*?title\s*=\s*\"([^>]*?)\"(?:\s+number[^>]*)?>(.*?)</SECTION>", re.DOTALL)
_DROPPED = re.compile(r"^[\d.\s]*(references?|acknowledge?ments?|bibliography)\b", re.IGNORECASE)


def parse_paper(text: str) -> ParsedDocument:
    """Read one paper; its abstract is not a section but `meta["abstract"]`, as summaries often repeat it."""
    abstracts = [_sentences(found) for found in _ABSTRACT.findall(text)]
    sections = []
    for title, body in _SECTION.findall(text):
        heading, sentences = _unescaped(title), _sentences(body)
        if heading.lower().startswith("abstract"):
            abstracts.append(sentences)
        elif sentences and not _DROPPED.match(heading):
            sections.append((heading, sentences))
    found = _TITLE.search(text)
    meta = {"abstract": " ".join(filter(None, abstracts))}
    return ParsedDocument(_unescaped(found[1]) if found else "", tuple(sections), meta)


def parse_summary(text: str) -> list[str]:
    """The non-empty lines of a summary; if the file has tags of sentences, the sentences."""
    lines = _SENTENCE.findall(text) if "<S" in text else text.split("\n")
    return [line for line in map(_unescaped, lines) if line]


def _sentences(markup: str) -> str:
    return " ".join(filter(None, map(_unescaped, _SENTENCE.findall(markup))))


def _unescaped(text: str) -> str:
    """Text whose entities were escaped up to three times."""
    for _ in range(3):
        text = html.unescape(text)
    return one_line(text)


_PAPER, _SUMMARY = ".xml", re.compile(r"(?:human(?:\.summary)?(?:\.txt)?)$")
_FOLDERS = {
    "cl2017train": "Training-Set-2017",
    "cl2017test": "Test-Set-2017",
    "cl2018train": "Training-Set-2018",
    "cl2018test": "Test-Set-2018-Gold/Task2",
    "net": "Training-Set-2019/Task2/From-ScisummNet-2019",
}


def _key(name: str) -> str:
    _, found, inside = f"/{name}".partition("/data/")
    is_used = found and (inside.endswith(_PAPER) or _SUMMARY.search(inside)) and "LAYSUMM" not in inside
    return inside if is_used else ""


def _documents(recorded: Recorded, files: Files) -> Iterator[CorpusDocument]:
    paths: dict[str, str] = {}
    for path in sorted(files, key=PurePosixPath):
        if path.endswith(_PAPER):
            paths.setdefault(_paper_id(path), path)
    for doc_id in recorded.ids:
        if doc_id in paths:
            paper = parse_paper(decoded(files[paths[doc_id]]))
            given = {"roles": [], "sets": [], **recorded.given[doc_id]}
            yield corpus_document(doc_id, paper.title, paper.sections, {**paper.meta, **given})


def _queries(recorded: Recorded, files: Files) -> Iterator[CorpusDocument]:
    summaries = {path: data for path, data in files.items() if not path.endswith(_PAPER)}
    titles = {
        _paper_id(path): parse_paper(decoded(data)).title
        for path, data in files.items()
        if path.endswith(_PAPER) and path.startswith(_FOLDERS["net"])
    }
    for query_id in recorded.query_ids:
        _, subset, paper_id, *annotator = query_id.split(":")
        folder = _FOLDERS[subset]
        start = f"{folder}/{'_'.join([paper_id, *annotator])}." if annotator else f"{folder}/{paper_id}/"
        path = min((path for path in summaries if path.startswith(start)), default=None)
        if path is None:
            continue
        lines = parse_summary(decoded(summaries[path]))
        # ScisummNet puts the title of the paper above its summary.
        if subset == "net" and lines and lines[0] == titles.get(paper_id):
            del lines[0]
        text = " ".join(lines)
        meta = {"ref": paper_id, "kind": "human", "set": "scisummnet" if subset == "net" else subset}
        yield corpus_document(query_id, "", [("", text)], meta)


def _paper_id(path: str) -> str:
    return PurePosixPath(path).stem.upper().replace("_", "-").replace(" ", "")


RECIPE = Recipe(
    "clscisumm",
    (github_archive("WING-NUS/scisumm-corpus", "1dd68e44df5c94cc767cc301cd04e61c52e4bf68"),),
    _key,
    lambda key: True,
    _documents,
    _queries,
    given=("roles", "sets"),
    left_out="The citation sentences (citances.jsonl.gz, qrels_citances.tsv), which only benchmarks.summaries reads.",
)
