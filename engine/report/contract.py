"""Results as plain values for other programs, in the form of `result.schema.json`, with scores by section of the query.

Python (`Result.to_dict`), JSON lines (one result per line) and JSON (an `envelope` around any number of
results) use the same dictionary. Within a version of the schema, fields are added, never removed or changed.

A section is covered if it stands out: it adds at least `STANDS_OUT` times what it would add to a score at the floor of
the index, if the document matched all sections evenly. Sections of the body are counted; of a query without body, all.
Without a floor, which sections are covered is not known. A section of the body that is at least half of stock sentences
is boilerplate.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import ModelExplanation, strongest
from engine.errors import step
from engine.references.extraction import CommonReferences, common_references, own_references
from engine.report.lines import counted
from engine.report.quotes import Quote, Quotes
from engine.result import N_MATCHES, N_SNIPPETS, Hit, Result
from engine.scoring.evidence import Floor
from engine.scoring.parts import ChunkPart, SectionPair, SectionSums, SmallPairs, pair_columns
from engine.store.checks import content_hash
from engine.text.document import Document, section_label
from engine.text.section_kinds import SectionKind, section_kinds
from engine.text.segmentation import Chunk, Coverage, Span
from engine.words.wording import kept_shares

STANDS_OUT = 1.5  # times the floor; one of twenty sections reaches it with an unrelated document. Of a whole query, 1
_LEAST_CHARACTERS = 40  # of a section that is counted; a shorter one is hardly more than its heading
_LEAST_STOCK = 0.5  # of the characters of a section
_N_NAMED = 2
_N_CITED = 4  # that both texts cite, named in a sentence
_LEAST_NAMED = 0.05  # share of the score


@dataclass(frozen=True, slots=True)
class SectionShare:
    """All that a section of the query adds to the score of a hit."""

    section: int
    kind: SectionKind
    contribution: float
    words: float
    n_pairs: int
    best: int | None  # place of its strongest pair among those of the hit; None if the section was not divided
    is_covered: bool | None


@dataclass(frozen=True, slots=True)
class SectionShares:
    """The sections that add something: those of the body first, the strongest first among each."""

    rows: tuple[SectionShare, ...]
    n_sections: int  # that are counted
    n_covered: int | None

    def divided(self, n_most: int) -> tuple[SectionShare, ...]:
        """The first rows that were divided into pairs; the others come last."""
        return tuple(row for row in self.rows[: max(0, n_most)] if row.best is not None)

    def listed(self, n_most: int, n_pairs: int) -> dict[int, bool]:
        """The places of the pairs to list, rising, and whether each is the best of a row: these come first."""
        bests = {row.best for row in self.divided(n_most) if row.best is not None}
        others = islice((at for at in range(n_pairs) if at not in bests), max(0, n_most) - len(bests))
        return {at: at in bests for at in sorted([*bests, *others])}

    def strongest(self) -> tuple[SectionShare, ...]:
        """The one or two sections that a sentence about the hit names."""
        least = _LEAST_NAMED * sum(row.contribution for row in self.rows)
        return tuple(row for row in self.rows[:_N_NAMED] if row.contribution >= least)


class QuerySections:
    """The sections of a query, for all hits of its result. Letter in shapes: S sections."""

    def __init__(self, query: Document, kinds: Sequence[SectionKind], floor: Floor | None) -> None:
        """Measure the sections, of some kinds; the floor is that of the index for the query."""
        self.kinds = kinds
        self.is_body = np.array([kind is SectionKind.BODY for kind in kinds], bool)
        sizes = np.array([len(query.text[part.start : part.stop].strip()) for part in query.sections], np.float64)
        is_counted = (self.is_body if self.is_body.any() else ~self.is_body) & (sizes > 0)
        is_long = is_counted & (sizes >= _LEAST_CHARACTERS)
        self.is_counted = is_long if is_long.any() else is_counted  # (S,)
        shares = sizes / max(1.0, float(sizes[self.is_counted].sum()))
        margins = STANDS_OUT - (STANDS_OUT - 1) * np.minimum(shares, 1)
        self.floors = None if floor is None else floor.p99 * shares * margins  # (S,) what each must add to stand out

    @classmethod
    def of(cls, result: Result) -> QuerySections:
        """The sections of the query of a result; those of mostly stock sentences are boilerplate."""
        query, kinds = result.query, section_kinds(result.query)
        spans = [section.span for section in query.sections]
        left = kept_shares([sentence.span for sentence in result.stock], spans)
        is_stock = (left <= 1 - _LEAST_STOCK).tolist()
        kinds_with_stock = [
            SectionKind.BOILERPLATE if stock and kind is SectionKind.BODY else kind
            for kind, stock in zip(kinds, is_stock, strict=True)
        ]
        return cls(query, kinds_with_stock, result.floor)


def section_shares(
    sections: QuerySections, pairs: Sequence[SectionPair], sums_of_all: SectionSums | None = None
) -> SectionShares:
    """Sum the section pairs of a hit by section of the query.

    Args:
        pairs: of the hit, the strongest of each section of the query before its others.
        sums_of_all: `Breakdown.sections`; the sections of a very long query that are not divided come last.
    """
    columns, n_sections, is_covered = pair_columns(pairs), len(sections.kinds), None
    numbers = columns.query_sections
    if sums_of_all is None:
        values = columns.contributions, columns.words
        sums, words = (np.bincount(numbers, value, n_sections).astype(np.float64) for value in values)
    else:
        sums, words = sums_of_all.contributions, sums_of_all.words
    n_pairs = np.bincount(numbers, minlength=n_sections)
    bests = np.full(n_sections, -1)
    bests[numbers[::-1]] = np.arange(len(numbers))[::-1]
    if sections.floors is not None:
        is_covered = sections.is_counted & (sums > 0) & (sums >= sections.floors)
    rows = (
        SectionShare(
            at,
            sections.kinds[at],
            float(sums[at]),
            float(words[at]),
            int(n_pairs[at]),
            int(bests[at]) if n_pairs[at] else None,
            None if is_covered is None else bool(is_covered[at]),
        )
        for at in np.lexsort((-sums, ~sections.is_body, n_pairs == 0)).tolist()
        if sums[at]
    )
    n_covered = None if is_covered is None else int(is_covered.sum())
    return SectionShares(tuple(rows), int(sections.is_counted.sum()), n_covered)


def summary(hit: Mapping[str, Any]) -> str:
    """A hit in one sentence: "covers 7 of 11 sections; strongest in Claims and Background"."""
    values = hit["by_section"]
    n_sections, n_covered, names = values["n_sections"], values["n_covered"], " and ".join(values["strongest"])
    if n_covered is None:
        return f"is strongest in {names}" if names else "matches in small parts"
    counts = f"covers {n_covered} of {counted(n_sections, 'section')}"
    above = hit.get("above")
    place = "" if above is None else f"above {above} % of unrelated pairs" if above else "like unrelated documents"
    strongest = f"strongest in {names}" if names and n_sections > 1 else ""
    return "; ".join(filter(None, (counts, strongest, place)))


def reference_notes(hit: Mapping[str, Any]) -> list[str]:
    """What both documents cite, whether one cites the other, and documents that the hit stands for, as sentences."""
    values = hit["references"]
    notes = [f"the query cites it, in {values['query_cites'][0]['label']}"] if values["query_cites"] else []
    notes += [f"it cites the query, in {values['target_cites'][0]['label']}"] if values["target_cites"] else []
    if values["shared"]:
        first, *others = values["shared"][:_N_CITED]
        query, target = (first[side][0]["label"] for side in ("query", "target"))
        names = [f"{first['name']}, in {query} {'of both' if query == target else f'and in {target}'}"]
        names += [reference["name"] for reference in others]
        n_more = values["n_shared"] - len(names)
        notes.append(f"both cite {'; '.join(names)}{f'; {n_more} more' if n_more else ''}")
    if others := hit.get("others", ()):
        n_more = len(others) - _N_CITED
        notes.append(f"of the same group: {'; '.join(others[:_N_CITED])}{f'; {n_more} more' if n_more > 0 else ''}")
    return notes


def rest_note(hit: Mapping[str, Any]) -> tuple[float, str]:
    """The share of the score that no row holds, and its kinds in words; (0, "") where the rows hold all."""
    kinds = hit["by_section"]["rest"]
    total = sum(kind["share"] for kind in kinds)
    known = {"body": "{}", "small": "small section pairs"}
    noun = "more section" if hit["by_section"]["rows"] else "section"
    names = [known.get(kind["kind"], kind["kind"]).format(counted(kind["n_sections"], noun)) for kind in kinds]
    if len(kinds) == 1:
        return total, names[0]
    return total, ", ".join(f"{name} {percent(kind['share'])}" for name, kind in zip(names, kinds, strict=True))


def percent(share: float) -> str:
    """A share of a score as "33.8 %"."""
    return f"{100 * share:.1f} %"


VERSION = "longmatch-result/1"
NOVELTY_VERSION = "longmatch-novelty/1"
JOINT_VERSION = "longmatch-joint/1"
_SCHEMA_FILE = "result.schema.json"
SIDES = ("query", "target")
_LISTED_BYTES = 2_000  # of memory, for a section pair, or a section of the query, that is listed
_N_REFERENCES = 20  # of those that both documents cite
_NO_FILE = ("", "stdin")  # sources that are not files
_COMPONENTS = {"chunks": "chunks", "words": "words", "pairs": "word_pairs"}


def result_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a result, and of an envelope of results.

    Example:
        ```python
        jsonschema.validate(index.search("draft.md").to_dict(), longmatch.result_schema())
        ```
    """
    schema: dict[str, Any] = json.loads(files("engine.report").joinpath(_SCHEMA_FILE).read_text(encoding="utf-8"))
    return schema


