"""All scorers of pairs by name, and their options on the command line.

The modules of a scorer are imported when the scorer is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.lexical import BM25, LEXICAL, TfIdf
from benchmarks.pairs.scoring import Budget, Fit, Learned, Pair, PairScorer
from benchmarks.program import WORK, log, names_of
from benchmarks.systems import Settings
from engine.encoders.files import MINILM_NAME
from indexer.cli.options import DecoratedT, together

GIVEN = ("cosine", "maxsim")
TRAINED = (
    "cosine-infonce",
    *("smith-np", "smith-wp", "smith-wp-sp", "smith-short"),
    *("colde", "colde-without-aug", "colde-without-lstm", "colde-without-cl"),
    *("tde", "tde-without-topics"),
)
SCORERS = (*LEXICAL, *GIVEN, *TRAINED)
TRAINING_TOKENS = 1536  # of a document in a step: 48 blocks of 32 tokens, as in SMITH


@dataclass(frozen=True)
class ScorerOptions:
    """The options of scorers that a user chooses, and the place where vectors are stored."""

    encoder: str = MINILM_NAME  # compared unchanged, trained, or the backbone of a trained encoder
    device: str | None = None  # of models with parameters; by default a GPU if there is one
    training_tokens: int = TRAINING_TOKENS
    sizes: Mapping[str, str] = field(default_factory=dict)  # of new encoders, in place of those of their recipes
    work: Path = WORK  # folder of the vectors of encoders that are not trained
    documents: str = "pairs"  # name of the set of documents in `work`, with a checksum of them


def make_scorer(name: str, options: ScorerOptions) -> PairScorer:
    """Make a scorer of `SCORERS`, not fitted yet."""
    if name == "bm25":
        return bm25_scorer()
    if name == "tfidf":
        return tfidf_scorer()
    from benchmarks.pairs.encoders import Comparison, given_scorer, recipe, trained_scorer

    if name in GIVEN:
        place = options.documents, options.work
        return given_scorer(Comparison(name), options.encoder, *place, device=options.device, log=log)
    made = recipe(name, options.encoder, options.training_tokens, options.sizes)
    return trained_scorer(name, made, training_tokens=options.training_tokens, device=options.device)


def tfidf_scorer() -> PairScorer:
    """TF-IDF, fitted on the documents of all pairs: it reads the texts of test, but no judgment."""

    def learn(given: Fit) -> Learned:
        tfidf = TfIdf().fit(given.documents.values())
        return Learned(lambda pairs: np.array([tfidf.score(pair.first, pair.second) for pair in pairs], np.float64))

    return PairScorer("tfidf", TfIdf().settings, learn, is_trained=False)


def bm25_scorer() -> PairScorer:
    """The BM25 score of the second document, divided by the score of the first document for itself.

        s(a, b) = BM25(a, b) / BM25(a, a)

    The whole first document is the query. BM25 is a sum over the words of a query, so that one threshold fits
    queries of different lengths only after this division. The division is our choice, as no paper judges pairs by
    BM25. Document frequencies are from all documents passed to `fit`, those of test included: texts are no labels.
    """

    def learn(given: Fit) -> Learned:
        bm25 = BM25().fit(given.documents.values())

        def score(pairs: Sequence[Pair]) -> NDArray[np.float64]:
            positions: dict[str, list[int]] = defaultdict(list)
            for at, pair in enumerate(pairs):
                positions[pair.first].append(at)
            shares = np.zeros(len(pairs))
            for first, places in positions.items():
                scores = bm25.scores(given.documents[first])
                own = scores[bm25.row[first]]
                rows = [bm25.row[pairs[at].second] for at in places]
                shares[places] = scores[rows] / own if own > 0 else 0.0
            return shares

        return Learned(score)

    return PairScorer("bm25", BM25().settings, learn, is_trained=False)


def settings_not_default(scorer: PairScorer, options: ScorerOptions) -> Settings:
    """The settings of a scorer, not fitted yet, that differ from its defaults."""
    default = make_scorer(scorer.name, replace(options, training_tokens=TRAINING_TOKENS, sizes={})).settings
    return {name: value for name, value in scorer.settings.items() if default.get(name) != value}


def _read_sizes(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> Mapping[str, str]:
    sizes = {}
    for size in given:
        key, found, value = size.partition("=")
        if not (key and found and value):
            raise click.BadParameter(f"{size!r} is not KEY=VALUE, such as max_blocks=16")
        sizes[key] = value
    return sizes


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
    click.option(
        "--size",
        "sizes",
        multiple=True,
        callback=_read_sizes,
        help="KEY=VALUE, a size of new encoders, such as combination=mean; may be repeated.",
    ),
    click.option("--device", help="Device of all networks; by default a GPU if there is one."),
)


def systems_option(default: str) -> Callable[[DecoratedT], DecoratedT]:
    """The option --systems: some of the scorers, or all of them."""

    def read(context: click.Context, parameter: click.Parameter, names: str) -> tuple[str, ...]:
        return SCORERS if names == "all" else names_of(SCORERS)(context, parameter, names)

    listed = f"Systems, separated by commas, of {', '.join(SCORERS)}; or: all."
    return click.option("--systems", default=default, callback=read, help=listed)


def options_of(given: Mapping[str, Any], documents: str, work: Path) -> ScorerOptions:
    """The options of scorers, from the values of `fitting_options`."""
    return ScorerOptions(given["encoder"], given["device"], given["training_tokens"], given["sizes"], work, documents)
