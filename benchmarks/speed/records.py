"""Records of the programs of this package: values only, one file a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.measuring.isolation import Memory
from benchmarks.measuring.timing import Percentiles
from benchmarks.record_file import Recorded, name_of
from indexer.origin import Origin


@dataclass(frozen=True)
class Fidelity:
    """Cosines of vectors of the same chunks."""

    n_chunks: int
    mean: float  # of longmatch's as an index stores them, to longmatch's in float32
    lowest: float
    rival_chunks: int
    rival_mean: float  # of sentence-transformers' from the chunks' texts, to longmatch's, both in float32
    rival_lowest: float  # below 1 where a text by itself becomes other tokens than inside its document


@dataclass(frozen=True)
class Pass:
    """One way in one round, over the whole sample."""

    seconds: float  # without loading and a first pass over a few chunks
    cpu_seconds: float  # of all cores
    peak_mib: float  # peak resident memory of the process, libraries and weights included


@dataclass(frozen=True)
class WayRun:
    """A way in all rounds."""

    dtype: str  # of the weights
    passes: list[Pass]  # by round


@dataclass(frozen=True)
class IndexingParts:
    """The parts of the end-to-end pass of a round."""

    encode_seconds: float  # part of the pass's seconds; a thread reads and segments meanwhile
    generation_seconds: float  # of the FAISS index, not part of the pass's seconds


@dataclass(frozen=True)
class ThroughputRecord(Recorded, kind="throughput"):
    """Ways to encode the same chunks, round by round in turn, and the machine's limit of products."""

    task: str
    dataset: str  # name@checksum of the whole dataset
    is_quick: bool  # few chunks, or few rounds: shows that all works, not how fast it is
    encoder: str  # name@sha256
    threads: int
    n_documents: int
    n_chunks: int
    n_tokens: int  # special ones left out
    gflop: float  # of the products of one pass over the sample, see `benchmarks.speed.encode.limits`
    ways: dict[str, WayRun]  # by the names of `benchmarks.speed.encode.ways.WAYS`
    indexing: list[IndexingParts]  # by round
    products: list[dict[str, float]]  # by round: GFLOP/s by "DTYPE MxKxN"
    operator_seconds: dict[str, float]  # by group, of a pass over a part of the sample; empty on a GPU
    fidelity: Fidelity
    origin: Origin
    device: str = "cpu"

    @property
    def n_rounds(self) -> int:
        """The number of rounds; in each of them every way ran once."""
        return len(self.products)

    @property
    def name(self) -> str:
        """The name of the file, without suffix."""
        encoder = self.encoder.partition("@")[0]
        device = self.device.replace(":", "") if self.device != "cpu" else ""
        quick = "quick" if self.is_quick else ""
        return name_of(self.kind, self.task, encoder, device, f"threads{self.threads}", quick, seed=self.origin.seed)

    @property
    def extent(self) -> Mapping[str, int]:
        """See `benchmarks.record_file.Recorded.extent`."""
        return {"chunks": self.n_chunks, "rounds": self.n_rounds}


@dataclass(frozen=True)
class CandidateLists:
    """Neighbours: quantiles of cosines, in [-1, 1], at `benchmarks.speed.growth.neighbours.QUANTILES`."""

    n_documents: int
    n_chunks: int
    within: list[float]  # of two chunks of one document; empty where all have one chunk
    nearest_chunk: list[float]  # of a chunk and the nearest one in another document
    nearest_document: list[float]  # of a document's vector and the nearest other one


@dataclass(frozen=True)
class Calibration:
    """The turn that was chosen, and its error."""

    turn: float
    error: float  # mean difference of the quantiles to nearest chunks and documents, in cosine
    errors: dict[str, float]  # the error of every turn that was tried
    real: CandidateLists  # of the documents that were compared
    grown: CandidateLists  # of as many chunks, grown from a part of them by this turn


@dataclass(frozen=True)
class GrowthCost:
    """The cost of making the index, summed over all calls that grew it to its size."""

    generate_seconds: float
    commit_seconds: float
    publish_seconds: float  # of this size's generation: training, adding, measuring, writing; 0 where it existed


