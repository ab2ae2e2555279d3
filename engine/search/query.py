"""A query with everything that scoring needs: vectors, thresholds, weights of terms and sections. Searches nothing.

Sections can be skipped by kind or by a weight of 0: the query loses their terms, and their chunks have the weight 0.
If a kind is skipped, targets lose the terms and chunks of their sections of that kind too (`engine.store.gathering`).

A query of more than 512 chunks is searched with runs of r neighbouring chunks of one section, where r is the smallest
number that leaves at most 512 runs; if one run a section is still too many, with the 512 runs of most tokens. The
vector of a run is the sum of n_j c_j over its chunks j of n_j tokens, to unit length. So every run is one part of the
score, and the parts still sum to it. The coverage records how many chunks were pooled, and excludes the tokens of runs
that were not used. Targets are never pooled.

Letters in shapes: I query chunks, R documents of the reference, D width.

The weight of a section is that of the most specific name that fits: its number, its own heading, the nearest heading
above it, its kind by the metadata of the query, its kind by its headings and text.
Numbers are those of `longmatch show`, from 1. Case and the number of a heading are ignored, so `pumps` names a
section "3.1 Pumps". A section that no name fits has the weight 1.

A document can define kinds of its own in its metadata: the field "kind.claims" lists the headings whose sections are
claims. And some headings are so common that they name a kind in any document: "What is claimed is" names claims.
"""

import difflib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Vectors, unit
from engine.errors import QueryError
from engine.scoring import evidence
from engine.scoring.breakdown import Prepared
from engine.store.checks import content_hash
from engine.store.reference import SAMPLE_DOCUMENTS, Reference, content_key
from engine.store.snapshot import Documents, Positions
from engine.text.document import KIND, Document
from engine.text.section_kinds import SectionKind, heading_name, kind_bits, section_bits, section_kinds
from engine.text.segmentation import Chunk, Span
from engine.words.apart import title_span
from engine.words.counts import TermTable, WordTables, counted
from engine.words.likelihood import QueryTerms, cover_terms, query_terms
from engine.words.places import PAIR, QueryText
from engine.words.wording import blanked, common_stretches, kept_shares


@dataclass(frozen=True, slots=True)
class Query:
    """A document to search with, and its vectors: float32 rounded to half precision, like those of targets."""

    document: Document
    vectors: EncodedDocument
    words: WordTables | None = None  # its term counts; counted from its text by default
    key: int | None = None  # of its content, see `engine.store.reference`; computed by default
    skip: frozenset[SectionKind] = frozenset()  # kinds of its sections that take no part in the score
    skip_in_targets: frozenset[SectionKind] = frozenset()  # kinds of sections of targets that take no part
    section_weights: tuple[float, ...] = ()  # of its sections; () where all are 1
    kinds: tuple[SectionKind, ...] | None = None  # of its sections; computed by default
    keeps_common: bool = False  # whether sentences that many documents have count as any other


def as_stored(encoded: EncodedDocument) -> EncodedDocument:
    """Round vectors as a shard would, so that a file and its indexed copy are the same query."""

    def rounded(rows: Vectors) -> Vectors:
        return rows.astype(np.float16).astype(np.float32)

    return EncodedDocument(
        rounded(encoded.document),
        rounded(encoded.sections),
        rounded(encoded.chunks),
        encoded.chunk_spans,
        encoded.coverage,
    )


def stored_queries(snapshot: Documents, positions: Positions, *, vectors: bool = True) -> list[Query]:
    """Indexed documents as queries, with their stored words and, by default, vectors; nothing is encoded."""
    words = snapshot.words(positions) if len(positions) else None
    keys = snapshot.locations.contents[positions].tolist()
    queries = []
    for row, (document, coverage) in enumerate(snapshot.documents(positions)):
        encoded = snapshot.encoded(int(positions[row]), coverage) if vectors else EncodedDocument.unencoded(0)
        counts = None if words is None else words.of(np.array([row]))
        queries.append(Query(document, encoded, counts, keys[row]))
    return queries


