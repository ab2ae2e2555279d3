"""Repeats the comparisons of papers on the available corpora; writes a run for each variant and seed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import click

from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.options import log
from benchmarks.papers.comparison import Bench, Comparison, Conditions, Scale
from benchmarks.papers.tables import Trial, is_of, paper_table, variant_run
from benchmarks.program import program
from benchmarks.runs import RUNS, Run, read_run, write_run
from engine.encoders.backbone.weights import MINILM_NAME
from engine.errors import EngineError

# Failures of one variant alone: a size that does not fit, memory, a disk. Other errors are bugs and not caught.
_FAILURES = (EngineError, RuntimeError, ValueError, OSError, MemoryError)
PAPERS = ("smith", "colde", "docsplit", "tde")
_QUICK_TOKENS, _QUICK_WORDS = 256, 120  # at most
_SIZES = ("batch", "training_tokens", "max_words", "n_train", "n_test", "layers")


def comparisons_of(paper: str) -> Mapping[str, Comparison]:
    """The comparisons of one of `PAPERS`, by name; imports their modules."""
    declared: Sequence[Comparison] = import_module(f"benchmarks.papers.{paper}").COMPARISONS
    return {comparison.name: comparison for comparison in declared}


def quick_scale(comparison: Comparison) -> Scale:
    """A scale at which all variants of a paper take minutes."""
    scale = comparison.scale
    tokens = min(scale.training_tokens, _QUICK_TOKENS)
    max_words = scale.max_words if comparison.is_long else _QUICK_WORDS
    return Scale(4, 8, training_tokens=tokens, max_words=max_words, n_train=24, n_test=8, layers=1)


def quick_variants(comparison: Comparison) -> list[str]:
    """The reference and the first other variant."""
    others = [variant.name for variant in comparison.variants if variant.name != comparison.reference]
    return [comparison.reference, *others[:1]]


def read_scale(_context: click.Context, _parameter: click.Parameter, given: str) -> Mapping[str, int]:
    """A callback that reads fields of `Scale` as NAME=NUMBER, separated by commas."""
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
@click.option(
    "--variants", "chosen", default="", help="By commas; all of each comparison by default, two with --quick."
)
@click.option("--list", "is_listed", is_flag=True, help="Name comparisons and variants, and stop.")
@click.option("--encoder", default=MINILM_NAME, help="Backbone: a folder, or a name.")
@click.option("--seeds", type=click.IntRange(1), help="Trainings of a variant; by default those of the comparison.")
@click.option("--steps", type=click.IntRange(1), help="Updates of a variant; by default those of the comparison.")
@click.option(
    "--scale",
    "sizes",
    default="",
    callback=read_scale,
    help=f"NAME=NUMBER by commas, of {', '.join(_SIZES)}; those not named are the comparison's.",
)
@click.option("--device", help="Of training; a GPU where there is one by default.")
@measurement(
    seed="Of the first training, and of all cases that are drawn.",
    quick="A few steps on a few cases",
    data=True,
    work="Folder for encoders, indexes and vectors; kept and resumed.",
)
def main(
    call: Measurement,
    paper: str,
    names: str,
    chosen: str,
    is_listed: bool,
    encoder: str,
    seeds: int | None,
    steps: int | None,
    sizes: Mapping[str, int],
    device: str | None,
) -> None:
    """Repeat the comparisons of PAPER, a run for each variant and seed.

    A variant with an existing run of the same data, scale, settings and seed is not measured again, and a trained
    encoder is not trained again: the same command resumes an interrupted call. If one variant fails, the others
    still run.

    \b
    Example:
        python -m benchmarks study papers smith --comparisons pretraining-aan --seeds 3
        python -m benchmarks study papers docsplit --variants docsplit,simcse --steps 200 --scale n_test=200
    """
    known = comparisons_of(paper)
    comparisons = [known[name] for name in _names(names, known, "--comparisons") or known]
    wanted = _names(chosen, [one.name for comparison in comparisons for one in comparison.variants], "--variants")
    if is_listed:
        for comparison in comparisons:
            click.echo(f"{comparison.name}: {', '.join(one.name for one in comparison.variants)}")
        return
    # Imported here, since torch is slow to import and --list does not need it.
    from benchmarks.papers.backbones import backbone_label, shallow_backbone

    runs, failed = list[Run](), list[str]()
    for comparison in comparisons:
        scale = replace(quick_scale(comparison) if call.is_quick else comparison.scale, **sizes)
        scale = replace(scale, steps=steps or scale.steps)
        try:
            backbone = shallow_backbone(encoder, scale.layers, call.work)
            conditions = Conditions(
                scale=scale,
                encoder=backbone,
                backbone=backbone_label(backbone),
                device=device,
                data=call.data,
                work=call.work,
                is_quick=call.is_quick,
                origin=call.origin,
                draw_seed=call.seed,
                log=log,
            )
            default = quick_variants(comparison) if call.is_quick else []
            n_seeds = seeds or (1 if call.is_quick else comparison.seeds)
            found, errors = run_comparison(comparison, wanted or default, conditions, call.out, n_seeds)
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
    comparison: Comparison, names: Sequence[str], conditions: Conditions, folder: Path | None, n_seeds: int = 1
) -> tuple[list[Run], list[str]]:
    """Measure variants one by one, and write the run of each as soon as it is finished.

    A run in the folder with equal data, scale, settings and seed is reused.

    Args:
        comparison: the comparison to run.
        names: the names of variants; all variants if empty.
        conditions: the conditions of all variants, with the seed of the first training.
        folder: the folder of results; None writes no run.
        n_seeds: trainings of each variant.

    Returns:
        The runs, by seed in the order of the comparison, and for each failed variant its name and the reason.

    Raises:
        EngineError: the data cannot be read.
    """
    chosen = [variant for variant in comparison.variants if not names or variant.name in names]
    if not chosen:
        return [], []
    bench = comparison.judge.open(conditions)
    earlier = _earlier(comparison, folder)
    runs, failed = list[Run](), list[str]()
    first = conditions.origin.seed
    for seed in range(first, first + n_seeds):
        seeded = replace(conditions, origin=replace(conditions.origin, seed=seed))
        for variant in chosen:
            trial = Trial(comparison, variant, bench.settings, seeded)
            label = ", ".join([comparison.name, variant.name, *[f"seed {seed}"] * bool(seed)])
            try:
                known = [run for run in earlier if is_of(run, trial)]
                runs.append(known[0] if known else _measure(trial, bench))
            except _FAILURES as error:
                failed.append(f"{label}: {error or type(error).__name__}")
                conditions.log(failed[-1])
                continue
            if known:
                conditions.log(f"{label}: its run is there, with the same data, scale and settings")
            elif folder is not None:
                write_run(runs[-1], folder)
    return runs, failed


def _measure(trial: Trial, bench: Bench) -> Run:
    trial.conditions.log(f"{trial.comparison.name}, {trial.variant.name}")
    made = trial.variant.system.make(trial.conditions)
    started = time.perf_counter()
    judged = bench.judge(made)
    return variant_run(trial, made, judged, made.seconds + time.perf_counter() - started)


def _earlier(comparison: Comparison, folder: Path | None) -> list[Run]:
    if folder is None:
        return []
    runs = map(read_run, sorted((folder / RUNS / "papers").glob("*.jsonl.gz")))
    return [run for run in runs if run.variant == f"{comparison.paper}-{comparison.name}"]


def _names(given: str, known: Sequence[str] | Mapping[str, object], option: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    if unknown := [name for name in names if name not in known]:
        raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(dict.fromkeys(known))}", param_hint=option)
    return names
