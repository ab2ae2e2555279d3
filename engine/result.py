"""The results of a search: hits with their breakdown and their origin. Values; `engine.views` prints and draws them.

A pair of documents of one index is found if one of the two is among the best targets of the other. It is listed once,
and its score is the larger of the two directions, so that it does not depend on which document was the query.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, overload

from engine import __version__
from engine.encoders.encoder import Encoder, ModelExplanation
from engine.errors import QueryError
from engine.scoring.evidence import Floor
from engine.scoring.parts import Breakdown, SectionPair
from engine.text.document import Document, MetadataValue
from engine.text.section_kinds import SectionKind
from engine.text.segmentation import Coverage, Span
from engine.words.languages import other_language
from engine.words.places import TermPlaces, nowhere
from engine.words.wording import StockSentence, StockWording, stock_sentences

if TYPE_CHECKING:
    from engine.store.partitioned import Snapshot

N_SNIPPETS = 3  # section pairs of a hit that are listed by default, in tables, JSON and rows alike
N_MATCHES = 10  # section pairs of a hit that an HTML report shows by default
Member = TypeVar("Member", int, str)
_REPR_CHARACTERS = 50  # most characters of a title or a file name in a line


class Status(StrEnum):
    """How far a ranking can be trusted."""

    # Every document that could be found was scored completely: no other document belongs among the hits.
    CERTIFIED = "certified"
    # An approximate index, or words, chose the documents that were scored completely; every hit was.
    ESTIMATED = "estimated"
    # Evidence is missing: the query was not read to its end or its chunks were pooled, a hit or a wanted
    # candidate has no vectors yet, or a partition did not answer and was left out.
    PARTIAL = "partial"


@dataclass(frozen=True, slots=True)
class EncoderState:
    """The encoder that made the vectors."""

    name: str
    fingerprint: str  # of parameters and settings


@dataclass(frozen=True, slots=True)
class IndexState:
    """An index as a search saw it."""

    path: str  # as it was opened
    fingerprint: str  # changes with the documents, the encoder, the language and the reference
    n_documents: int
    generation: int | None  # the latest of all partitions; None while there is no approximate index


@dataclass(frozen=True, slots=True)
class Provenance:
    """Everything that a search depends on besides its query."""

    version: str  # of longmatch
    time: str  # of the search, UTC, ISO 8601
    encoder: EncoderState | None  # None for an index of words alone
    index: IndexState | None  # None for two documents that were compared without one
    parameters: Mapping[str, Any]  # of the search; for a comparison skip, weights and scoring
    is_indexed: bool = False  # the query is a document of the index, named by its doc_id


@dataclass(frozen=True, slots=True, repr=False)
class Hit:
    """One target, its score, and the parts that sum to it."""

    rank: int  # from 1
    score: float  # in [0, 1]; hits are ranked by it; the sum of the breakdown up to rounding
    document: Document
    breakdown: Breakdown
    coverage: Coverage
    has_vectors: bool = True  # False: it was scored by words alone, and has no vectors yet
    model: ModelExplanation | None = None  # what the encoder computes by itself; None unless it was requested
    others: tuple[str, ...] = ()  # the doc_ids of lower rank with the same value of `Request.one_per`
    # The result that the hit belongs to, without its hits; snippets need the query.
    _answer: Result | None = field(default=None, repr=False, compare=False)

    @property
    def doc_id(self) -> str:
        """Name of the target."""
        return self.document.doc_id

    @property
    def title(self) -> str:
        """Title of the target."""
        return self.document.title

    def __repr__(self) -> str:
        n_pairs = len(self.breakdown.pairs)
        return f"Hit({self.rank}, {self.score:.4f}, {self.doc_id!r}, {self.title!r}, {n_pairs} section pairs)"

    @property
    def metadata(self) -> Mapping[str, MetadataValue]:
        """Metadata of the target."""
        return self.document.metadata

    @property
    def pairs(self) -> Sequence[SectionPair]:
        """The section pairs of the breakdown, strongest first."""
        return self.breakdown.pairs

    @property
    def places(self) -> tuple[TermPlaces, TermPlaces]:
        """Where the terms of the query and of the target stand."""
        places = self.breakdown.places
        return (nowhere(self.own_result().query), nowhere(self.document)) if places is None else places

    def own_result(self) -> Result:
        """The result that the hit belongs to, without its hits.

        Raises:
            QueryError: the hit belongs to no result.
        """
        if self._answer is None:
            raise QueryError(f"the hit {self.doc_id!r} belongs to no result; take hits from the result of a search")
        return self._answer


@dataclass(frozen=True, slots=True)
class Encoding:
    """How much of an index had vectors when a query was answered; None in a result where all documents have them."""

    n_missing: int  # documents that could have been found and have no vectors
    n_candidates: int  # best documents by words, which should have vectors
    n_encoded: int  # candidates that have vectors
    n_encoded_now: int  # candidates that were encoded for this query
    tokens_now: int  # tokens read to encode them
    seconds_now: float  # seconds to encode them; the encoding of the query is not included
    tokens_missing: int  # approximate tokens of the documents without vectors
    seconds_missing: float | None  # approximate seconds to encode those tokens; None where no speed is known


@dataclass(frozen=True, slots=True, repr=False)
class SectionNovelty:
    """One section of a query, and the document that contains most of it."""

    section: int  # position in the query, from 0
    heading: str  # or its first words where it has none
    span: Span  # in the text of the query
    kind: SectionKind
    novelty: float | None  # 1 - the score of the hit, in [0, 1]; None where the section has nothing to compare
    hit: Hit | None  # rank 1 of the section; its parts are of this section alone. None where no document shares a word

    def __repr__(self) -> str:
        novelty = "nothing to compare" if self.novelty is None else f"{self.novelty:.4f}"
        best = "" if self.hit is None else f", most is in {self.hit.doc_id!r}"
        return f"SectionNovelty({novelty}, {self.heading!r}{best})"


@dataclass(frozen=True, slots=True, repr=False)
class Result(Sequence[Hit]):
    """The answer to one query: a sequence of its hits, best first.

    A search for novelty ranks the sections of the query, and has the best hit of each in their order. A comparison
    of two documents has the second as its only hit.
    """

    query: Document
    query_coverage: Coverage
    hits: tuple[Hit, ...]
    status: Status
    n_found: int  # documents with a score above 0, on all pages; estimated where the status says so
    n_evident: int  # found documents with a passage above its threshold; words alone rank the others
    n_searched: int  # documents that could have been found: after filters, without the query itself
    seconds: float  # of the search, without encoding
    language: str | None  # language of the word segmentation; None for an index without words
    reference: int  # version of the reference that scores were computed with; 0 for one that is not pinned
    encoding: Encoding | None = None  # None where all documents that could have been found have vectors
    provenance: Provenance | None = field(default=None, compare=False)  # None for a result that no search made
    copies: tuple[str, ...] = ()  # documents that were left out, as they have the content of the query
    floor: Floor | None = None  # scores of unrelated documents; None where they are not known
    wording: StockWording | None = field(default=None, compare=False)  # of the reference; None where it is not known
    n_undated: int | None = None  # documents left out by `before`, as they have no date; None without `before`
    sections: tuple[SectionNovelty, ...] | None = None  # of a search for novelty: most novel first
    # Of a comparison: folder of the index with the thresholds and word statistics, "" without an index.
    background: str | None = None

    def __post_init__(self) -> None:
        if not self.hits:
            return
        answer = replace(self, hits=(), sections=None)  # without hits, so that no hit refers to itself
        object.__setattr__(self, "hits", tuple(replace(hit, _answer=answer) for hit in self.hits))
        if self.sections is not None:
            hits = iter(self.hits)
            sections = (
                section if section.hit is None else replace(section, hit=next(hits)) for section in self.sections
            )
            object.__setattr__(self, "sections", tuple(sections))

    def __len__(self) -> int:
        return len(self.hits)

    @property
    def stock(self) -> tuple[StockSentence, ...]:
        """The sentences of the query that many documents of the reference have in about the same words."""
        return () if self.wording is None else stock_sentences(self.query.text, self.wording)

    @property
    def query_language(self) -> str | None:
        """The language of the query, if it is certainly not that of the words of the index; else None."""
        return None if self.language is None else other_language(self.query.text, self.language)

    @property
    def nothing_stands_out(self) -> bool:
        """Whether even the best hit scores no higher than unrelated documents do; False where that is not known."""
        is_first = bool(self.hits) and self.hits[0].rank == 1
        return self.floor is not None and is_first and max(hit.score for hit in self.hits) <= self.floor.p99

    @overload
    def __getitem__(self, at: int) -> Hit: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, at: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[at]

    def __repr__(self) -> str:
        source = f" from {cut_short(self.query.source)!r}" if self.query.source else ""
        counts = f"{len(self.hits)} of {self.n_found:,} hits"
        if self.sections is not None:
            counts = f"{len(self.sections)} section{'s' * (len(self.sections) != 1)}"
        return f"Result({cut_short(self.query.title)!r}{source}, {counts}, {self.status.value})"


@dataclass(frozen=True, slots=True, repr=False)
class JointHit:
    """One target of a search with several documents. Its score is the sum of the contributions."""

    rank: int
    score: float
    contributions: tuple[float, ...]  # of the query documents: weight times the score for that document alone
    hits: tuple[Hit, ...]  # of the query documents: the target with that score, and the parts that sum to it

    @property
    def document(self) -> Document:
        """The target."""
        return self.hits[0].document

    @property
    def doc_id(self) -> str:
        """Name of the target."""
        return self.document.doc_id

    @property
    def title(self) -> str:
        """Title of the target."""
        return self.document.title

    def __repr__(self) -> str:
        parts = " ".join(f"{contribution:+.4f}" for contribution in self.contributions)
        return f"JointHit({self.rank}, {self.score:.4f} = {parts}, {self.doc_id!r}, {self.title!r})"


@dataclass(frozen=True, slots=True, repr=False)
class JointResult(Sequence[JointHit]):
    """The answer to several documents as one query, see `engine.search.joint`: a sequence of its hits, best first."""

    results: tuple[Result, ...]  # of each query document; all have the same targets, in the joint order
    weights: tuple[float, ...]  # of the query documents: above 0 to be like one, below 0 to be unlike it
    scores: tuple[float, ...]  # of the targets
    status: Status
    n_searched: int
    seconds: float  # of the search, without encoding
    floor: Floor | None  # an upper estimate of the scores of unrelated documents, see `engine.search.joint`
    copies: tuple[str, ...] = ()  # documents that were left out, as they have the content of a query document

    @property
    def hits(self) -> tuple[JointHit, ...]:
        """The hits, best first."""
        of_targets = zip(*(result.hits for result in self.results), strict=True)
        return tuple(
            JointHit(hits[0].rank, score, tuple(w * hit.score for w, hit in zip(self.weights, hits, strict=True)), hits)
            for score, hits in zip(self.scores, of_targets, strict=True)
        )

    @property
    def nothing_stands_out(self) -> bool:
        """Whether even the best hit scores no higher than unrelated documents do; False where that is not known."""
        is_first = bool(self.scores) and self.results[0].hits[0].rank == 1
        return self.floor is not None and is_first and self.scores[0] <= self.floor.p99

    def __len__(self) -> int:
        return len(self.scores)

    @overload
    def __getitem__(self, at: int) -> JointHit: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[JointHit, ...]: ...

    def __getitem__(self, at: int | slice) -> JointHit | tuple[JointHit, ...]:
        return self.hits[at]

    def __repr__(self) -> str:
        n_like = sum(weight > 0 for weight in self.weights)
        sides = f"like {n_like}, unlike {len(self.weights) - n_like}"
        return f"JointResult({sides}, {len(self)} hits, {self.status.value})"


def shown_spans(pair: SectionPair, query: Document, target: Document) -> tuple[Span, Span]:
    """The spans that show a match: the strongest passage, or the whole sections where words contribute more.

    Returns:
        A span of the query and a span of the target.
    """
    if pair.parts and pair.parts[0].contribution >= pair.words:
        return pair.parts[0].query, pair.parts[0].target
    return query.sections[pair.query_section].span, target.sections[pair.target_section].span


def cut_short(text: str, most: int = _REPR_CHARACTERS) -> str:
    """A text of at most `most` characters, with "…" where it was cut."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def provenance(
    parameters: Mapping[str, Any],
    *,
    index: IndexState | None = None,
    encoder: EncoderState | None = None,
    is_indexed: bool = False,
) -> Provenance:
    """Record a search with the current time."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Provenance(__version__, now, encoder, index, parameters, is_indexed)


def encoder_state(encoder: Encoder) -> EncoderState:
    """Name and fingerprint of a loaded encoder."""
    return EncoderState(encoder.name, encoder.fingerprint)


def recorded_encoder(snapshot: Snapshot) -> EncoderState | None:
    """The encoder that an index was built with; nothing is loaded. None for an index of words alone."""
    built = snapshot.meta.get("encoder")
    return None if built is None else EncoderState(built["name"], built["fingerprint"])


def index_state(snapshot: Snapshot) -> IndexState:
    """Describe an index from the columns that every query has in memory; no document is read.

    A replaced document gets a new catalog id, so the ids identify the contents.
    """
    digest = hashlib.sha256(snapshot.locations.ids.astype("<i8").tobytes())
    encoder, reference = recorded_encoder(snapshot), snapshot.reference_row
    generations = [part.generation_row.id for part in snapshot.parts if part.generation_row is not None]
    for part in (encoder and encoder.fingerprint, snapshot.language, reference and reference.digest):
        digest.update(f"\0{part}".encode())
    number = max(map(int, generations), default=None)
    return IndexState(str(snapshot.folder), digest.hexdigest()[:32], snapshot.n_documents, number)


PAIR_COLUMNS = ("first", "second", "score", "forward", "backward", "first_title", "second_title")
CLUSTER_COLUMNS = ("cluster", "size", "doc_id", "title")


@dataclass(frozen=True, slots=True)
class DocumentPair:
    """Two documents that overlap."""

    first: str  # doc_id, before `second` in the order of names
    second: str
    forward: float  # score of `second` for the query `first`, in [0, 1]
    backward: float  # score of `first` for the query `second`
    first_title: str = ""
    second_title: str = ""

    @property
    def score(self) -> float:
        """The larger of the two directions."""
        return max(self.forward, self.backward)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Documents that pairs connect, directly or through others."""

    number: int  # from 1, the largest first
    members: tuple[tuple[str, str], ...]  # doc_id and title, by doc_id