class Background(Protocol):
    """The context that the score of two documents depends on besides the documents; a `Snapshot` is one."""

    @property
    def reference(self) -> Reference:
        """The reference, for thresholds and word statistics."""

    @property
    def language(self) -> str | None:
        """The language by which words are segmented; None without words."""


@dataclass(frozen=True, slots=True)
class Unpinned:
    """A `Background` whose reference no index has pinned."""

    reference: Reference
    language: str | None


def prepare(query: Query, background: Background, scoring: evidence.Scoring) -> Prepared:
    """Compute thresholds and weights of a query from a reference; for thresholds, copies of the query are left out.

    Sentences that many documents have and sections that the query skips are left out of its evidence; the sentences
    only if the query does not keep them.
    """
    reference, vectors = background.reference, pool_long(query.vectors)
    if reference.width != len(vectors.document):  # drawn before the index had vectors: words alone, without thresholds
        vectors = EncodedDocument.unencoded(0)
    skip = kind_bits(query.skip_in_targets)
    has_vectors, has_words = len(vectors.chunks) > 0, background.language is not None
    weights = scoring.weights(vectors=has_vectors, words=has_words)
    key = content_key(content_hash(query.document)) if query.key is None else query.key
    common = [] if query.keeps_common else common_stretches(query.document.text, reference.common)
    kinds = section_kinds(query.document) if query.skip and query.kinds is None else query.kinds
    left_out = left_out_sections(kinds or (), query.skip, query.section_weights)
    names = [*sorted(query.skip), *(["those of weight 0"] if 0 in query.section_weights else [])]
    stretches = query_stretches(query.document, left_out, common, names)
    text = QueryText(query.document, background.language, blanked(query.document.text, common), left_out, kinds)
    shares = kept_shares(stretches, [Span(chunk.start, chunk.stop) for chunk in vectors.chunk_spans])
    chunk_shares = shares * evidence.chunk_weights(
        np.array([chunk.n_tokens for chunk in vectors.chunk_spans], np.int64)
    )
    of_sections = np.array(query.section_weights) if query.section_weights else None
    if of_sections is not None:
        chunk_shares = chunk_shares * of_sections[[chunk.section for chunk in vectors.chunk_spans]]
    theta, phi, opening = _chunk_thresholds(vectors.chunks, reference, key, scoring)
    own = _own_similarities(query, vectors.chunks, skip, opening)
    limits = evidence.thresholds(theta, phi, own, opening, chunk_shares, scoring)
    words = pairs = None
    if background.language is not None and weights["words"] + weights["pairs"] > 0:
        words, pairs = _terms(query, text, None if stretches else query.words, background, scoring)
    if scoring.cover:
        weights = _attainable(weights, limits, words, pairs)
    return Prepared(vectors, chunk_shares, limits, words, pairs, weights, text, of_sections, skip)


def _terms(
    query: Query, text: QueryText, known: WordTables | None, background: Background, scoring: evidence.Scoring
) -> tuple[QueryTerms, QueryTerms]:
    """The weighted words and pairs of a query, whose `text` is without common sentences."""
    is_weighted = bool(query.section_weights)
    # A document that contains the query has the title of the query among other text.
    title = None if scoring.cover else title_span(query.document)
    if known is not None and not is_weighted and not scoring.cover:
        terms, tables = None, known
    else:
        terms = text.terms
        tables = counted([terms], [title])
    of_sections = np.array(query.section_weights)

    def weighted(kind: str) -> QueryTerms:
        table: TermTable = getattr(tables, kind)
        means = None
        if terms is not None and is_weighted:
            keys = table.terms.astype(np.int64) + (PAIR if kind == "pairs" else 0)
            means = text.places.mean_weights(keys, title, of_sections)
        weigh = cover_terms if scoring.cover else query_terms
        return weigh(table, getattr(background.reference.statistics, kind), means)

    return weighted("words"), weighted("pairs")


def _attainable(
    weights: dict[str, float], limits: evidence.Thresholds, words: QueryTerms | None, pairs: QueryTerms | None
) -> dict[str, float]:
    """The weights of the components that the query has chunks or terms for, scaled to sum to 1 again."""
    terms = {"words": words, "pairs": pairs}
    is_there = {name: listed is not None and len(listed.terms) > 0 for name, listed in terms.items()}
    is_there |= {"chunks": bool(limits.weights.any())}
    total = sum(weight for name, weight in weights.items() if is_there[name])
    return {name: weight / total if total and is_there[name] else 0.0 for name, weight in weights.items()}


