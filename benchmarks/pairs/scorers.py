"""All scorers of pairs by name, their options on the command line, and the loop that measures them.

The modules of a scorer are imported when the scorer is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from benchmarks.baselines.text_baselines import TEXT_BASELINES, text_scorer
from benchmarks.pair_scorer import Budget, PairScorer
from benchmarks.pairs.building import PreparedPairs
from benchmarks.program import WORK, log, names_of
from benchmarks.quick import first_words
from benchmarks.runs import Run
from benchmarks.systems import Settings
from engine.encoders.files import MINILM_NAME
from engine.errors import EngineError
from engine.text.document import Document
from indexer.cli.option_groups import DecoratedT, together

NEURAL = (
    *("dssm", "arc-i", "han", "smash", "re2"),
    *("matchbert", "s-bert-512", "s-longformer", "s-bigbird"),
)
TOGETHER = ("re2",)  # reads both documents of a pair together: too slow to rank a corpus
GIVEN = ("cosine", "maxsim")
TRAINED = (
    "cosine-bce",
    "cosine-infonce",
    "cosine-supcon",
    "maxsim-trained",
    "smith-np",
    "smith-wp",
    "smith-wp-sp",
    "smith-short",
    "colde",
    "colde-paper",
    "colde-released",
    "colde-without-aug",
    "colde-without-lstm",
    "colde-without-cl",
    "tde",
    "tde-without-topics",
)
LEARNED = (*NEURAL, *TRAINED)  # scorers that learn from pairs
SCORERS = ("bm25", *TEXT_BASELINES, *GIVEN, *LEARNED)

TRAINING_TOKENS = 1536  # of a document in a step: 48 blocks of 32 tokens, as in SMITH


@dataclass(frozen=True)
class ScorerOptions:
    """The options of scorers that a user chooses, and the place where vectors are stored."""

    encoder: str = MINILM_NAME  # compared unchanged, trained, or the backbone of a trained encoder
    device: str | None = None  # of models with parameters; by default a GPU if there is one
    training_tokens: int = TRAINING_TOKENS
    longformer: str = ""  # pretrained parameters; those of `encoder` if not given
    bigbird: str = ""  # as `longformer`
    is_small: bool = False  # neural baselines with narrow layers, for a first look
    sizes: Mapping[str, str] = field(default_factory=dict)  # of new encoders, in place of those of their recipes
    work: Path = WORK  # folder of the vectors of encoders that are not trained
    documents: str = "pairs"  # name of the set of documents in `work`, with a checksum of them
    log: Callable[[str], None] = lambda line: None  # called with a line before long operations


def make_scorer(name: str, options: ScorerOptions) -> PairScorer:
    """Make a scorer of `SCORERS`, not fitted yet."""
    if name == "bm25":
        from benchmarks.baselines.lexical import BM25Pairs

        return BM25Pairs()
    if name in TEXT_BASELINES:
        return text_scorer(name)
    if name in NEURAL:
        from benchmarks.baselines.neural_scorers import Given, neural_scorer

        given = Given(options.encoder, options.longformer, options.bigbird, options.device)
        return neural_scorer(name, given=given, is_small=options.is_small)
    return _scorer_of_ours(name, options)


def _scorer_of_ours(name: str, options: ScorerOptions) -> PairScorer:
    if name in GIVEN:
        from benchmarks.pairs.comparing import Comparison, GivenScorer, Shelf

        shelf = Shelf(options.work, options.documents)
        return GivenScorer(options.encoder, Comparison(name), shelf, device=options.device, log=options.log)
    from benchmarks.pairs.recipes import recipe
    from benchmarks.pairs.trained_encoders import TrainedEncoder

    made = recipe(name, options.encoder, options.training_tokens, sizes=options.sizes)
    return TrainedEncoder(name, made, training_tokens=options.training_tokens, device=options.device)


def sizes_read(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> Mapping[str, str]:
    """A callback that reads KEY=VALUE, several times."""
    sizes = {}
    for one in given:
        key, found, value = one.partition("=")
        if not (key and found and value):
            raise click.BadParameter(f"{one!r} is not KEY=VALUE, such as max_blocks=16")
        sizes[key] = value
    return sizes


QUICK_PAIRS = 12  # most matching pairs of a split
_QUICK_WORDS = 300
_QUICK_BUDGET = Budget(steps=4, pairs_per_step=8)
_QUICK_TOKENS = 256
_BUDGET = Budget()

fitting_options = together(
    click.option(
        "--steps", default=_BUDGET.steps, type=click.IntRange(1), help="Budget of training: number of updates."
    ),
    click.option(
        "--pairs-per-step",
        default=_BUDGET.pairs_per_step,
        type=click.IntRange(8),
        help="Budget of training: pairs per update.",
    ),
    click.option("--encoder", default=MINILM_NAME, help="Encoder to compare, to train, or to use as a backbone."),
    click.option("--training-tokens", default=TRAINING_TOKENS, type=click.IntRange(16)),
    click.option("--longformer", default="", help="Parameters of s-longformer; by default those of --encoder."),
    click.option("--bigbird", default="", help="Parameters of s-bigbird; by default those of --encoder."),
    click.option("--small", is_flag=True, help="Use neural baselines with narrow layers, for a first test."),
    click.option(
        "--size",
        "sizes",
        multiple=True,
        callback=sizes_read,
        help="KEY=VALUE, a size of new encoders, such as combination=mean; may be repeated.",
    ),
    click.option("--device", help="Device of all networks; by default a GPU if there is one."),
)


def systems_option(default: str, known: Sequence[str]) -> Callable[[DecoratedT], DecoratedT]:
    """The option --systems: some of the scorers that a command knows, or all of them."""

    def read(context: click.Context, parameter: click.Parameter, names: str) -> tuple[str, ...]:
        return tuple(known) if names == "all" else names_of(known)(context, parameter, names)

    listed = f"Systems, separated by commas, of {', '.join(known)}; or: all."
    return click.option("--systems", default=default, callback=read, help=listed)


def budget_of(given: Mapping[str, Any], *, quick: bool) -> Budget:
    """The budget of a scorer, from the values of `fitting_options`."""
    return _QUICK_BUDGET if quick else Budget(given["steps"], given["pairs_per_step"])


def read_scorer_options(given: Mapping[str, Any], prepared: PreparedPairs, work: Path, *, quick: bool) -> ScorerOptions:
    """The options of scorers, from the values of `fitting_options`."""
    n_words = _QUICK_WORDS if quick else given.get("words")
    return ScorerOptions(
        encoder=given["encoder"],
        device=given["device"],
        training_tokens=_QUICK_TOKENS if quick else given["training_tokens"],
        longformer=given["longformer"],
        bigbird=given["bigbird"],
        is_small=given["small"] or quick,
        sizes=given["sizes"],
        work=work,
        documents=prepared.dataset + (f"-first{n_words}" if n_words else ""),
        log=log,
    )


def documents_to_fit(prepared: PreparedPairs, words: int | None, *, quick: bool) -> Mapping[str, Document]:
    """The documents of pairs, up to their first words if there is a limit; a quick run has one."""
    n_words = _QUICK_WORDS if quick else words
    if n_words is None:
        return prepared.documents
    return {doc_id: first_words(document, n_words) for doc_id, document in prepared.documents.items()}


def measure_each(
    names: Sequence[str],
    options: ScorerOptions,
    measure: Callable[[PairScorer, Settings], Run],
    *,
    task: str,
    keep: Callable[[Run], None],
    rank: Callable[[PairScorer], None],
    save: Path | None = None,
) -> tuple[list[Run], list[str]]:
    """Measure scorers one by one.

    Args:
        measure: called with a scorer that is not fitted yet, and its settings that differ from the defaults.

    Returns:
        The runs, and for each failed scorer its name and the reason.
    """
    runs: list[Run] = []
    failed: list[str] = []
    for name in names:
        log(f"{task} to {name}")
        try:
            scorer = make_scorer(name, options)
            run = measure(scorer, _not_default(scorer, options))
            keep(run)
            _save(scorer, options, save)
            rank(scorer)
        except EngineError as error:
            log(f"{name}: {error}")
            failed.append(f"{name}: {error}")
            continue
        runs.append(run)
    return runs, failed


def _save(scorer: PairScorer, options: ScorerOptions, folder: Path | None) -> None:
    if folder is None:
        return
    if scorer.name not in TRAINED:
        log(f"{scorer.name} scores pairs and has no vector of a document; it is not saved")
        return
    from benchmarks.pairs.trained_encoders import TrainedEncoder

    assert isinstance(scorer, TrainedEncoder)
    place = folder / "-".join([scorer.name, *options.sizes.values()])
    place.mkdir(parents=True, exist_ok=True)
    scorer.save(place)


def refuse_failed(failed: Sequence[str], n_scorers: int) -> None:
    """Fail a command if some of its scorers failed; called after all others are measured."""
    if failed:
        raise click.ClickException(f"{len(failed)} of {n_scorers} scorers failed; {'; '.join(failed)}")


def _not_default(scorer: PairScorer, options: ScorerOptions) -> Settings:
    """The settings of a scorer, not fitted yet, that differ from its defaults."""
    plain = replace(options, training_tokens=TRAINING_TOKENS, is_small=False, sizes={})
    default = make_scorer(scorer.name, plain).settings
    return {name: value for name, value in scorer.settings.items() if default.get(name) != value}