@dataclass(frozen=True, slots=True, repr=False)
class Pairs(Sequence[DocumentPair]):
    """The pairs of an index, best first; pairs with equal scores in order of doc_ids."""

    pairs: tuple[DocumentPair, ...]
    n_documents: int  # documents that were compared
    least: float  # lowest score of a pair
    top: int  # targets of each document that can make a pair
    mode: str  # meaning of the scores, see `engine.search.request.Mode`
    is_certified: bool  # every document was scored for every document, with all evidence
    by_words: bool  # scored by words alone
    seconds: float

    def __len__(self) -> int:
        return len(self.pairs)

    @overload
    def __getitem__(self, at: int) -> DocumentPair: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[DocumentPair, ...]: ...

    def __getitem__(self, at: int | slice) -> DocumentPair | tuple[DocumentPair, ...]:
        return self.pairs[at]

    def __repr__(self) -> str:
        return f"Pairs({len(self.pairs):,} pairs of {self.n_documents:,} documents, score at least {self.least:g})"

    def rows(self) -> list[tuple[str | float, ...]]:
        """A row for each pair, with `PAIR_COLUMNS`."""
        return [tuple(getattr(pair, name) for name in PAIR_COLUMNS) for pair in self.pairs]

    def clusters(self, least: float | None = None) -> tuple[Cluster, ...]:
        """The connected components over pairs of at least a given score; a document without such a pair is in none.

        Raises:
            QueryError: the score is below that of the pairs, so that some would be missing.
        """
        least = self.least if least is None else least
        if least < self.least:
            raise QueryError(f"clusters from a score of {least:g} need pairs from there; they begin at {self.least:g}")
        titles: dict[str, str] = {}
        parents: dict[str, str] = {}
        for pair in self.pairs:
            if pair.score < least:
                continue
            titles |= {pair.first: pair.first_title, pair.second: pair.second_title}
            root, joined = sorted((root_of(parents, pair.first), root_of(parents, pair.second)))
            parents[joined] = root
        members: dict[str, list[str]] = {}
        for name in sorted(titles):
            members.setdefault(root_of(parents, name), []).append(name)
        ordered = sorted(members.values(), key=lambda names: (-len(names), names[0]))
        return tuple(
            Cluster(number, tuple((name, titles[name]) for name in names))
            for number, names in enumerate(ordered, start=1)
        )


def cluster_rows(clusters: Sequence[Cluster]) -> list[tuple[int | str, ...]]:
    """A row for each document, with `CLUSTER_COLUMNS`."""
    return [
        (cluster.number, len(cluster.members), name, title) for cluster in clusters for name, title in cluster.members
    ]


def root_of(parents: dict[Member, Member], member: Member) -> Member:
    """The member that represents a component in the union-find forest; compresses the path to it."""
    root = member
    while parents.get(root, root) != root:
        root = parents[root]
    while member != root:
        parents[member], member = root, parents[member]
    return root
