"""Measures a GPU in one call of a few minutes: its peak, encoding, exact and approximate search, an index end to end.

Needs a checkout, torch, transformers, numpy, sqlalchemy, click, xxhash and a FAISS built for
GPUs; the weights are those that ship with the project.
Stages run in the order of their worth, and each is written when it is done.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import click

from benchmarks.gpus.record import GpuRecord
from benchmarks.gpus.running import run_stages
from benchmarks.gpus.stages import DOCUMENT_CHUNKS, QUICK, SIZES, Plan, stages
from benchmarks.gpus.table import gpu_table
from benchmarks.options import out_option, read_numbers, tell
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS
from benchmarks.resuming import complete
from engine.devices import check_device, is_gpu
from engine.encoders.mean import MeanEncoder
from engine.encoders.weights import BUNDLED_NAME
from engine.errors import EncoderError
from engine.origin import Origin


def _begun(device: str, encoder: MeanEncoder, is_quick: bool, origin: Origin) -> GpuRecord:
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
        origin=origin,
    )


def _encoder(name: str, device: str) -> MeanEncoder:
    from engine.encoders.loading import load_encoder

    encoder = load_encoder(name, device=device)
    if not isinstance(encoder, MeanEncoder):
        raise EncoderError(f"encoder {name!r} is no backbone that is pooled as it is; name one, as {BUNDLED_NAME}")
    return encoder


@program
@click.option("--device", default="cuda:0", show_default=True, help="cuda:N; cpu, with --quick, tries the program out.")
@click.option("--encoder", "encoder_name", default=BUNDLED_NAME, show_default=True, help="Of the kind 'mean'.")
@click.option("--chunks", "sizes", callback=read_numbers, help=f"Sizes, by commas.  [default: {SIZES[0]},{SIZES[1]}]")
@click.option("--limit-seconds", default=540.0, show_default=True, help="After which nothing more is begun.")
@click.option("--quick", is_flag=True, help="A few thousand vectors and a few documents; no record without --out.")
@click.option("--seed", default=0, show_default=True, help="Of vectors, sequences and centroids.")
@out_option
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
    out = out or (None if quick else RESULTS)
    plan = QUICK if quick else Plan()
    plan = replace(plan, sizes=sizes or plan.sizes)
    if min(plan.sizes) < DOCUMENT_CHUNKS:
        raise click.BadParameter(
            f"--chunks {min(plan.sizes)} is less than a document has; give {DOCUMENT_CHUNKS} or more"
        )
    if not is_gpu(device) and not quick:
        raise EncoderError(f"device {device!r} is no GPU; name one, as cuda:0, or try the program: --quick")
    check_device(device)
    encoder = _encoder(encoder_name, device)
    begun = _begun(device, encoder, quick, origin_of(context, seed))
    with tempfile.TemporaryDirectory(prefix="longmatch-gpu-") as folder:
        planned = stages(plan, device, encoder, Path(folder), seed)
        record = run_stages(begun, planned, limit_seconds, out, tell)
    if out is not None:
        complete(record, out)
    click.echo(gpu_table([record]))
    if record.failed:
        raise click.ClickException(f"{len(record.failed)} of {len(planned)} stages failed: {', '.join(record.failed)}")


if __name__ == "__main__":
    main()
