"""Makes the papers' own comparisons again on the corpora at hand; writes a record for each variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.options import data_option, log, out_option, work_option
from benchmarks.papers.comparison import Comparison, Conditions, Scale
from benchmarks.papers.record import PaperRecord
from benchmarks.papers.table import paper_table
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS
from engine.encoders.backbone.weights import MINILM_NAME
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

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
@click.option("--quick", is_flag=True, help="A few steps on a few cases; a record only where --out is given.")
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
    """Make the comparisons of PAPER again, and write a record for each variant.

    A variant whose record is there, with the same data, scale, settings and seed, is not measured again: what was
    interrupted goes on by the same command. One that fails is recorded with its reason, and the others follow.

    \b
    Example:
        python -m benchmarks study papers_run smith --comparisons pretraining-aan
        python -m benchmarks study papers_run docsplit --variants docsplit,simcse --steps 200 --scale n_test=200
    """
    known = comparisons_of(paper)
    chosen = [known[name] for name in _names(names, known, "--comparisons") or known]
    wanted = _names(variants, [one.name for comparison in chosen for one in comparison.variants], "--variants")
    if is_listed:
        for comparison in chosen:
            click.echo(f"{comparison.name}: {', '.join(one.name for one in comparison.variants)}")
        return
    # Training is torch's, and a list needs none.
    from benchmarks.papers.runner import run_comparison
    from benchmarks.papers.shallow import shallow_backbone

    origin = origin_of(context, seed)
    folder = out or (None if quick else RESULTS)
    records: list[PaperRecord] = []
    failed: list[str] = []
    for comparison in chosen:
        scale = replace(quick_scale(comparison.scale) if quick else comparison.scale, **sizes)
        scale = replace(scale, steps=steps or scale.steps, seconds=seconds or scale.seconds)
        default = quick_variants(comparison) if quick else []
        try:
            backbone = shallow_backbone(encoder, scale.layers, work)
            conditions = Conditions(scale, backbone, device, data, work, quick, origin, log)
            records += run_comparison(comparison, wanted or default, conditions, folder)
        except EngineError as error:
            log(f"{comparison.name}: {error}")
            failed.append(f"{comparison.name}: {error}")
    click.echo(paper_table(records))
    failed += [f"{record.comparison}, {record.variant}: {record.failure}" for record in records if record.failure]
    if failed:
        raise click.ClickException(f"{len(failed)} failed; {'; '.join(failed)}")


def _names(given: str, known: Sequence[str] | Mapping[str, object], option: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    if unknown := [name for name in names if name not in known]:
        raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(dict.fromkeys(known))}", param_hint=option)
    return names
