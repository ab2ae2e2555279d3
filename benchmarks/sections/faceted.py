"""A corpus whose sections are labelled sentences, with judgments for each facet (CSFCube); nothing is ranked here.

CSFCube (Mysore et al. 2021, arXiv:2103.12906) asks with an abstract and a facet: which of about 100 or 250 pooled
candidates are alike in background, method or result? The folder holds, beside `corpus.jsonl.gz`, `qrels_FACET.tsv`
for each facet, where a candidate judged 0 is listed too, and `splits.json` with the lists `FACET`,
`FACET_fold1_test` and `FACET_fold2_test`.

Licence of the data: CC BY-NC 4.0; evaluation only.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import Dataset, DatasetError, Qrels, checksum, read_qrels
from engine.document import Document, Section

# The labels of the sentences that a facet is judged by; users of the set put objectives with the background.
FACETS: Mapping[str, tuple[str, ...]] = {
    "background": ("background", "objective"),
    "method": ("method",),
    "result": ("result",),
}
FOLDS = (1, 2)  # the authors' two: tuning on one half of the queries, testing on the other
_SEPARATOR = "\n\n"


@dataclass(frozen=True)
class FacetTask:
    """The queries of one facet with their candidates."""

    facet: str
    dataset: str  # name@checksum
    corpus: Path
    qrels: Qrels  # query, then each of its candidates, to relevance from 0 to 3
    folds: dict[str, int]  # of each query: the fold in whose test half it is


def open_facets(folder: Path) -> list[FacetTask]:
    """Read the judgments of all facets.

    Raises:
        DatasetError: a file is missing, or a query is in no test fold or in both.
    """
    return [_open_facet(folder, facet) for facet in FACETS]


def _open_facet(folder: Path, facet: str) -> FacetTask:
    dataset = Dataset(folder.name, folder / "corpus.jsonl.gz", folder / f"qrels_{facet}.tsv", folder / "splits.json")
    missing = [path.name for path in (dataset.corpus, dataset.qrels, dataset.splits) if not path.is_file()]
    if missing:
        raise DatasetError(
            f"{folder} holds no {', '.join(missing)}; pass the folder of a faceted corpus, as csfcube, which is "
            "made of github.com/iesl/CSFCube"
        )
    qrels = read_qrels(dataset, facet)
    candidates = {query: {name: value for name, value in own.items() if name != query} for query, own in qrels.items()}
    return FacetTask(facet, f"{dataset.name}@{checksum(dataset)}", dataset.corpus, candidates, _folds(dataset, facet))


def _folds(dataset: Dataset, facet: str) -> dict[str, int]:
    splits: dict[str, list[str]] = json.loads(dataset.splits.read_text("utf-8"))
    tested = [(query, fold) for fold in FOLDS for query in splits.get(f"{facet}_fold{fold}_test", [])]
    folds = dict(tested)
    if len(folds) < len(tested) or folds.keys() != set(splits[facet]):
        raise DatasetError(
            f"{dataset.splits}: each of the {len(splits[facet])} queries of {facet!r} must be in exactly one of "
            f"{facet}_fold1_test and {facet}_fold2_test, which hold {len(tested)} entries for {len(folds)} queries"
        )
    return folds


def read_labelled(corpus: Path) -> Iterator[Document]:
    """Stream the documents, a section for each labelled part.

    The general reader joins sections under 200 characters, which most sentences
    of an abstract are, and puts each heading into the text. Here a label stays a
    section's heading, is not in the text (an encoder must not read the answer), and
    no section is joined with another. The title is the first section, without heading.

    Raises:
        DatasetError: a line is no document of the layout.
    """
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield _document(json.loads(line), f"{corpus.name}:{number}")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DatasetError(
                    f"{corpus}, line {number}: {error!r}; a line must be an object with id, title, sections"
                ) from error


def _document(record: Mapping[str, Any], source: str) -> Document:
    parts = [("", record["title"]), *((part["heading"], part["text"]) for part in record["sections"])]
    text, sections = "", []
    for heading, body in parts:
        if not body.strip():
            continue
        start = len(text)
        text += body.strip() + _SEPARATOR
        sections.append(Section(heading, (heading,) if heading else (), start, len(text)))
    return Document(str(record["id"]), record["title"], text, tuple(sections), source=source)


def facet_sections(document: Document, facet: str) -> frozenset[int]:
    """Numbers of the sections with a label of a facet; none where it has no such part."""
    labels = FACETS[facet]
    return frozenset(number for number, section in enumerate(document.sections) if section.heading in labels)
