"""Repeats the papers' own comparisons on the corpora at hand; writes a run for each variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import click

from benchmarks.options import data_option, log, out_option, work_option
from benchmarks.papers.comparison import Comparison, Conditions, Scale
from benchmarks.papers.runs import asked_of, paper_table, variant_run
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS
from benchmarks.runs import RUNS, Run, read_run, write_run
from engine.encoders.backbone.weights import MINILM_NAME
from engine.errors import EngineError

# What a variant may fail of by itself: a size that does not fit, memory, a disk; a bug is not caught.
_FAILURES = (EngineError, RuntimeError, ValueError, OSError, MemoryError)
PAPERS = ("smith", "colde", "docsplit", "tde")
_QUICK_TOKENS = 256  # at most
_SIZES = ("batch", "training_tokens", "max_words", "n_train", "n_test", "layers")


def comparisons_of(paper: str) -> Mapping[str, Comparison]:
    """The comparisons of one of `PAPERS`, by name; what they need is imported now."""
    declared: Sequence[Comparison] = import_module(f"benchmarks.papers.{paper}").COMPARISONS
    return {comparison.name: comparison for comparison in declared}


def quick_scale(scale: Scale) -> Scale:
    """So little that all variants of a paper are through in minutes."""
    tokens = min(scale.training_tokens, _QUICK_TOKENS)
    return Scale(4, 8, 300.0, training_tokens=tokens, max_words=120, n_train=24, n_test=8, layers=1)


def quick_variants(comparison: Comparison) -> list[str]:
    """The reference, and the first that is another one."""
    others = [variant.name for variant in comparison.variants if variant.name != comparison.reference]
    return [comparison.reference, *others[:1]]


def read_scale(_context: click.Context, _parameter: click.Parameter, given: str) -> Mapping[str, int]:
    """A callback that reads NAME=NUMBER by commas, of the fields of `Scale`."""
    values: dict[str, int] = {}
    for one in filter(None, (one.strip() for one in given.split(","))):
        name, _, number = one.partition("=")
        if name not in _SIZES or not number.isdecimal():
            raise click.BadParameter(f"{one!r} is not NAME=NUMBER, with a name of {', '.join(_SIZES)}")
        values[name] = int(number)
    return values


@program
@click.argument("paper", type=click.Choice(PAPERS))
@click.option("--comparisons", "names", default="", help="By commas; all of the paper by default.")
@click.option("--variants", default="", help="By commas; all of each comparison by default, two with --quick.")
@click.option("--list", "is_listed", is_flag=True, help="Name comparisons and variants, and stop.")
@click.option("--encoder", default=MINILM_NAME, show_default=True, help="Backbone: a folder, or a name.")
@click.option("--steps", type=click.IntRange(1), help="Updates of a variant; by default those of the comparison.")
@click.option("--seconds", type=click.FloatRange(1), help="Of training, at most; likewise.")
@click.option(
    "--scale",
    "sizes",
    default="",
    callback=read_scale,
    help=f"NAME=NUMBER by commas, of {', '.join(_SIZES)}; those not named are the comparison's.",
)
@click.option("--device", help="Of what is trained; a GPU where there is one by default.")
@click.option("--seed", default=0, show_default=True, help="Of all that is drawn.")
@click.option("--quick", is_flag=True, help="A few steps on a few cases; a run only where --out is given.")
@data_option
@work_option
@out_option
@click.pass_context
def main(
    context: click.Context,
    paper: str,
    names: str,
    variants: str,
    is_listed: bool,
    encoder: str,
    steps: int | None,
    seconds: float | None,
    sizes: Mapping[str, int],
    device: str | None,
    seed: int,
    quick: bool,
    data: Path,
    work: Path,
    out: Path | None,
) -> None:
    """Repeat the comparisons of PAPER, a run for each variant.

    A variant whose run is there, with the same data, scale, settings and seed, is not measured again: what was
    interrupted goes on by the same command. Where one fails, the others follow.

    \b
    Example:
        python -m benchmarks study papers smith --comparisons pretraining-aan
        python -m benchmarks study papers docsplit --variants docsplit,simcse --steps 200 --scale n_test=200
    """
    known = comparisons_of(paper)
    chosen = [known[name] for name in _names(names, known, "--comparisons") or known]
    wanted = _names(variants, [one.name for comparison in chosen for one in comparison.variants], "--variants")
    if is_listed:
        for comparison in chosen:
            click.echo(f"{comparison.name}: {', '.join(one.name for one in comparison.variants)}")
        return
    # Training is torch's, and a list needs none.
    from benchmarks.papers.shallow import shallow_backbone

    origin = origin_of(context, seed)
    folder = out or (None if quick else RESULTS)
    runs: list[Run] = []
    failed: list[str] = []
    for comparison in chosen:
        scale = replace(quick_scale(comparison.scale) if quick else comparison.scale, **sizes)
        scale = replace(scale, steps=steps or scale.steps, seconds=seconds or scale.seconds)
        default = quick_variants(comparison) if quick else []
        try:
            backbone = shallow_backbone(encoder, scale.layers, work)
            conditions = Conditions(scale, backbone, device, data, work, quick, origin, log)
            found, errors = run_comparison(comparison, wanted or default, conditions, folder)
        except EngineError as error:
            log(f"{comparison.name}: {error}")
            failed.append(f"{comparison.name}: {error}")
            continue
        runs += found
        failed += errors
    click.echo(paper_table(runs))
    if failed:
        raise click.ClickException(f"{len(failed)} failed; {'; '.join(failed)}")


def run_comparison(
    comparison: Comparison, names: Sequence[str], conditions: Conditions, folder: Path | None
) -> tuple[list[Run], list[str]]:
    """Measure variants one after the other, and write the run of each as soon as it is there.

    A variant whose run lies in the folder, of equal data, scale, settings and seed, is taken from there.

    Args:
        comparison: what is compared.
        names: of variants; all where there are none.
        conditions: what they get alike.
        folder: of results; None writes no run.

    Returns:
        The runs, in the order of the comparison, and of each variant that failed its name and why.

    Raises:
        EngineError: the data cannot be read.
    """
    chosen = [variant for variant in comparison.variants if not names or variant.name in names]
    if not chosen:
        return [], []
    bench = comparison.task.open(conditions)
    there = {run.system: run for run in _known(comparison, folder)}
    runs, failed = list[Run](), list[str]()
    for variant in chosen:
        label = f"{comparison.name}, {variant.name}"
        asked = (str(conditions.scale), str(bench.settings), conditions.origin.seed, variant.arm.settings)
        known = there.get(variant.name)
        if known is not None and (*asked_of(known)[2:5], known.settings) == asked:
            conditions.log(f"{label}: its run is there, with the same data, scale and settings")
            runs.append(known)
            continue
        conditions.log(f"{label}: up to {conditions.scale.steps:,} steps")
        try:
            measured = bench.measure(variant.arm)
        except _FAILURES as error:
            failed.append(f"{label}: {error or type(error).__name__}")
            conditions.log(f"{failed[-1]}")
            continue
        runs.append(variant_run(comparison, variant, bench, conditions, measured))
        if folder is not None:
            write_run(runs[-1], folder)
    return runs, failed


def _known(comparison: Comparison, folder: Path | None) -> list[Run]:
    if folder is None:
        return []
    runs = map(read_run, sorted((folder / RUNS / "papers").glob("*.jsonl.gz")))
    return [run for run in runs if run.variant == f"{comparison.paper}-{comparison.name}"]


def _names(given: str, known: Sequence[str] | Mapping[str, object], option: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    if unknown := [name for name in names if name not in known]:
        raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(dict.fromkeys(known))}", param_hint=option)
    return names
