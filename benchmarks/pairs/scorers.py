"""All scorers of pairs by name. What a scorer is made of is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.baselines.text_baselines import TEXT_BASELINES, text_scorer
from benchmarks.options import WORK
from benchmarks.pairs.scorer import PairScorer
from engine.encoders.backbone.weights import MINILM_NAME

NEURAL = ("dssm", "arc-i", "han", "smash", "re2", "matchbert", "s-bert-512", "s-longformer", "s-bigbird")
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
    "colde-without-aug",
    "colde-without-lstm",
    "colde-without-cl",
    "tde",
    "tde-without-topics",
)
LEARNED = (*NEURAL, *TRAINED)  # from pairs
SCORERS = ("bm25", *TEXT_BASELINES, *GIVEN, *LEARNED)

TRAINING_TOKENS = 1536  # of a document in a step: 48 blocks of 32, what SMITH reads


@dataclass(frozen=True)
class ScorerOptions:
    """What a user chooses of scorers, and where vectors are kept."""

    encoder: str = MINILM_NAME  # compared as it is, trained, or the backbone of what is trained
    device: str | None = None  # of whatever has weights; a GPU where there is one by default
    training_tokens: int = TRAINING_TOKENS
    word_vectors: Path | None = None  # a text file; by default they are learned from the documents
    longformer: str = ""  # weights; random where not given
    bigbird: str = ""
    is_small: bool = False  # neural baselines with narrow layers, for a first look
    work: Path = WORK  # folder of the vectors of encoders that are not trained
    documents: str = "pairs"  # name of the documents there, with a checksum that changes whenever they do
    log: Callable[[str], None] = lambda line: None  # gets a line before what takes long


def make_scorer(name: str, options: ScorerOptions) -> PairScorer:
    """Make a scorer of `SCORERS`, not fitted yet.

    Raises:
        EncoderError: it needs a backbone of another kind.
        MissingExtra: a package of an extra is not installed.
    """
    if name == "bm25":
        from benchmarks.baselines.bm25_pairs import BM25Pairs

        return BM25Pairs()
    if name in TEXT_BASELINES:
        return text_scorer(name, options.word_vectors)
    if name in NEURAL:
        from benchmarks.baselines.neural_scorers import Given, neural_scorer

        given = Given(options.word_vectors, options.encoder, options.longformer, options.bigbird, options.device)
        return neural_scorer(name, given=given, is_small=options.is_small)
    return _scorer_of_ours(name, options)


def _scorer_of_ours(name: str, options: ScorerOptions) -> PairScorer:
    if name in GIVEN:
        from benchmarks.pairs.comparing import Comparison
        from benchmarks.pairs.given_scorer import GivenScorer, Shelf

        shelf = Shelf(options.work, options.documents)
        return GivenScorer(options.encoder, Comparison(name), shelf, device=options.device, log=options.log)
    from benchmarks.pairs.recipes import recipe
    from benchmarks.pairs.trained_encoders import TrainedEncoder

    made = recipe(name, options.encoder, options.training_tokens)
    return TrainedEncoder(name, made, training_tokens=options.training_tokens, device=options.device)
