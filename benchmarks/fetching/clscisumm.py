"""The corpus `clscisumm`: papers and human summaries of CL-SciSumm and ScisummNet at one commit.

Citation sentences, which only `benchmarks.summaries` reads, are not rebuilt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from benchmarks.fetching.parsed import ParsedDocument
from benchmarks.fetching.recipe import Files, Recipe, corpus_document, github_archive
from benchmarks.fetching.recorded import CorpusDocument, Recorded
from benchmarks.fetching.scisumm_paper import decode_paper, parse_paper, parse_summary

_PAPER, _SUMMARY = ".xml", re.compile(r"(?:human(?:\.summary)?(?:\.txt)?)$")
_FOLDERS = {
    "cl2017train": "Training-Set-2017",
    "cl2017test": "Test-Set-2017",
    "cl2018train": "Training-Set-2018",
    "cl2018test": "Test-Set-2018-Gold/Task2",
    "net": "Training-Set-2019/Task2/From-ScisummNet-2019",
}
_SETS = {"net": "scisummnet"}  # a set whose name in the metadata is not the one in ids


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
            paper = parse_paper(decode_paper(files[paths[doc_id]]))
            given = {"roles": [], "sets": [], **recorded.given[doc_id]}
            yield corpus_document(doc_id, paper.title, iter(paper.sections), {**paper.meta, **given})


def _queries(recorded: Recorded, files: Files) -> Iterator[CorpusDocument]:
    summaries = {path: data for path, data in files.items() if not path.endswith(_PAPER)}
    titles = {_paper_id(path): parse_paper(decode_paper(data)) for path, data in files.items() if _is_net_paper(path)}
    for query_id in recorded.query_ids:
        _, subset, paper_id, *annotator = query_id.split(":")
        folder = _FOLDERS[subset]
        start = f"{folder}/{'_'.join([paper_id, *annotator])}." if annotator else f"{folder}/{paper_id}/"
        path = min((path for path in summaries if path.startswith(start)), default=None)
        if path is None:
            continue
        lines = parse_summary(decode_paper(summaries[path]))
        text = " ".join(_without_title(lines, titles.get(paper_id)) if subset == "net" else lines)
        meta = {"ref": paper_id, "kind": "human", "set": _SETS.get(subset, subset)}
        yield corpus_document(query_id, "", iter([("", text)]), meta)


def _without_title(lines: list[str], paper: ParsedDocument | None) -> list[str]:
    """ScisummNet puts the title of the paper above its summary."""
    return lines[1:] if paper and lines and lines[0] == paper.title else lines


def _is_net_paper(path: str) -> bool:
    return path.endswith(_PAPER) and path.startswith(_FOLDERS["net"])


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
