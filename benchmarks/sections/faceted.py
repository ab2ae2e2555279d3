"""A corpus whose sections are labelled sentences, with judgments for each facet (CSFCube), and measures over its pools.

A query of CSFCube (Mysore et al. 2021, arXiv:2103.12906) is an abstract and a facet: which of about 100 or 250 pooled
candidates are similar in background, method or result? Besides `corpus.jsonl.gz`, the folder holds `qrels_FACET.tsv`
for each facet, which also lists candidates judged 0, and `splits.json` with the lists `FACET`, `FACET_fold1_test` and
`FACET_fold2_test`. Licence of the data: CC BY-NC 4.0; evaluation only.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Dataset, DatasetError, Qrels, checksum, read_qrels
from engine.encoders.encoder import ModelExplanation, Vectors, strongest_pairs
from engine.index import Index
from engine.scoring.evidence import chunk_weights
from engine.text.document import Document
from engine.text.segmentation import Section
from engine.views import Hit, Result

# The labels of the sentences that belong to a facet; users of the data count objectives as background.
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
    """Read the judgments of all facets; a query is in exactly one test fold."""
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
    """Stream the documents, a section for each labelled part; the title is the first section, without heading.

    Unlike the general reader, this one joins no short sections. A label is a heading that is not in the text: an
    encoder must not read the answer.
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


class Ranking(StrEnum):
    """The score by which the candidates of a faceted query are ordered."""

    FACET_TO_FACET = "facet to facet"  # contributions of pairs from the facet's sections to those of the target
    FACET_TO_ANY = "facet to any"  # contributions of pairs that start in the facet's sections
    OTHERS = "other sections"  # contributions of the pairs that start elsewhere
    EVIDENCE = "evidence"  # the whole score
    FACET_COSINE = "facet cosine"  # largest cosine between sections of the facet
    DOCUMENT = "document"  # cosine of document vectors
    MODEL = "model"  # the encoder's own section pairs, from the facet's sections to those of the target


def model_explanations(index: Index, result: Result, candidates: Collection[str]) -> dict[str, ModelExplanation]:
    """The explanation of the model for a query and each candidate; {} for an encoder without explanations."""
    if index.encoder.cannot_explain is not None:
        return {}
    found = index.encoder.explain(result.query, [index.document(name) for name in candidates])
    return dict(zip(candidates, found, strict=True))


def candidate_scores(
    index: Index,
    result: Result,
    facet: str,
    candidates: Collection[str],
    models: Mapping[str, ModelExplanation] | None = None,
) -> dict[Ranking, dict[str, float]]:
    """Score the candidates of a query, which is a document of the index, in every way.

    `result` has all hits of the query; `models` are the explanations of the model for the candidates. A candidate
    without a score has 0, and for `FACET_COSINE`, where query or candidate has no section of the facet, -1.
    """
    scores = {ranking: dict.fromkeys(candidates, 0.0) for ranking in Ranking if models or ranking is not Ranking.MODEL}
    own = facet_sections(result.query, facet)
    for hit in result.hits:
        if hit.doc_id in scores[Ranking.EVIDENCE]:
            for ranking, score in _of_breakdown(hit, own, facet_sections(hit.document, facet)).items():
                scores[ranking][hit.doc_id] = score
    scores[Ranking.DOCUMENT] = _document_cosines(index, result.query.doc_id, candidates)
    scores[Ranking.FACET_COSINE] = _facet_cosines(index, result.query.doc_id, candidates, facet)
    for name, model in (models or {}).items():
        theirs = facet_sections(index.document(name), facet)
        scores[Ranking.MODEL][name] = float(model.pairs[np.ix_(sorted(own), sorted(theirs))].sum())
    return scores


def _of_breakdown(hit: Hit, own: frozenset[int], theirs: frozenset[int]) -> dict[Ranking, float]:
    pairs = hit.breakdown.pairs
    starting = [pair for pair in pairs if pair.query_section in own]
    return {
        Ranking.FACET_TO_FACET: sum(pair.contribution for pair in starting if pair.target_section in theirs),
        Ranking.FACET_TO_ANY: sum(pair.contribution for pair in starting),
        Ranking.OTHERS: sum(pair.contribution for pair in pairs if pair.query_section not in own),
        Ranking.EVIDENCE: hit.score,
    }


def _document_cosines(index: Index, query: str, candidates: Collection[str]) -> dict[str, float]:
    names, vectors = index.document_vectors()
    row = {name: number for number, name in enumerate(names)}
    cosines = vectors @ vectors[row[query]]
    return {name: float(cosines[row[name]]) for name in candidates}


def _facet_cosines(index: Index, query: str, candidates: Collection[str], facet: str) -> dict[str, float]:
    own = _facet_vectors(index, query, facet)
    cosines = {}
    for name in candidates:
        theirs = _facet_vectors(index, name, facet)
        cosines[name] = float((own @ theirs.T).max()) if len(own) and len(theirs) else -1.0
    return cosines


def _facet_vectors(index: Index, doc_id: str, facet: str) -> Vectors:
    stored = index.stored_query(doc_id)
    return stored.vectors.sections[sorted(facet_sections(stored.document, facet))]