def _chunk_thresholds(
    chunks: Vectors, reference: Reference, key: int, scoring: evidence.Scoring
) -> tuple[Vectors, Vectors, Vectors]:
    """theta_i, phi_i and a_i, (I,) each."""
    is_other = reference.hashes != key
    if not is_other.any() or not len(chunks):
        return (
            np.zeros(len(chunks), np.float32),
            np.zeros(len(chunks), np.float32),
            np.full(len(chunks), scoring.opening, np.float32),
        )
    full = max(1, min(reference.n_corpus, SAMPLE_DOCUMENTS))
    exceeding = max(1, round(scoring.exceeding * reference.n_documents / full))

    def shares(best: Vectors, openings: Vectors) -> Vectors:
        return evidence.opening_shares(best[:, is_other], openings[:, is_other], scoring.opening)

    def limit(similarities: NDArray[np.floating]) -> Vectors:
        return evidence.reference_threshold(similarities[:, is_other], exceeding)

    def is_near(best: Vectors, openings: Vectors) -> NDArray[np.bool_]:
        both = best, evidence.join(best, openings, shares(best, openings))
        theta, phi = (each >= limit(each)[:, None] - evidence.NEAR for each in both)
        return np.asarray(theta | phi)

    matches = evidence.best_matches(chunks, reference.vectors, reference.starts, is_near)
    opening = shares(matches.similarities, matches.openings)
    return limit(matches.similarities), limit(evidence.join(matches.similarities, matches.openings, opening)), opening


def _own_similarities(query: Query, chunks: Vectors, skip: int, opening: Vectors) -> Vectors:
    """s_i(q) of the chunks (I, D), of which many of the query can be pooled; as in a target that skips the kinds."""
    if not len(chunks):
        return np.zeros(0, np.float32)
    first = 0
    if skip:
        bits = section_bits(query.document)[[chunk.section for chunk in query.vectors.chunk_spans]]
        first = int(np.argmin((bits & skip) != 0))
    return evidence.own_similarities(chunks, query.vectors.chunks[first], opening)


def left_out_sections(
    kinds: Sequence[SectionKind], skip: Collection[SectionKind], weights: Sequence[float] = ()
) -> NDArray[np.bool_]:
    """Which sections of a query are left out, (A,); [False] for a document without sections."""
    of_kind = np.array([kind in skip for kind in kinds] or [False])
    return of_kind | (np.array(weights) == 0) if len(weights) else of_kind


def query_stretches(
    query: Document, left_out: NDArray[np.bool_], common: Sequence[Span], names: Iterable[str]
) -> list[Span]:
    """The stretches of a query that are left out of its evidence: some of its sections, and common sentences.

    Returns:
        Stretches in reading order that do not overlap.
    """
    skipped = [Span(query.sections[at].start, query.sections[at].stop) for at in np.flatnonzero(left_out).tolist()]
    if not skipped:
        return list(common)
    merged = _merged([*skipped, *common])
    left, at = "", 0
    for stretch in merged:
        left += query.text[at : stretch.start].strip()
        at = stretch.stop
    if not left and not query.text[at:].strip():
        named = ", ".join(names)
        raise QueryError(f"the query {query.title!r} has no section but those to be skipped ({named}); skip fewer")
    return merged