def envelope(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Any number of results as one value; one result is a list of one."""
    return {"schema": VERSION, "results": list(results)}


def result_dict(result: Result, *, n_pairs: int | None = N_SNIPPETS) -> dict[str, Any]:
    """A result as plain values; the contributions of the parts of a hit sum to its score, to 1e-5.

    A search for novelty has `sections`, each with its hit; other results have `hits`.

    Args:
        n_pairs: section pairs listed for each hit; None for all. The best of each section of the query comes first,
            then the strongest others; `rest` sums those that are not listed.
    """
    hits = hit_dicts(result, n_pairs=n_pairs)
    if result.sections is None:
        return head_dict(result) | {"hits": list(hits)}
    sections = [
        {
            "section": section_dict(result.query, section.section),
            "kind": section.kind.value,
            "novelty": section.novelty,
            "hit": None if section.hit is None else next(hits),
        }
        for section in result.sections
    ]
    return head_dict(result) | {"sections": sections}


def head_dict(result: Result) -> dict[str, Any]:
    """All fields of `result_dict` except the hits, or the sections of a novelty."""
    is_ranking = result.sections is None
    counts = {"n_found": result.n_found, "n_evident": result.n_evident}
    floor = None if result.floor is None else asdict(result.floor)
    return {
        "schema": VERSION if is_ranking else NOVELTY_VERSION,
        "query": _query(result),
        "status": result.status.value,
        **(counts if is_ranking else {}),
        "n_searched": result.n_searched,
        "n_undated": result.n_undated,
        "seconds": round(result.seconds, 6),
        "language": result.language,
        "query_language": result.query_language,
        "reference": result.reference,
        "encoding": None if result.encoding is None else asdict(result.encoding),
        "provenance": None if result.provenance is None else asdict(result.provenance),
        "copies": list(result.copies),
        **({"floor": floor, "nothing_stands_out": result.nothing_stands_out} if is_ranking else {}),
    }


def hit_dicts(result: Result, *, n_pairs: int | None = N_SNIPPETS) -> Iterator[dict[str, Any]]:
    """The hits of `result_dict`, generated one at a time."""
    sections, cited = QuerySections.of(result), own_references(result.query)
    for hit in result.hits:
        common = common_references(result.query, hit.document, cited)
        values = _hit(result, hit, n_pairs, sections, common)
        level = None if result.floor is None else result.floor.level(hit.score)
        yield values if result.sections is not None else values | {"above": level}


def listed_hits(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The hits of a `result_dict`, those of the sections of a novelty included."""
    of_sections = (section["hit"] for section in values.get("sections", ()))
    return [hit for hit in of_sections if hit] if "sections" in values else list(values["hits"])


def _query(result: Result) -> dict[str, Any]:
    coverage = result.query_coverage
    return {
        "id": result.query.doc_id,
        "title": result.query.title,
        "source": result.query.source,
        "coverage": _coverage(coverage) | {"chunks_pooled": coverage.chunks_pooled},
        "content": content_hash(result.query),
        "document": _kept_document(result),
    }


def _kept_document(result: Result) -> dict[str, Any] | None:
    """Text and sections of a query that is stored in no file and not in the index, so that its search can be rerun."""
    origin = result.provenance
    if origin is None or origin.is_indexed or result.query.source not in _NO_FILE:
        return None
    return {"text": result.query.text, "sections": [asdict(section) for section in result.query.sections]}


def _hit(
    result: Result, hit: Hit, n_pairs: int | None, sections: QuerySections, common: CommonReferences
) -> dict[str, Any]:
    query, pairs = result.query, hit.breakdown.pairs
    n_listed = len(pairs) if n_pairs is None else max(0, n_pairs)
    step(_LISTED_BYTES * (min(n_listed, len(pairs)) + len(query.sections)))
    shares = section_shares(sections, pairs, hit.breakdown.sections)
    listed = shares.listed(n_listed, len(pairs))
    quoted = listed if n_pairs is not None else shares.listed(N_MATCHES, len(pairs))
    quotes = Quotes(query, hit, result.language, result.stock)
    parts = [_pair(pairs[at], query, hit, quotes, quoted.get(at)) for at in listed]
    if (rest := hit.breakdown.beyond([*listed])) is not None:
        parts.append(_part("rest", rest))
    values = {
        "rank": hit.rank,
        "score": hit.score,
        "id": hit.doc_id,
        "title": hit.title,
        "source": hit.document.source,
        "metadata": dict(hit.metadata),
        "content": content_hash(hit.document),
        "coverage": _coverage(hit.coverage),
        "has_vectors": hit.has_vectors,
        "components": {name: hit.breakdown.components.get(key, 0.0) for key, name in _COMPONENTS.items()},
        "words": [
            {"term": term.term, "contribution": term.contribution} for term in quotes.listed(hit.breakdown.terms)
        ],
        "references": _references(query, hit.document, common),
        "n_pairs": hit.breakdown.n_pairs,
        "parts": parts,
        "by_section": _by_section(hit, shares, [*listed], parts, n_listed),
    }
    if hit.others:
        values["others"] = list(hit.others)
    return values if hit.model is None else values | {"model": _model(hit.model, query, hit.document)}


def _references(query: Document, target: Document, common: CommonReferences) -> dict[str, Any]:
    """What both documents cite, and where they cite each other; no part of the score."""
    return {
        "n_shared": len(common.shared),
        "shared": [
            {
                "name": reference.name,
                "kind": reference.kind.value,
                "query": _mentions(query, reference.query),
                "target": _mentions(target, reference.target),
            }
            for reference in common.shared[:_N_REFERENCES]
        ],
        "query_cites": _mentions(query, common.to_target),
        "target_cites": _mentions(target, common.to_query),
    }


def _mentions(document: Document, spans: Iterable[Span]) -> list[dict[str, Any]]:
    """The sections with mentions: how many, and the place of the first."""
    sections: dict[int, list[Span]] = {}
    for span in spans:
        at = bisect_right(document.sections, span.start, key=lambda section: section.start) - 1
        sections.setdefault(max(0, at), []).append(span)
    return [
        {
            "section": index,
            "label": section_label(document, index),
            "n": len(mentions),
            **place_of(document, mentions[0]),
        }
        for index, mentions in sections.items()
    ]


def _model(model: ModelExplanation, query: Document, target: Document) -> dict[str, Any]:
    """The explanation of the model; the numbers of `pairs` sum to `total`, to 1e-5."""
    return {
        "encoder": model.encoder,
        "note": model.note,
        "total": model.total,
        "pairs": model.pairs.tolist(),
        "query_sections": _model_sections(query, model.query_sections),
        "target_sections": _model_sections(target, model.target_sections),
        "query_chunks": _model_chunks(model.query_chunks, model.query_weights),
        "target_chunks": _model_chunks(model.target_chunks, model.target_weights),
    }


def model_pairs(hit: Mapping[str, Any], n_pairs: int) -> Iterator[tuple[float, str, str]]:
    """The strongest section pairs of the explanation of the model, if a hit of `result_dict` has one: value, labels."""
    if (model := hit.get("model")) is not None:
        for pair in strongest(np.array(model["pairs"]), n_pairs):
            labels = model["query_sections"][pair.query_section], model["target_sections"][pair.target_section]
            yield pair.value, labels[0]["label"], labels[1]["label"]


def _model_sections(document: Document, weights: NDArray[np.float32]) -> list[dict[str, Any]]:
    return [section_dict(document, index) | {"weight": weight} for index, weight in enumerate(weights.tolist())]


def _model_chunks(chunks: Sequence[Chunk], weights: NDArray[np.float32]) -> list[dict[str, Any]]:
    return [
        {"section": chunk.section, "start": chunk.start, "end": chunk.stop, "weight": weight}
        for chunk, weight in zip(chunks, weights.tolist(), strict=True)
    ]


def _part(kind: str, part: SectionPair | SmallPairs, **of_pair: Any) -> dict[str, Any]:  # noqa: ANN401
    """A part with all fields; those of a section pair are empty in another part."""
    fields = ("query_section", "target_section", "similarity", "threshold", "words", "spans", "marks", "quotes")
    values = {"kind": kind, "contribution": part.contribution, "word_contribution": part.words}
    return values | {name: [] if name in ("words", "spans") else None for name in fields} | of_pair


def _by_section(
    hit: Hit, shares: SectionShares, listed: Sequence[int], parts: Sequence[Mapping[str, Any]], n_listed: int
) -> dict[str, Any]:
    """The score by section of the query; the contributions of `rows` and `rest` sum to it, to 1e-5."""
    divided = shares.divided(n_listed)
    rows: list[dict[str, Any]] = [
        {
            "part": listed.index(row.best),
            "kind": row.kind.value,
            "is_covered": row.is_covered,
            "contribution": row.contribution,
            "word_contribution": row.words,
            "share": _share(row.contribution, hit),
            "n_pairs": row.n_pairs,
        }
        for row in divided
    ]
    rows.sort(key=lambda row: bool((parts[row["part"]]["quotes"] or {}).get("stock")))
    rest: dict[str, list[float]] = {}
    for row in shares.rows[len(divided) :]:
        rest.setdefault(row.kind.value, []).append(row.contribution)
    kinds_of_rest = [(kind, len(values), sum(values)) for kind, values in rest.items()]
    if (small := hit.breakdown.small) is not None and hit.breakdown.sections is None:
        kinds_of_rest.append(("small", 0, small.contribution))
    return {
        "n_sections": shares.n_sections,
        "n_covered": shares.n_covered,
        "strongest": [section_label(hit.own_result().query, row.section) for row in shares.strongest()],
        "rows": rows,
        "rest": [
            {"kind": kind, "n_sections": n, "contribution": contribution, "share": _share(contribution, hit)}
            for kind, n, contribution in kinds_of_rest
        ],
    }


def best_parts(hit: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The best pair of each section of the query that is listed in a hit of `result_dict`, in the order of its rows."""
    return [hit["parts"][row["part"]] for row in hit["by_section"]["rows"]]


def section_places(part: Mapping[str, Any]) -> tuple[int, int]:
    """The positions of the two sections of a section pair."""
    return part["query_section"]["index"], part["target_section"]["index"]


def spans(edges: Sequence[int]) -> Iterator[Span]:
    """The spans of a list of their starts and ends in turn."""
    return map(Span, edges[::2], edges[1::2])


def _share(contribution: float, hit: Hit) -> float:
    return contribution / hit.score if hit.score else 0.0


def _pair(pair: SectionPair, query: Document, hit: Hit, quotes: Quotes, is_best: bool | None) -> dict[str, Any]:
    """A section pair, with marks if it is the best of its section; None: without quotes."""
    best = pair.parts[0] if pair.parts else None
    terms = quotes.listed_in(pair)
    return _part(
        "section_pair",
        pair,
        query_section=section_dict(query, pair.query_section),
        target_section=section_dict(hit.document, pair.target_section),
        similarity=None if best is None else best.similarity,
        threshold=None if best is None else best.threshold,
        words=[
            {"term": term.term, "contribution": term.contribution, "query_spans": edges[0], "target_spans": edges[1]}
            for term, *edges in zip(terms, *quotes.places(pair, [term.key for term in terms]), strict=True)
        ],
        spans=[_passages(passages, query, hit.document) for passages in pair.parts],
        marks=_both(quotes.marks(pair)) if is_best else None,
        quotes=None if is_best is None else _quoted(pair, query, hit, quotes),
    )


def _both(values: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(SIDES, values, strict=True))


def _quoted(pair: SectionPair, query: Document, hit: Hit, quotes: Quotes) -> dict[str, Any]:
    of_query, of_target = quotes.of(pair)
    stock = quotes.stock_of(of_query.span)
    values = None if stock is None else {"n_documents": stock.n_documents, "n_compared": stock.n_compared}
    return _both([_quote(query, of_query), _quote(hit.document, of_target)]) | {"stock": values}


def _quote(document: Document, quote: Quote) -> dict[str, Any]:
    return place_of(document, quote.span) | {
        "text": quote.text,
        "marks": [edge for mark in quote.marks for edge in (mark.start, mark.stop)],
    }


def outline(document: Document) -> list[dict[str, Any]]:
    """The sections of a document, with the headings above them and the number of sections that were joined in each."""
    return [
        section_dict(document, index) | {"path": list(section.path), "n_joined": section.n_merged}
        for index, section in enumerate(document.sections)
    ]


def section_dict(document: Document, index: int) -> dict[str, Any]:
    """A section of a document, without its text."""
    section = document.sections[index]
    place = place_of(document, section.span)
    return {"index": index, "heading": section.heading, "label": section_label(document, index), **place}


def _passages(part: ChunkPart, query: Document, target: Document) -> dict[str, Any]:
    return {
        "contribution": part.contribution,
        "similarity": part.similarity,
        "opening": part.opening,
        "threshold": part.threshold,
        "weight": part.weight,
        "query": _passage(query, part.query),
        "target": _passage(target, part.target),
    }


def _passage(document: Document, span: Span) -> dict[str, Any]:
    return {**place_of(document, span), "text": document.text[span.start : span.stop]}


def place_of(document: Document, span: Span) -> dict[str, Any]:
    """A span of a text, with its first and last page, and its paragraphs and star pages."""
    pages = document.page_numbers(span)
    return {
        "start": span.start,
        "end": span.stop,
        "page": pages[0] if pages else None,
        "last_page": pages[-1] if pages else None,
        "pin": document.pin(span),
    }


def _coverage(coverage: Coverage) -> dict[str, Any]:
    return {"tokens_read": coverage.tokens_read, "tokens_total": coverage.tokens_total, "share": coverage.share}