def largest_pair_shares(
    index: Index,
    result: Result,
    facet: str,
    relevance: Mapping[str, int],
    models: Mapping[str, ModelExplanation] | None = None,
) -> dict[str, float | None]:
    """How often the largest pair of a hit, or of the explanations `models`, starts in the facet's section.

    Returns:
        In [0, 1], or None where there is no such hit with a pair: "relevant" for candidates of relevance 1 and
        above, "irrelevant" for those of 0, and "by chance" the share of the facet in the weights of the query's
        chunks: the value that is expected if the facet does not matter.
    """
    own = facet_sections(result.query, facet)
    starts: dict[bool, list[bool]] = {True: [], False: []}
    for name, section in (_largest_of_hits(result) if models is None else _largest_of_models(models)).items():
        if name in relevance:
            starts[relevance[name] > 0].append(section in own)
    chunks = index.stored_query(result.query.doc_id).vectors.chunk_spans
    weights = chunk_weights(np.array([chunk.n_tokens for chunk in chunks]))
    is_own = np.array([chunk.section in own for chunk in chunks])
    return {
        "relevant": _mean(starts[True]),
        "irrelevant": _mean(starts[False]),
        "by chance": float(weights[is_own].sum() / weights.sum()),
    }


def _largest_of_hits(result: Result) -> dict[str, int]:
    """The query section of the largest pair of each hit, by doc_id; hits without a pair are left out."""
    return {hit.doc_id: hit.breakdown.pairs[0].query_section for hit in result.hits if hit.breakdown.pairs}


def _largest_of_models(models: Mapping[str, ModelExplanation]) -> dict[str, int]:
    strongest = {name: strongest_pairs(model, 1) for name, model in models.items()}
    return {name: pairs[0].query_section for name, pairs in strongest.items() if pairs}


def _mean(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


POOL_SHARE = 0.2  # share of a pool whose ranks count
RELEVANT_FROM = 2  # "similar"; 1 is "related"


def pool_ndcg(relevance: Mapping[str, int], scores: Mapping[str, float], share: float = POOL_SHARE) -> float:
    """nDCG in [0, 1] over the first share of a pool; 0 where no candidate is relevant.

    With n candidates and k = int(share n)

        DCG = r_1 + sum_{i=2}^{k} r_i / log2(i)

    is divided by the DCG of the best order of the whole pool. The gain is the relevance itself, and the second rank
    counts as much as the first, unlike the nDCG of `benchmarks.metrics`.
    """
    k = int(share * len(relevance))
    discounts = 1 / np.maximum(np.log2(np.maximum(np.arange(1, k + 1), 2)), 1)  # (k,)
    best = np.sort(np.array(list(relevance.values()), float))[::-1][:k] @ discounts
    found = _mean_relevance(relevance, scores)[:k] @ discounts
    return float(found / best) if best else 0.0


def average_precision(
    relevance: Mapping[str, int], scores: Mapping[str, float], relevant_from: int = RELEVANT_FROM
) -> float:
    """Mean, over the relevant candidates of the whole pool, of the precision at their ranks; 0 where there is none.

    Among n candidates of equal score, r of them relevant, below N candidates, R of them relevant, the i-th is relevant
    with probability r / n, and (i - 1)(r - 1) / (n - 1) of those above it in the group are expected to be relevant.
    """
    n_above, n_relevant_above, total = 0, 0, 0.0
    for group in _equal(scores):
        n, n_relevant = len(group), sum(relevance[name] >= relevant_from for name in group)
        places = np.arange(n)
        beside = places * (n_relevant - 1) / max(n - 1, 1)
        total += n_relevant / n * float(((n_relevant_above + 1 + beside) / (n_above + 1 + places)).sum())
        n_above, n_relevant_above = n_above + n, n_relevant_above + n_relevant
    return total / n_relevant_above if n_relevant_above else 0.0


def _mean_relevance(relevance: Mapping[str, int], scores: Mapping[str, float]) -> NDArray[np.float64]:
    """(n,) expected relevance at each rank."""
    groups = (([relevance[name] for name in group]) for group in _equal(scores))
    return np.concatenate([np.full(len(values), np.mean(values)) for values in groups])


def _equal(scores: Mapping[str, float]) -> list[list[str]]:
    """The candidates with the same score together, best first."""
    ordered = sorted(scores, key=lambda name: -scores[name])
    return [list(group) for _, group in groupby(ordered, key=scores.__getitem__)]


def tied_ndcg(relevance: Mapping[str, int], scores: Mapping[str, float], k: int) -> float:
    """nDCG@k in [0, 1] over two or more judged candidates of one query; 0 where none is relevant.

    Parts of a score are 0 for most candidates, so an arbitrary order of these would be noise: equal scores share their
    gains (McSherry & Najork 2008). Gain 2^relevance - 1 and discount log2(rank + 1) are those of `benchmarks.metrics`.
    """
    from sklearn.metrics import ndcg_score

    gains = [[2**value - 1 for value in relevance.values()]]
    return float(ndcg_score(gains, [[scores[name] for name in relevance]], k=k))