def _merged(stretches: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for stretch in sorted(stretches, key=lambda stretch: (stretch.start, stretch.stop)):
        if merged and stretch.start <= merged[-1].stop:
            merged[-1] = Span(merged[-1].start, max(merged[-1].stop, stretch.stop))
        else:
            merged.append(stretch)
    return merged


MOST_CHUNKS = 512  # of 126 tokens each: about 40,000 words


def pool_long(encoded: EncodedDocument, most: int | None = None) -> EncodedDocument:
    """The document in at most `most` chunks; unchanged if it has no more."""
    most = most or MOST_CHUNKS
    if len(encoded.chunks) <= most:
        return encoded
    sections = np.array([chunk.section for chunk in encoded.chunk_spans])
    n_tokens = np.array([chunk.n_tokens for chunk in encoded.chunk_spans])
    per_run = _run_length(sections, most)
    begins = np.flatnonzero(np.diff(sections, prepend=sections[0] - 1))
    number = np.arange(len(sections)) - np.repeat(begins, np.diff(begins, append=len(sections)))
    starts = np.flatnonzero(number % per_run == 0)
    tokens = np.add.reduceat(n_tokens, starts)
    rows = np.add.reduceat(encoded.chunks * np.maximum(n_tokens, 1)[:, None].astype(np.float32), starts, axis=0)
    chosen = np.sort(np.argsort(-tokens, kind="stable")[:most])
    stops = np.append(starts[1:], len(sections))
    first, last = starts[chosen].tolist(), (stops[chosen] - 1).tolist()
    spans = tuple(
        Chunk(encoded.chunk_spans[a].section, encoded.chunk_spans[a].start, encoded.chunk_spans[b].stop, n)
        for a, b, n in zip(first, last, tokens[chosen].tolist(), strict=True)
    )
    return replace(
        encoded,
        chunks=unit(rows[chosen]),
        chunk_spans=spans,
        coverage=replace(
            encoded.coverage,
            tokens_read=round(encoded.coverage.tokens_read * float(tokens[chosen].sum() / max(1, tokens.sum()))),
            chunks_pooled=per_run,
        ),
    )


def _run_length(sections: NDArray[np.int64], most: int) -> int:
    """The smallest r that leaves at most `most` runs, or one run per section."""
    _, lengths = np.unique(sections, return_counts=True)
    longest = int(lengths.max())
    per_run = min(-(-len(sections) // most), longest)
    while np.ceil(lengths / per_run).sum() > most and per_run < longest:
        per_run += 1
    return per_run


_HEADINGS: Mapping[str, str] = {
    "claims": """claim|claims|i claim|we claim|what is claimed|what is claimed is|the invention claimed is|patent claims
        ansprüche|patentansprüche|schutzansprüche|revendications|reivindicaciones|reivindicações|rivendicazioni
        conclusies|patentkrav|формула изобретения|特許請求の範囲|权利要求|权利要求书|請求項|청구범위""",
    "abstract": """abstract|abstract of the disclosure|abstract of the invention|zusammenfassung|kurzfassung|résumé
        resumen|resumo|riassunto|samenvatting|sammanfattning|аннотация|реферат|要約|摘要|요약""",
    "description": """description|detailed description|description of the invention|description of embodiments
        detailed description of the invention|detailed description of embodiments
        description of the preferred embodiment
        description of the preferred embodiments|detailed description of the preferred embodiment
        detailed description of the preferred embodiments|beschreibung|ausführliche beschreibung|description détaillée
        descripción|descripción detallada|descrição|descrizione|beschrijving|発明の詳細な説明|说明书""",
    "introduction": "introduction|einleitung|introducción|introdução|introduzione|inleiding|введение|引言|はじめに",
    "methods": """method|methods|methodology|materials and methods|methods and materials|patients and methods
        experimental procedures|methoden|méthodes|métodos|metodi|методы|方法""",
    "results": "results|experimental results|ergebnisse|résultats|resultados|risultati|результаты|结果|結果",
    "conclusions": """conclusion|conclusions|concluding remarks|fazit|schlussfolgerungen|conclusiones|conclusões
        conclusioni|conclusie|заключение|выводы|结论|結論""",
}
_KIND_OF_HEADING = {
    name.strip(): kind for kind, names in _HEADINGS.items() for name in names.replace("\n", "|").split("|")
}
KINDS = frozenset([*(kind.value for kind in SectionKind), *_HEADINGS])


def key_of(name: str) -> str:
    """A name in the form in which names are compared; a number does not change."""
    return heading_name(name) or name.strip().casefold()


def names_of_sections(document: Document, kinds: Sequence[SectionKind] | None = None) -> list[tuple[str, ...]]:
    """The names of each section of a document, in the form of `key_of`, the most specific name first."""
    headings_by_kind = _own_kinds(document)
    kinds = section_kinds(document) if kinds is None else kinds
    return [tuple(dict.fromkeys(_names(document, number, headings_by_kind, kind))) for number, kind in enumerate(kinds)]


def _names(
    document: Document, number: int, headings_by_kind: Mapping[str, tuple[str, ...]], kind: SectionKind
) -> Iterator[str]:
    section = document.sections[number]
    headings = [key_of(heading) for heading in (section.heading, *reversed(section.path)) if heading.strip()]
    yield str(number + 1)
    yield from headings
    for heading in headings:
        yield from headings_by_kind.get(heading, ())
    for heading in headings:
        if heading in _KIND_OF_HEADING:
            yield _KIND_OF_HEADING[heading]
    yield kind.value


def _own_kinds(document: Document) -> dict[str, tuple[str, ...]]:
    """The kinds that the metadata of a document gives to headings."""
    kinds: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for field, value in document.metadata.items():
        if field.startswith(KIND):
            for heading in value if isinstance(value, list) else [value]:
                if isinstance(heading, str):
                    kinds[key_of(heading)] += (key_of(field.removeprefix(KIND)),)
    return kinds


MOST_WEIGHT = 1_000_000
_N_NAMED = 5  # headings that an error lists


def with_section_weights(query: Query, skip: Collection[str], weights: Mapping[str, float]) -> Query:
    """A query whose sections are skipped or weighted."""
    kinds = section_kinds(query.document) if skip or weights else query.kinds
    of_sections = section_weights(query.document, weights, kinds) if weights else ()
    skipped = frozenset(map(SectionKind, skip))
    in_targets = skipped | kinds_without_weight(weights)
    return replace(query, skip=skipped, skip_in_targets=in_targets, section_weights=of_sections, kinds=kinds)


def section_weights(
    document: Document, weights: Mapping[str, float], kinds: Sequence[SectionKind] | None = None
) -> tuple[float, ...]:
    """The weight of each section of a document; () where all are 1."""
    by_name: dict[str, float] = {}
    for name, weight in weights.items():
        _check(name, weight)
        key = key_of(name)
        if key in by_name:
            raise QueryError(f"two weights name the same sections, {name!r} the second time; give one")
        by_name[key] = float(weight)
    names = names_of_sections(document, kinds)
    known = {name for of_section in names for name in of_section}
    for name in weights:
        if key_of(name) not in known and key_of(name) not in KINDS:
            raise QueryError(f"no section of {document.doc_id} is named {name!r}; {_hint(document, name)}")
    values = tuple(next((by_name[name] for name in of_section if name in by_name), 1.0) for of_section in names)
    return () if all(weight == 1 for weight in values) else values


def kinds_without_weight(weights: Mapping[str, float]) -> frozenset[SectionKind]:
    """The kinds, except body, that have the weight 0 by their own names, which is the same as skipping them."""
    names = {key_of(name) for name, weight in weights.items() if not weight}
    return frozenset(kind for kind in SectionKind if kind is not SectionKind.BODY and kind.value in names)


def _check(name: object, weight: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise QueryError(f"the section {name!r:.40} is no name; name a heading, a kind or a number as text")
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not is_number or not 0 <= weight <= MOST_WEIGHT:  # type: ignore[operator]
        raise QueryError(f"the weight of {name!r} is {weight!r:.40}; it must be a number from 0 to {MOST_WEIGHT:,}")


def _hint(document: Document, name: str) -> str:
    headings = list(dict.fromkeys(section.heading for section in document.sections if section.heading))
    by_key = {key_of(heading): heading for heading in headings}
    similar = [by_key[key] for key in difflib.get_close_matches(key_of(name), by_key, 2, cutoff=0.6)]
    if similar:
        return f"did you mean {' or '.join(map(repr, similar))}?"
    listed = ", ".join(map(repr, headings[:_N_NAMED])) + (", …" if len(headings) > _N_NAMED else "")
    kinds = ", ".join(sorted(KINDS))
    return f"name a heading ({listed or 'it has none'}), a kind ({kinds}) or a number to {len(document.sections)}"
