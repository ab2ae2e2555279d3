"""Measures a device: its rates, then encoding, search and training beside what these rates allow. Synthetic data.

It needs torch, transformers and click, and neither FAISS nor an index. On a CPU it is a dry run, which shows that the
program works, and says nothing about a GPU.

Letters: C chunks of all documents, N documents, I query chunks, D width.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from statistics import median
from typing import Any

import click
import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig

from benchmarks.program import Measurement, log, measurement, program
from benchmarks.runs import RESULTS, Case, Run
from benchmarks.synthetic import LONG, SHORT, Lengths, documents
from benchmarks.systems import encoder_label
from benchmarks.tables.pivot import case_tables
from engine.encoders.colde import ColdeConfig, ColdeEncoder
from engine.encoders.encoder import SegmentedDocument, Vectors, unit
from engine.encoders.files import quiet_transformers, resolve_backbone
from engine.encoders.hardware import default_dtype
from engine.encoders.loading import DEFAULT_ENCODER, load_trainable
from engine.encoders.smith import SmithEncoder
from engine.encoders.smith_config import SmithConfig
from engine.encoders.trainable import TrainableEncoder
from engine.environment import check_device, is_gpu
from engine.scan import PRODUCTS_AT_ONCE, DeviceScan
from engine.scoring.evidence import Scoring, best_chunks, chunk_component, thresholds
from engine.training.masked_words import SmithPretraining, SmithSettings
from engine.training.pair_tasks import Classes, ContrastSettings, SectionContrast
from engine.training.task import Task

WIDTH = 384  # D of the searched vectors
_POOL = 65_537  # different chunk vectors; a prime, so that documents begin anywhere in them
_CHUNKS = (20, 61)  # of a document, evenly
_THETA = 0.1  # random vectors of this width are above it in the best chunks of most documents
_CHECKED = 500  # first and last documents whose components are compared with those of the CPU
_FEWEST, _MOST = 3, 200  # timed calls
_NOTE = (
    "Limit: operations and bytes of the path over the rates of the device, the slower of both; a prediction. Measured: "
    "the median of calls, after one that is not counted. Tokens without special ones. Training: with drawing, an "
    "update in each step; its limit leaves heads out."
)
_DRY = "A dry run on a CPU: nothing here is a figure of a GPU. "


@dataclass(frozen=True)
class Sizes:
    """The amount of work."""

    copied_bytes: int
    side: int  # of the square matrices that are multiplied
    lengths: Lengths
    n_documents: int  # that are encoded, and trained on
    batch_size: int  # documents of a training step
    scans: Sequence[tuple[int, int]]  # C, and the products of a block
    n_queries: int  # of a batch that shares a pass


FULL = Sizes(
    1 << 32,
    8192,
    LONG,
    32,
    16,
    [(10**6, PRODUCTS_AT_ONCE), (10**6, PRODUCTS_AT_ONCE * 4), (10**7, PRODUCTS_AT_ONCE)],
    16,
)
SMALL = Sizes(1 << 24, 256, SHORT, 4, 4, [(20_000, 1 << 16)], 2)


@dataclass(frozen=True)
class Rates:
    """The measured speed of a device."""

    n_bytes: float  # a second, read and written together
    operations: float  # a second, of products in the precision of encoders

    def seconds(self, operations: float, n_bytes: float) -> float:
        """The least time that work takes."""
        return max(operations / self.operations, n_bytes / self.n_bytes)


@dataclass(frozen=True)
class Way:
    """A path through the device."""

    name: str
    unit: str  # tokens/s, or ms
    limit: float
    measure: Callable[[float], dict[str, float]]  # from seconds to spend; one of the values is "measured"


def timed(work: Callable[[], object], device: str, seconds: float) -> list[float]:
    """The seconds of each call, for about as long as allowed; the first call is not counted."""
    times: list[float] = []
    ends = time.perf_counter() + seconds
    while len(times) <= _FEWEST or (time.perf_counter() < ends and len(times) <= _MOST):
        started = time.perf_counter()
        work()
        if is_gpu(device):
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    return times[1:]


def measure_rates(device: str, sizes: Sizes) -> Rates:
    """Copy bytes, and multiply random matrices."""
    source = torch.zeros(sizes.copied_bytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    matrix = torch.randn(sizes.side, sizes.side, device=device).to(default_dtype(device))
    copying, product = (
        median(timed(work, device, 2)) for work in (lambda: target.copy_(source), lambda: matrix @ matrix)
    )
    return Rates(2 * sizes.copied_bytes / copying, 2 * sizes.side**3 / product)


def token_cost(layers: int, width: int, inner: int, length: int) -> tuple[float, float]:
    """Operations and least bytes of a token of a sequence in a BERT: each product reads and writes half floats once."""
    operations = layers * (2 * (4 * width**2 + 2 * width * inner) + 4 * width * length)
    return operations, 2 * layers * (12 * width + 2 * inner)


def encode(
    encoder: TrainableEncoder, segmented: Sequence[SegmentedDocument], device: str, seconds: float
) -> dict[str, float]:
    """Let our encoder read chunks."""
    return _tokens_per_second(segmented, timed(lambda: encoder.encode_segmented(segmented), device, seconds))


def encode_by_rival(
    folder: str, dtype: str, batch_size: int, segmented: Sequence[SegmentedDocument], device: str, seconds: float
) -> dict[str, float]:
    """Let sentence-transformers read the same chunks."""
    from sentence_transformers import SentenceTransformer

    with quiet_transformers():
        model = SentenceTransformer(folder, device=device, model_kwargs={"dtype": dtype}, local_files_only=True)
    texts = [one.document.text[chunk.start : chunk.stop] for one in segmented for chunk in one.chunks]
    work = partial(model.encode, texts, batch_size=batch_size, show_progress_bar=False)
    return _tokens_per_second(segmented, timed(work, device, seconds))


def _tokens_per_second(segmented: Sequence[SegmentedDocument], times: Sequence[float]) -> dict[str, float]:
    return {"measured": sum(one.coverage.tokens_read for one in segmented) / median(times)}


class Collection:
    """Documents of random chunk vectors, and queries that resemble them."""

    def __init__(self, n_chunks: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.lengths = self._rng.integers(*_CHUNKS, n_chunks * 2 // sum(_CHUNKS))
        self._starts = np.cumsum(self.lengths) - self.lengths
        self._pool = unit(self._rng.standard_normal((_POOL, WIDTH), np.float32)).astype(np.float16)

    def read(self, positions: NDArray[np.int64]) -> NDArray[np.float16]:
        """The chunks of neighbouring documents."""
        last = positions[-1]
        numbers = np.arange(self._starts[positions[0]], self._starts[last] + self.lengths[last])
        rows: NDArray[np.float16] = self._pool[numbers % _POOL]
        return rows

    def query(self) -> Vectors:
        """The chunks (I, D) of a document, with noise."""
        rows = self.read(self._rng.integers(len(self.lengths), size=1)).astype(np.float32)
        return unit(rows + self._rng.standard_normal(rows.shape, np.float32) / WIDTH**0.5)


def search(n_chunks: int, at_once: int, n_queries: int, device: str, seed: int, seconds: float) -> dict[str, float]:
    """Compare queries with all chunks, and the first and last documents with the CPU, in float32."""
    collection, scoring = Collection(n_chunks, seed), Scoring()
    scan = DeviceScan(collection.lengths, collection.read, WIDTH, [device], products_at_once=at_once)
    queries = [
        (
            rows,
            thresholds(
                theta, theta, np.ones_like(theta), np.full_like(theta, scoring.opening), np.ones(len(rows)), scoring
            ),
        )
        for rows in (collection.query() for _ in range(n_queries))
        for theta in [np.full(len(rows), _THETA, np.float32)]
    ]
    components = scan.components(queries, scoring)
    difference = 0.0
    everything = np.arange(len(collection.lengths))
    for some in (everything[:_CHECKED], everything[-_CHECKED:]):
        starts = np.cumsum(collection.lengths[some]) - collection.lengths[some]
        rows = collection.read(some).astype(np.float32)
        for (chunks, limits), found in zip(queries, components, strict=True):
            expected = chunk_component(*best_chunks(chunks, rows, starts), limits, scoring)
            difference = max(difference, float(np.abs(found[some] - expected).max()))
    times = np.array(timed(lambda: scan.components(queries, scoring), device, seconds)) * 1000 / n_queries
    values = {"measured": float(np.median(times)), "p95": float(np.percentile(times, 95))}
    return {**values, "largest difference": difference}


def train(make: Callable[[], Task[Any]], device: str, seconds: float) -> dict[str, float]:
    """Take training steps."""
    task, steps = make(), count()
    optimizer = torch.optim.AdamW(task.module.parameters(), lr=1e-5, fused=is_gpu(device))
    is_mixed = default_dtype(device) is torch.bfloat16
    drawing: list[float] = []
    n_tokens: list[int] = []

    def step() -> None:
        started = time.perf_counter()
        batch = task.batch(next(steps))
        drawing.append(time.perf_counter() - started)
        n_tokens.append(task.n_tokens(batch))
        with torch.autocast(device.partition(":")[0], torch.bfloat16, enabled=is_mixed):
            task.backward(batch, torch.Tensor.backward)
        optimizer.step()
        optimizer.zero_grad()

    task.module.train()
    times = timed(step, device, seconds)
    share = sum(drawing[1:]) / sum(times)
    return {"measured": sum(n_tokens[1:]) / sum(times), "steps/s": 1 / median(times), "drawing": share}


def ways(rates: Rates, sizes: Sizes, name: str, device: str, seed: int) -> list[Way]:
    """All paths, with their limits."""
    folder = resolve_backbone(name)
    encoder = load_trainable(name, device=device, dtype=default_dtype(device))
    texts = list(documents(sizes.lengths, sizes.n_documents, seed))
    segmented = [encoder.segment(document) for document in texts]
    bert = AutoConfig.from_pretrained(folder)
    shape = bert.num_hidden_layers, bert.hidden_size, bert.intermediate_size
    whole = SmithConfig()
    blocks = token_cost(whole.sentence_layers, whole.width, whole.sentence_ffn, whole.block_tokens)
    reads = 1 / rates.seconds(*token_cost(*shape, encoder.chunk_tokens))
    found = [Way("encoder", "tokens/s", reads, partial(encode, encoder, segmented, device))]
    for n_chunks, at_once in sizes.scans:
        for n in (1, sizes.n_queries):
            n_products = n_chunks * n * sum(_CHUNKS) / 2
            least = rates.seconds(4 * WIDTH * n_products, 4 * WIDTH * n_chunks + 16 * n_products)
            label = f"search of {n_chunks:,} chunks, {n} queries at once, {at_once:,} products"
            found.append(Way(label, "ms", 1000 * least / n, partial(search, n_chunks, at_once, n, device, seed)))

    def smith() -> Task[Any]:
        own = SmithEncoder.create(folder, whole, seed=seed, device=device)
        return SmithPretraining(own, [own.segment(text) for text in texts], SmithSettings(batch_size=sizes.batch_size))

    def colde() -> Task[Any]:
        own = ColdeEncoder.create(folder, ColdeConfig(), seed=seed, device=device, dtype=torch.float32)
        classes = Classes([number // 2 for number in range(len(texts))])
        settings = ContrastSettings(n_classes=sizes.batch_size // 2)
        return SectionContrast(own, [own.segment(text) for text in texts], classes, settings)

    # A backward pass computes twice as much as a forward pass.
    for title, make, cost in (
        ("SMITH-WP+SP", smith, blocks),
        ("CoLDE", colde, token_cost(*shape, encoder.chunk_tokens)),
    ):
        least = 3 * rates.seconds(*cost)
        found.append(Way(f"training of {title}", "tokens/s", 1 / least, partial(train, make, device)))
    for dtype, size in (("float32", 32), ("float16", 32), ("float16", 512)):
        rival = partial(encode_by_rival, str(folder), dtype, size, segmented, device)
        found.append(Way(f"sentence-transformers, {dtype}, batches of {size}", "tokens/s", reads, rival))
    return found


def measure(way: Way, seconds: float) -> Case:
    """Measure one path; where it fails, the reason is recorded, so that the others are measured."""
    limit = _rounded(way.limit)
    try:
        values = {name: _rounded(value) for name, value in way.measure(max(seconds, 0.0)).items()}
    except Exception as error:  # noqa: BLE001 - of torch, of a package that is missing, or of ours
        return Case(id=way.name, labels={"unit": way.unit, "failed": f"{error!r:.200}"}, values={"limit": limit})
    share = values["measured"] / limit if way.unit == "tokens/s" else limit / values["measured"]
    return Case(id=way.name, labels={"unit": way.unit}, values={"limit": limit, "share": _rounded(share), **values})


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


@program
@click.option("--minutes", default=10.0, type=click.FloatRange(0, min_open=True), help="After these, no path begins.")
@click.option(
    "--device", default="cuda", help="cuda, cuda:N, or cpu for a dry run, of which no run is kept without --out."
)
@click.option("--small", is_flag=True, help="Little work.")
@click.option("--encoder", default=DEFAULT_ENCODER, help="That reads, and whose parameters are trained.")
@measurement(seed="Of texts, vectors and new parameters.")
def main(call: Measurement, minutes: float, device: str, small: bool, encoder: str) -> None:
    """Measure encoding, search and training on a GPU beside what its rates allow.

    \b
    Example:
        python -m benchmarks study gpu --minutes 10
        python -m benchmarks study gpu --device cpu --small
    """
    check_device(device)
    sizes, is_dry = SMALL if small else FULL, not is_gpu(device)
    if is_dry and call.out == RESULTS:
        call = replace(call, out=None)
    ends = call.started + 60 * minutes
    rates = measure_rates(device, sizes)
    log(f"{_DRY * is_dry}{rates.n_bytes / 1e9:,.1f} GB/s, {rates.operations / 1e12:,.3f} TFLOP/s; predicted limits:")
    planned = ways(rates, sizes, encoder, device, call.seed)
    for way in planned:
        log(f"  {way.name}: {way.limit:,.3g} {way.unit}")
    cases = [
        Case(id="copy", labels={"unit": "GB/s"}, values={"measured": _rounded(rates.n_bytes / 1e9)}),
        Case(id="products", labels={"unit": "TFLOP/s"}, values={"measured": _rounded(rates.operations / 1e12)}),
    ]
    run = Run(
        task="gpu_dry_run" if is_dry else "gpu",
        dataset="synthetic",
        system="path",
        encoder=encoder_label(encoder),
        variant=f"{device.replace(':', '')}{'-small' * small}",
        details={"note": _DRY * is_dry + _NOTE, "not begun": (waiting := [way.name for way in planned])},
        origin=call.origin,
        cases=cases,
    )
    for number, way in enumerate(planned):
        if (left := ends - time.perf_counter()) > 0:
            waiting.remove(way.name)
            cases.append(measure(way, left / (len(planned) - number)))
            log(f"{way.name}: {cases[-1].values.get('measured', cases[-1].labels.get('failed'))} {way.unit}")
            call.keep(run)  # what was measured is kept, even if the machine is taken away
            if not is_dry:
                torch.cuda.empty_cache()
    click.echo(case_tables([run]))
