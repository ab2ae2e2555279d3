"""Measures the memory of indexing by documents committed, and whether shards and catalog keep up with encoders."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from benchmarks.measuring.isolation import rss_mib, run_forked
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.record_file import Recorded, rebuild
from benchmarks.synthetic import LONG, SHORT, FreeEncoder, Lengths, documents, vocabulary
from benchmarks.tiny_encoder import save_tiny_bert
from engine.encoders.encoder import EncodedDocument, Encoder
from engine.encoders.loading import load_encoder
from engine.store.writer import Writer
from engine.text.document import Document
from engine.words.counts import WordTables
from indexer.building.builder import refresh_generation
from indexer.building.pipeline import Pipeline
from indexer.building.report import BuildReport
from indexer.generation.reference import refresh_reference
from indexer.origin import Origin

SAMPLE_MS = 100
REAL_TOKENS_PER_SECOND = 20_000  # all-MiniLM-L6-v2 in bfloat16 on two cores, at best
FREE = "free"
_SHOWN_SAMPLES = 40


@dataclass(frozen=True)
class MemoryRun:
    """Memory and time of indexing one corpus, in a process of its own."""

    corpus: str
    encoder: str
    n_documents: int
    n_chunks: int
    n_tokens: int
    n_chars: int
    seconds: float
    documents_per_second: float
    chunks_per_second: float
    tokens_per_second: float
    encode_share: float  # of the time until the last commit
    commit_share: float  # shards and catalog
    rss_start_mib: float  # encoder loaded, nothing read
    rss_peak_mib: float  # until the last commit
    rss_peak_generation_mib: float  # while the FAISS index is built, which holds its vectors
    slope_kib_per_1000_documents: float  # least squares over the last three quarters of the documents
    rss_mib_by_documents: list[tuple[int, float]]  # thinned


@dataclass(frozen=True)
class MemoryRecord(Recorded, kind="memory", file="memory"):
    """Whether memory grows with the corpus, and whether the catalog can keep up with an encoder."""

    runs: list[MemoryRun]
    sample_ms: int
    real_tokens_per_second: int  # of a real encoder on such a machine, to compare with
    headroom: dict[str, float]  # tokens a second with a free encoder, in multiples of the real one's, by corpus
    origin: Origin

    @property
    def promises(self) -> list[str]:
        """Lines of Markdown."""
        return [
            f"- {run.n_documents:,} documents ({run.corpus}; {run.encoder} encoder): {run.rss_start_mib:,.0f} MiB "
            f"before indexing, peak {run.rss_peak_mib:,.0f} MiB, {run.tokens_per_second:,.0f} tokens/s."
            for run in self.runs
        ]


class Sampler:
    """Records every 100 ms the number of documents committed, and the memory."""

    def __init__(self, report: BuildReport) -> None:
        self._report = report
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sampler", daemon=True)
        self.samples: list[tuple[int, float]] = []

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(SAMPLE_MS / 1000):
            self.samples.append((self._report.n_seen, rss_mib()))


class TimedWriter(Writer):
    """A writer that measures the time of its commits."""

    commit_seconds = 0.0

    def commit(self, encoded: Sequence[tuple[Document, EncodedDocument]], words: WordTables | None = None) -> list[int]:
        """As `Writer.commit`."""
        started = time.perf_counter()
        ids = super().commit(encoded, words)
        self.commit_seconds += time.perf_counter() - started
        return ids


def slope_kib(samples: Sequence[tuple[int, float]]) -> float:
    """KiB that memory grows by for 1,000 documents: least squares over the last three quarters of the documents."""
    counted = np.array(samples, float).reshape(-1, 2)
    late = counted[counted[:, 0] >= counted[:, 0].max(initial=0) / 4]
    if len(np.unique(late[:, 0])) < 2:
        return 0.0
    return float(np.polyfit(late[:, 0] / 1000, late[:, 1] * 1024, 1)[0])


def index_synthetic(path: Path, lengths: Lengths, n: int, encoder_name: str, seed: int, out: Path) -> None:
    """Index a synthetic corpus in this process and write a `MemoryRun` as JSON."""
    encoder: Encoder = FreeEncoder() if encoder_name == FREE else load_encoder(encoder_name)
    encoder.encode(list(documents(lengths, 2, seed + 1)))  # so that memory that is loaded only once is not counted
    before = rss_mib()
    writer = TimedWriter(path)
    with writer:
        writer.claim({"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width})
        pipeline = Pipeline(writer, encoder)
        with Sampler(pipeline.report) as sampler:
            report = pipeline.run(documents(lengths, n, seed))
        with Sampler(pipeline.report) as later:
            refresh_reference(writer, lambda _: None)
            refresh_generation(writer, "auto", recall_floor=0.0)
    shown = sampler.samples[:: max(1, len(sampler.samples) // _SHOWN_SAMPLES)]
    run = MemoryRun(
        corpus=f"{lengths.name}, median {lengths.median_words} words",
        encoder=Path(encoder.name).name,
        n_documents=report.n_added,
        n_chunks=report.n_chunks,
        n_tokens=report.n_tokens,
        n_chars=sum(len(document.text) for document in documents(lengths, n, seed)),
        seconds=round(report.seconds, 1),
        documents_per_second=round(report.n_added / report.seconds, 1),
        chunks_per_second=round(report.n_chunks / report.seconds, 1),
        tokens_per_second=round(report.n_tokens / report.seconds, 1),
        encode_share=round(report.encode_seconds / report.seconds, 4),
        commit_share=round(writer.commit_seconds / report.seconds, 4),
        rss_start_mib=round(before, 1),
        rss_peak_mib=round(max(mib for _, mib in sampler.samples), 1),
        rss_peak_generation_mib=round(max((mib for _, mib in later.samples), default=rss_mib()), 1),
        slope_kib_per_1000_documents=round(slope_kib(sampler.samples), 1),
        rss_mib_by_documents=[(n_documents, round(mib, 1)) for n_documents, mib in shown],
    )
    out.write_text(json.dumps(asdict(run)))


def measure(work: Path, lengths: Lengths, n: int, encoder: str, seed: int) -> MemoryRun:
    """Index one corpus in a process of its own."""
    place = work / f"{lengths.name}-{Path(encoder).name}"
    arguments = (place.with_name(f"{place.name}.lm"), lengths, n, encoder, seed)
    advice = f"see {place}.index_synthetic.txt"
    written = run_forked(index_synthetic, *arguments, name=f"indexing {place.name}", place=place, advice=advice)
    shutil.rmtree(place.with_name(f"{place.name}.lm"))
    return rebuild(MemoryRun, written)


@program
@click.option("--short", "n_short", default=20_000, type=click.IntRange(1), help="Number of short documents.")
@click.option("--long", "n_long", default=2_000, type=click.IntRange(1), help="Number of long documents.")
@measurement(seed="Seed of texts and the tiny encoder.", work="Folder to work in, kept; by default a temporary one.")
def main(run: Measurement, n_short: int, n_long: int) -> None:
    """Index synthetic corpora with a tiny encoder and a free one, and write a record of memory and time.

    \b
    Example:
        python -m benchmarks study memory --short 20000 --long 2000
    """
    runs = []
    with run.folder() as folder:
        tiny = save_tiny_bert(folder / "tiny", vocabulary(run.seed), seed=run.seed, max_tokens=126)
        for encoder in (str(tiny), FREE):
            for lengths, n in ((SHORT, n_short), (LONG, n_long)):
                runs.append(measure(folder, lengths, n, encoder, run.seed))
                log(f"{runs[-1].encoder}, {runs[-1].corpus}: {runs[-1].seconds} s")
    headroom = {
        one.corpus: round(one.tokens_per_second / REAL_TOKENS_PER_SECOND, 1) for one in runs if one.encoder == FREE
    }
    record = MemoryRecord(runs, SAMPLE_MS, REAL_TOKENS_PER_SECOND, headroom, run.origin)
    run.keep(record)
    click.echo("\n".join(record.promises))
