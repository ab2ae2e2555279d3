"""Measures a GPU in one call of a few minutes: its peak, encoding, exact and approximate search, an index end to end.

Needs a checkout, torch, transformers, numpy, sqlalchemy, click, xxhash and a FAISS built for
GPUs; the weights are those that ship with the project.
Stages run in the order of their worth, and each is written when it is done.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.gpus.record import Encoded, GpuRecord, Searched
from benchmarks.gpus.running import Stage, run_stages
from benchmarks.gpus.table import gpu_table
from benchmarks.origin import command_line
from benchmarks.records import RESULTS
from benchmarks.resuming import complete
from engine.devices import check_device, gpu_numbers, is_gpu
from engine.encoders.mean import MeanEncoder
from engine.encoders.weights import BUNDLED_NAME
from engine.errors import EncoderError, EngineError
from engine.origin import describe_origin

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


def _begun(device: str, encoder: MeanEncoder, is_quick: bool, command: str, seed: int) -> GpuRecord:
    import torch

    properties = torch.cuda.get_device_properties(device) if is_gpu(device) else None
    return GpuRecord(
        device=device,
        gpu=properties.name if properties else "",
        gpu_memory_bytes=properties.total_memory if properties else 0,
        encoder=f"{Path(encoder.name).name}@{encoder.fingerprint[:12]}",
        is_quick=is_quick,
        peak=None,
        encoded=[],
        searched=[],
        end_to_end=None,
        stage_seconds={},
        failed={},
        origin=describe_origin(command, seed),
    )


def _encoder(name: str, device: str) -> MeanEncoder:
    from engine.encoders.loading import load_encoder

    encoder = load_encoder(name, device=device)
    if not isinstance(encoder, MeanEncoder):
        raise EncoderError(f"encoder {name!r} is no backbone that is pooled as it is; name one, as {BUNDLED_NAME}")
    return encoder


def _read_sizes(_context: click.Context, _parameter: click.Parameter, sizes: str | None) -> tuple[int, ...]:
    numbers = [number.replace("_", "") for number in sizes.split(",")] if sizes else []
    if not all(number.isdecimal() and int(number) >= DOCUMENT_CHUNKS for number in numbers):
        raise click.BadParameter(f"{sizes!r} must be whole numbers from {DOCUMENT_CHUNKS} on, separated by commas")
    return tuple(map(int, numbers))


@click.command()
@click.option("--device", default="cuda:0", show_default=True, help="cuda:N; cpu, with --quick, tries the program out.")
@click.option("--encoder", "encoder_name", default=BUNDLED_NAME, show_default=True, help="Of the kind 'mean'.")
@click.option("--chunks", "sizes", callback=_read_sizes, help=f"Sizes, by commas.  [default: {SIZES[0]},{SIZES[1]}]")
@click.option("--limit-seconds", default=540.0, show_default=True, help="After which nothing more is begun.")
@click.option("--quick", is_flag=True, help="A few thousand vectors and a few documents; no record without --out.")
@click.option("--seed", default=0, show_default=True, help="Of vectors, sequences and centroids.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the record; the project's own, with --quick none."
)
@click.pass_context
def main(
    context: click.Context,
    device: str,
    encoder_name: str,
    sizes: tuple[int, ...],
    limit_seconds: float,
    quick: bool,
    seed: int,
    out: Path | None,
) -> None:
    """Measure a GPU, and write a record after each stage.

    \b
    Example:
        python -m benchmarks.gpu --limit-seconds 540
        python -m benchmarks.gpu --quick --device cpu
    """
    command = command_line("benchmarks.gpu", context, leave_out=("out",))
    out = out or (None if quick else RESULTS)
    plan = QUICK if quick else Plan()
    plan = replace(plan, sizes=sizes or plan.sizes)
    try:
        if not is_gpu(device) and not quick:
            raise EncoderError(f"device {device!r} is no GPU; name one, as cuda:0, or try the program: --quick")
        check_device(device)
        encoder = _encoder(encoder_name, device)
        begun = _begun(device, encoder, quick, command, seed)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="longmatch-gpu-")))
            planned = stages(plan, device, encoder, folder, seed)
            record = run_stages(begun, planned, limit_seconds, out, lambda line: click.echo(line, err=True))
        if out is not None:
            complete(record, out)
    except EngineError as error:
        raise click.ClickException(str(error)) from error
    click.echo(gpu_table([record]))
    if record.failed:
        raise click.ClickException(f"{len(record.failed)} of {len(planned)} stages failed: {', '.join(record.failed)}")


if __name__ == "__main__":
    main()
