"""What is measured of a GPU, stage by stage, and how much of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.gpus.record import Encoded, GpuRecord, Searched
from benchmarks.gpus.running import Stage
from engine.devices import gpu_numbers, is_gpu
from engine.encoders.mean import MeanEncoder
from engine.errors import EncoderError

if TYPE_CHECKING:
    from engine.store.gpus import Gpus

BUDGETS = (8_192, 16_384, 32_768, 65_536, 131_072, 262_144)
SIZES = (1_000_000, 10_000_000)
DOCUMENT_CHUNKS = 40
SEQUENCE_TOKENS = 128
PEERS = "encoding texts, sentence-transformers"


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    budgets: tuple[int, ...] = BUDGETS
    sizes: tuple[int, ...] = SIZES
    width: int = 384
    n_queries: int = 50  # documents
    rounds: int = 4
    n_sequences: int = 16_384
    peak_size: int = 8_192
    n_documents: int | None = None  # of the demo
    factory: str = "IVF64,PQ64x4fs"
    codes: tuple[str, ...] = ("SQfp16", "SQ8")


QUICK = Plan(
    budgets=(512, 1024),
    sizes=(4_000, 8_000),
    width=64,
    n_queries=4,
    rounds=2,
    n_sequences=24,
    peak_size=256,
    n_documents=6,
    factory="IVF4,PQ8x4fs",
    codes=("SQ8",),
)


def stages(plan: Plan, device: str, encoder: MeanEncoder, folder: Path, seed: int) -> dict[str, Stage]:
    """All stages by name, those of most worth first."""
    from benchmarks.gpus import encoding, searching
    from benchmarks.gpus.demo import demo_documents, measure_demo
    from benchmarks.gpus.machine import measure_peak
    from benchmarks.gpus.vectors import draw, exact_best
    from benchmarks.vectors.collection import Law
    from engine.acceleration import accelerate_on
    from engine.scoring.gpu_products import TorchProducts

    gpus = _gpus(device)
    products = TorchProducts(device)

    @cache
    def trial(n_chunks: int) -> searching.Trial:
        drawn = draw(Law(n_chunks // DOCUMENT_CHUNKS, DOCUMENT_CHUNKS, plan.width), plan.n_queries, device, seed)
        best = exact_best(drawn, searching.K, device)
        return searching.Trial(drawn, best, gpus, is_gpu(device), plan.rounds, seed)

    def searched(measure: Callable[[], Searched]) -> Stage:
        return lambda record: replace(record, searched=[*record.searched, measure()])

    def encoded(measure: Callable[[GpuRecord], list[Encoded]]) -> Stage:
        return lambda record: replace(record, encoded=[*record.encoded, *measure(record)])

    def flat(n_chunks: int) -> Stage:
        return searched(lambda: searching.measure_flat(trial(n_chunks), compare=n_chunks == plan.sizes[0]))

    def lists(n_chunks: int, code: str) -> Stage:
        return searched(lambda: searching.measure_lists(trial(n_chunks), code))

    def whole(record: GpuRecord) -> GpuRecord:
        documents = demo_documents(plan.n_documents)
        accelerate = partial(accelerate_on, gpus=gpus, multiply=products)
        measured = measure_demo(folder / "demo.lm", documents, encoder, accelerate, plan.factory)
        return replace(record, end_to_end=measured)

    backbone = encoder.backbone
    longest = min(SEQUENCE_TOKENS - backbone.tokenizer.n_special, backbone.max_tokens)
    length = longest + backbone.tokenizer.n_special
    mixed = encoding.mixed_lengths(plan.n_sequences, backbone.max_tokens, seed)
    usual = plan.budgets[len(plan.budgets) // 2]

    def sequences(what: str, lengths: list[int]) -> Stage:
        return encoded(
            lambda record: encoding.measure_sequences(
                backbone, what, encoding.drawn_sequences(backbone, lengths, seed), plan.budgets, record.peak
            )
        )

    def texts() -> list[str]:
        return encoding.chunk_texts(encoder, demo_documents(plan.n_documents))

    first, *larger = plan.sizes
    return {
        "peak": lambda record: replace(record, peak=measure_peak(device, plan.peak_size)),
        "layers": encoded(lambda record: encoding.measure_layers(backbone, length, plan.budgets, record.peak)),
        f"encoding {length} tokens": sequences(f"{length} tokens", [longest] * plan.n_sequences),
        f"flat {first:,}": flat(first),
        "index": whole,
        **{f"flat {size:,}": flat(size) for size in larger},
        **{f"lists {size:,} {plan.codes[0]}": lists(size, plan.codes[0]) for size in (*larger, first)},
        "encoding mixed lengths": sequences("mixed lengths", mixed),
        "encoding texts": encoded(lambda record: encoding.measure_texts(encoder, texts(), usual, record.peak)),
        PEERS: encoded(lambda record: encoding.measure_peers(encoder, texts(), record.peak)),
        **{f"lists {size:,} {code}": lists(size, code) for code in plan.codes[1:] for size in (*larger, first)},
    }


def _gpus(device: str) -> Gpus:
    """The GPUs of a device; on the CPU what stands in for one.

    Raises:
        EncoderError: FAISS cannot use them.
    """
    from benchmarks.gpus.stand_in import StandInGpus
    from engine.store.gpus import FaissGpus, why_none

    if not is_gpu(device):
        return StandInGpus()
    if reason := why_none(gpu_numbers(device)):
        raise EncoderError(f"nothing is searched on {device}: {reason}")
    return FaissGpus(gpu_numbers(device))