@dataclass(frozen=True)
class QueryTimes:
    """Queries of one kind, warm, one at a time; encoding aside, full breakdown of the page included."""

    n_queries: int
    n_chunks: float  # of a query document, median
    latency: Percentiles
    stages_ms: dict[str, float]  # mean milliseconds of a search by stage; they sum to its mean
    faiss_p50_ms: float | None  # the first search of the ANN index alone; None without a generation
    recall: float  # share of the exact best k found, mean, in [0, 1]
    lowest_recall: float
    vectors_p50_ms: float | None = None  # of the same queries without words, the stage of thresholds not counted


@dataclass(frozen=True)
class ColdStart:
    """A fresh process on files that were dropped from the page cache."""

    open_seconds: float
    first_seconds: float  # from there to the first answer: checking files, reading all document vectors, one search


@dataclass(frozen=True)
class ScaleRecord(Recorded, kind="scale"):
    """An index of one size, grown from a real one: its cost, its latency and its recall."""

    source: str  # name of the real index, and its checksum
    is_quick: bool
    n_documents: int
    n_real: int  # documents that are not made
    n_chunks: int
    width: int
    factory: str
    n_lists: int  # 0 where the factory has none
    nprobe: int
    generation_recall: float  # as measured before it was published
    memory_bytes: int | None  # budget of the process that published, by which the factory was chosen
    cap_bytes: int | None  # cap on the memory of each process
    cap_kind: str  # kind of the cap; "" without a cap
    k: int
    threads: int
    workers: int  # that searched at once for `queries_per_second`
    calibration: Calibration  # how documents were made, and how similar they are to real ones
    neighbours: CandidateLists  # of the grown index
    growth: GrowthCost
    disk: dict[str, int]  # bytes of catalog, shards, ann, postings and reference
    cold: ColdStart
    asked: dict[str, QueryTimes]  # by "real" and "synthetic"
    queries_per_second: float  # with many queries at once
    memory: dict[str, Memory]  # of the processes "grow", "publish", "search" and "batch"
    gflops: float  # of float32 products on this machine with as many threads, right after the queries
    origin: Origin
    words_bytes: int | None = None  # of `disk`: term counts, postings and reference
    texts: str = ""  # index that the words of made documents were drawn from; empty for copies of the originals'
    label: str = ""  # part of the name, to distinguish records of one size; for example the processor

    @property
    def name(self) -> str:
        """The name of the file, without suffix."""
        words = f"words-{self.texts}" if self.texts else ""
        cap = f"cap{round(self.cap_bytes / 2**20)}m" if self.cap_bytes else ""
        quick = "quick" if self.is_quick else ""
        return name_of("scale", self.corpus, words, str(self.n_chunks), cap, self.label, quick)

    @property
    def corpus(self) -> str:
        """The source without its checksum."""
        return self.source.partition("@")[0]


@dataclass(frozen=True)
class Stage:
    """An index before documents are added, after their commit, or with them in its generation."""

    latency: Percentiles  # of the same queries each time, warm, encoding aside, with the breakdown of the page
    n_vectors: int  # in the generation; chunks of later documents are scanned
    nprobe: int
    recall: float  # of the generation, as measured before it was published


@dataclass(frozen=True)
class AdditionRecord(Recorded, kind="addition"):
    """The cost of adding documents to an index, and when queries find them."""

    source: str  # name of the real index, and its checksum
    is_quick: bool
    n_documents: int  # before
    n_chunks: int
    factory: str
    n_added: int
    n_added_chunks: int
    commit_seconds: float  # to shards and catalog, durably
    answer_seconds: float  # after the commit: a new process opens the index and answers
    n_asked: int  # documents added that were searched for by themselves, right after the commit
    n_found: int  # of these, the documents that ranked first
    outcome: str  # of the generation: `joined`, `built anew`, or `scanned` where few documents are outside
    join_seconds: float  # until it was published, its recall measured
    build_seconds: float  # of building the generation before from nothing
    encode_seconds: float | None  # of encoding as many chunks by the encoder of the index; None where not measured
    before: Stage
    committed: Stage
    after: Stage
    n_queries: int
    k: int
    threads: int
    origin: Origin

    @property
    def name(self) -> str:
        """The name of the file, without suffix."""
        corpus, quick = self.source.partition("@")[0], "quick" if self.is_quick else ""
        return name_of("addition", corpus, str(self.n_chunks), str(self.n_added), quick)
