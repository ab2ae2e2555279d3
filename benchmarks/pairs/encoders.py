"""Encoders as scorers of pairs: given ones, and those that are trained on pairs of train by a recipe.

A step of training reads `pairs_per_step` pairs, and of each document a stretch of about `training_tokens`. Letters in
shapes: I chunks of the first document, J chunks of the second, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.pairs.scoring import LABELS_ALONE, Budget, Course, Fit, Learned, Pair, PairScorer, documents_of
from benchmarks.pairs.training import Selection, best_accuracy, sample_valid, train_to_best
from benchmarks.prepare import prepared_documents
from benchmarks.systems import Settings, encoder_label
from engine.encoders.colde import ColdeEncoder
from engine.encoders.encoder import EncodedDocument, Encoder, Vectors
from engine.encoders.files import CARD_FILE, parse_json, resolve_backbone, weights_sha256
from engine.encoders.smith import SmithEncoder
from engine.encoders.tde import TdeEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import EncoderError, TrainingError
from engine.scoring.evidence import chunk_weights
from engine.text.document import Document
from engine.training.corpus import TrainingCorpus
from engine.training.fine_tuning import FineTuning, FineTuningSettings, Loss, Source
from engine.training.masked_words import Objective, SmithPretraining, SmithSettings
from engine.training.pair_tasks import (
    BACKBONE_RATE,
    HEAD_RATE,
    ContrastSettings,
    LabelledPair,
    PairGraph,
    SectionContrast,
    TextPairs,
    TextPairsSettings,
)
from engine.training.selection import RandomRuns, spread_chunks
from engine.training.task import Task
from engine.training.trainer import TrainerSettings
from indexer.training.start import NewEncoder, NewKind, Start, StartingEncoder, starting_encoder

Objectives: TypeAlias = FineTuningSettings | ContrastSettings | TextPairsSettings
_TOPIC_EPOCHS = 200  # most epochs of topics
_DOCUMENTS_AT_A_TIME = 32


class Comparison(StrEnum):
    """The score of two documents from their vectors."""

    COSINE = "cosine"  # cosine of the document vectors
    MAXSIM = "maxsim"  # mean best match of the first document's chunks
    HEAD = "head"  # the probability of a TDE's pair head


def mean_best_match(first: Vectors, weights: NDArray[np.float64], second: Vectors) -> float:
    """The mean similarity of the chunks of one document to their best chunks in another, without search thresholds.

        s(a, b) = sum_i w_i max_j <a_i, b_j> / sum_i w_i

    for unit rows and weights above 0; in [-1, 1], not symmetric.
    """
    best = (first @ second.T).max(axis=1).astype(np.float64)
    return float(weights @ best / weights.sum())


@dataclass(frozen=True)
class Side:
    """The stored vectors of a document for comparisons; chunks in half precision, as in an index."""

    document: Vectors  # (D,)
    chunks: NDArray[np.float16]  # (I, D); no rows if chunks are not compared
    weights: NDArray[np.float64]  # (I,)


class Comparer:
    """Scores two encoded documents."""

    def __init__(self, encoder: Encoder, comparison: Comparison) -> None:
        """Compare documents that `encoder` encoded."""
        if comparison is Comparison.HEAD and not isinstance(encoder, TdeEncoder):
            raise EncoderError(f"{encoder.name} has no pair head, a TDE has; compare by cosine or by maxsim")
        self._encoder = encoder
        self.comparison = comparison

    def side(self, encoded: EncodedDocument) -> Side:
        """The vectors of a document that the comparison needs."""
        chunks = encoded.chunks if self.comparison is Comparison.MAXSIM else encoded.chunks[:0]
        n_tokens = np.array([chunk.n_tokens for chunk in encoded.chunk_spans])
        return Side(encoded.document, chunks.astype(np.float16), chunk_weights(n_tokens))

    def score(self, first: Side, second: Side) -> float:
        """The score of two documents; higher for a match."""
        match self.comparison:
            case Comparison.COSINE:
                return float(first.document @ second.document)
            case Comparison.MAXSIM:
                return mean_best_match(first.chunks.astype(np.float32), first.weights, second.chunks.astype(np.float32))
            case Comparison.HEAD:
                assert isinstance(self._encoder, TdeEncoder)
                return float(self._encoder.match_probability(first.document, second.document))

    def scores(self, sides: Mapping[str, Side], pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """(N,) scores of pairs of documents."""
        return np.array([self.score(sides[pair.first], sides[pair.second]) for pair in pairs])


def encoded_sides(encoder: Encoder, comparer: Comparer, documents: Mapping[str, Document]) -> dict[str, Side]:
    """Encode whole documents in blocks, and return their sides by doc_id."""
    doc_ids, sides = list(documents), dict[str, Side]()
    for start in range(0, len(doc_ids), _DOCUMENTS_AT_A_TIME):
        block = doc_ids[start : start + _DOCUMENTS_AT_A_TIME]
        encoded = encoder.encode([documents[doc_id] for doc_id in block])
        sides |= {doc_id: comparer.side(one) for doc_id, one in zip(block, encoded, strict=True)}
    return sides


def given_scorer(
    comparison: Comparison,
    encoder: str,
    name: str,
    work: Path,
    *,
    device: str | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> PairScorer:
    """A given encoder: encodes each whole document by itself, and compares documents by vectors.

    The vectors are from an index of the documents, in half precision. The first scorer of an encoder builds the index,
    and later scorers, seeds and budgets share it; an interrupted build is resumed. `name` has a checksum of them.
    """

    def learn(given: Fit) -> Learned:
        with prepared_documents(name, given.documents.values(), encoder, work, log, device=device) as ready:
            comparer, stored = Comparer(ready.index.encoder, comparison), ready.index.stored_query
            sides = {doc_id: comparer.side(stored(doc_id).vectors) for doc_id in given.documents}
        return Learned(lambda pairs: comparer.scores(sides, pairs), ready.encoder)

    return PairScorer(comparison.value, {"comparison": comparison.value}, learn, is_trained=False)


class ValidAccuracy:
    """The accuracy on some pairs; each call encodes their documents again, reduced to chunks spread over each."""

    def __init__(
        self,
        encoder: TrainableEncoder,
        documents: Mapping[str, Document],
        pairs: Sequence[Pair],
        comparison: Comparison,
        *,
        chunks: int,
    ) -> None:
        """Segment the documents of `pairs`, of which both kinds are needed."""
        self._encoder = encoder
        self._comparer = Comparer(encoder, comparison)
        self._pairs = pairs
        self._doc_ids = sorted(documents_of(pairs))
        self._segmented = [spread_chunks(encoder.segment(documents[doc_id]), chunks) for doc_id in self._doc_ids]

    def __call__(self) -> float:
        """The accuracy at the threshold that is best for these pairs, in [0.5, 1] if they are balanced."""
        encoded = self._encoder.encode_segmented(self._segmented)
        sides = {doc_id: self._comparer.side(one) for doc_id, one in zip(self._doc_ids, encoded, strict=True)}
        return best_accuracy(self._comparer.scores(sides, self._pairs), self._pairs)


@dataclass(frozen=True)
class Recipe:
    """How an encoder is trained on pairs, and how pairs are scored."""

    start: Start
    learned: Objectives  # the budget replaces its batch size
    comparison: Comparison
    learning_rate: float
    head_learning_rate: float | None = None
    pretraining: frozenset[Objective] = frozenset()  # of a SMITH, on the documents of train, with half of the budget


def trained_scorer(
    name: str,
    recipe: Recipe,
    *,
    training_tokens: int,
    device: str | None = None,
    selection: Selection = Selection(),  # noqa: B008
) -> PairScorer:
    """Train an encoder by a recipe, encode each whole document by itself, and compare vectors.

    Fitting before training (the topics of a TDE: as many epochs as there are steps, at most 200) and scoring valid
    pairs do not count as steps of the budget. Training and validation read stretches of documents, of
    `training_tokens` tokens with special ones; scores are of whole documents.
    """

    def learn(given: Fit) -> Learned:
        texts, budget = given.texts, given.budget
        starting = _begun(recipe.start, list(texts.values()), budget, given.seed, device)
        encoder, label = starting.encoder, f"{encoder_label(recipe.start.encoder)}@{_weights_of(recipe.start)}"
        pretraining = _pretrained(recipe, encoder, texts, given, selection)
        task = pair_task(encoder, recipe.learned, texts, given, training_tokens)
        looked_at = sample_valid(given.valid, selection.pairs, given.seed)
        chunks = n_chunks(encoder, training_tokens)
        validate = ValidAccuracy(encoder, given.documents, looked_at, recipe.comparison, chunks=chunks)
        course = _run(recipe, task, encoder, validate, budget.steps - pretraining.n_steps, given.seed, selection)
        course = replace(course, pretraining_steps=pretraining.n_steps, n_tokens=course.n_tokens + pretraining.n_tokens)
        comparer, sides = Comparer(encoder, recipe.comparison), dict[str, Side]()

        def score(pairs: Sequence[Pair]) -> NDArray[np.float64]:
            named = dict.fromkeys(doc_id for pair in pairs for doc_id in (pair.first, pair.second))
            unknown = {doc_id: given.documents[doc_id] for doc_id in named if doc_id not in sides}
            sides.update(encoded_sides(encoder, comparer, unknown))
            return comparer.scores(sides, pairs)

        begins_with = "random weights" if starting.inherited is None else f"{label}{starting.inherited}"
        settings: Settings = {"begins_with": begins_with}
        return Learned(score, label, settings, course, lambda folder: _save(encoder, begins_with, course, folder))

    own = {f"selection_{field}": value for field, value in asdict(selection).items()}
    return PairScorer(name, {**_settings(recipe), "training_tokens": training_tokens, **own}, learn, is_trained=True)


def _begun(start: Start, texts: Sequence[Document], budget: Budget, seed: int, device: str | None) -> StartingEncoder:
    """The encoder before training."""
    if start.new is not None:
        start = replace(start, new=replace(start.new, topic_epochs=min(_TOPIC_EPOCHS, budget.steps)))
    return starting_encoder(start, texts, seed=seed, device=device, is_resumed=False, log=lambda line: None)


def _weights_of(start: Start) -> str:
    return weights_sha256(resolve_backbone(start.encoder))[:12]


def _pretrained(
    recipe: Recipe, encoder: TrainableEncoder, texts: Mapping[str, Document], given: Fit, selection: Selection
) -> Course:
    """Pretrain a SMITH on masked words and blocks of the documents of train; no step for other recipes."""
    budget = given.budget
    if not recipe.pretraining:
        return Course(0, 0, None)
    if not isinstance(encoder, SmithEncoder):
        raise TrainingError(f"pretraining by hidden words and blocks is SMITH's, not that of {encoder.kind}")
    if budget.steps < 2:
        raise TrainingError(f"a budget of {budget.steps} steps has no half for pretraining; give at least 2")
    n_together = min(budget.pairs_per_step, len(texts))
    config = SmithSettings(tasks=recipe.pretraining, batch_size=n_together, seed=given.seed)
    task = SmithPretraining(encoder, [encoder.segment(text) for text in texts.values()], config)
    return _run(recipe, task, encoder, None, budget.steps // 2, given.seed, selection)


def _run(
    recipe: Recipe,
    task: Task[Any],
    encoder: TrainableEncoder,
    validate: ValidAccuracy | None,
    steps: int,
    seed: int,
    selection: Selection,
) -> Course:
    rates = recipe.learning_rate, recipe.head_learning_rate
    settings = TrainerSettings(steps=steps, learning_rate=rates[0], head_learning_rate=rates[1], seed=seed)
    return train_to_best(task, encoder, validate, settings, selection=selection)


def _save(encoder: TrainableEncoder, begins_with: str, course: Course, folder: Path) -> None:
    """Write the encoder for `load_encoder`; its card also states what training read."""
    encoder.save_pretrained(folder)
    card = folder / CARD_FILE
    n_steps = course.pretraining_steps + course.n_steps
    rows = {"begins with": begins_with, "steps": n_steps, "tokens read": course.n_tokens}
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    card.write_text(f"{card.read_text('utf-8').rstrip()}\n\n## Training\n\n|  |  |\n| --- | --- |\n{table}\n", "utf-8")


def _settings(recipe: Recipe) -> Settings:
    """The recipe as flat settings, for people and records."""
    start, learned = recipe.start, recipe.learned
    flat: Settings = {"learning_rate": recipe.learning_rate, LABELS_ALONE: labels_alone(learned)}
    if start.new is not None:
        flat |= {"new": start.new.kind.value, "variant": start.new.variant.value}
        flat |= {f"size_{name}": text for name, text in start.new.sizes.items()}
    if recipe.head_learning_rate is not None:
        flat["head_learning_rate"] = recipe.head_learning_rate
    if recipe.pretraining:
        flat["pretraining"] = ",".join(sorted(recipe.pretraining))
    match learned:
        case FineTuningSettings():
            flat["losses"] = ",".join(f"{name}={weight:g}" for name, weight in learned.losses.items())
            flat["temperature"] = learned.temperature
        case ContrastSettings():
            flat["losses"] = "sections" if learned.contrastive else "bce"
            flat["whole_probability"] = learned.whole_probability
        case TextPairsSettings():
            flat["losses"] = "topics,sentences,head"
            flat["temperature"] = learned.temperature
    return flat


GROUP_TOKENS = 4096  # most tokens with a graph at a time; about 8 GB of activations of a BERT-base
TOKENS_PER_SENTENCE = 24  # on average; thus 64 sentences of a TDE are as long as 48 blocks of a SMITH


def n_chunks(encoder: TrainableEncoder, training_tokens: int) -> int:
    """The number of chunks in `training_tokens` tokens, special tokens counted; at least one."""
    # The chunks of a TDE are sentences, most of them far shorter than the limit.
    longest = TOKENS_PER_SENTENCE if isinstance(encoder, TdeEncoder) else encoder.chunk_tokens + 2
    return max(1, training_tokens // longest)


def pair_task(
    encoder: TrainableEncoder, learned: Objectives, texts: Mapping[str, Document], given: Fit, training_tokens: int
) -> Task[Any]:
    """Make the task that trains an encoder on the pairs of `train`.

    `FineTuning` uses half of the pairs of a step as queries, each with a match and a labelled mismatch. All other
    documents of the batch are mismatches too, except for losses of single pairs; see `labels_alone`. `SectionContrast`
    reads only matches, one for each pair of a step, and uses the other documents of the batch as mismatches.
    `TextPairs` reads labelled pairs, and contrasts their sentences with those of other documents.
    """
    train, seed = given.train, given.seed
    n_pairs, chunks = given.budget.pairs_per_step, n_chunks(encoder, training_tokens)
    match learned:
        case FineTuningSettings():
            settings = replace(learned, queries=max(2, n_pairs // 2), negatives=1, group_tokens=GROUP_TOKENS)
            corpus = _corpus(texts, train, is_open=labels_alone(learned))
            source = Source(corpus, RandomRuns(chunks, chunks), LabelledMismatches(train))
            return FineTuning(encoder, [source], settings, seed=seed)
        case ContrastSettings():
            if not isinstance(encoder, ColdeEncoder):
                raise TrainingError(f"sections are contrasted by a CoLDE, not by an encoder of type {encoder.kind}")
            return _sections(encoder, texts, train, replace(learned, n_classes=n_pairs, seed=seed))
        case TextPairsSettings():
            if not isinstance(encoder, TdeEncoder):
                raise TrainingError(f"a pair head is trained of a TDE, not of an encoder of type {encoder.kind}")
            at = {doc_id: number for number, doc_id in enumerate(texts)}
            pairs = [LabelledPair(at[pair.first], at[pair.second], pair.is_match) for pair in train]
            sized = replace(learned, batch_pairs=n_pairs, max_sentences=chunks, group_tokens=GROUP_TOKENS)
            return TextPairs(encoder, [encoder.segment(text) for text in texts.values()], pairs, sized, seed=seed)


def labels_alone(learned: Objectives) -> bool:
    """Whether an objective uses only pairs with a label.

    Cross-entropy needs no others. A softmax over a batch, and losses over sets of related documents, treat pairs
    without a label as mismatches; if splits share documents, these include matches of valid and test.
    """
    return isinstance(learned, FineTuningSettings) and {loss for loss, w in learned.losses.items() if w} == {Loss.BCE}


def _corpus(texts: Mapping[str, Document], train: Sequence[Pair], *, is_open: bool) -> TrainingCorpus:
    """The matches of train; with `is_open`, documents without a label for a query are neither match nor mismatch."""
    matches: dict[str, dict[str, int]] = {}
    partners: dict[bool, dict[str, dict[str, int]]] = {True: {}, False: {}}
    for pair in train:
        if pair.is_match:
            matches.setdefault(pair.first, {})[pair.second] = 1
        for one, other in ((pair.first, pair.second), (pair.second, pair.first)):
            partners[pair.is_match].setdefault(one, {})[other] = 1
    related: dict[str, Mapping[str, int]] = {**partners[True]}
    if is_open:
        related = {query_id: _AllBut(texts, partners[False].get(query_id, ())) for query_id in matches}
    return TrainingCorpus("train", texts, matches, related)


class _AllBut(Mapping[str, int]):
    """A judgment of 1 for all documents except some; a dictionary for each query would be too large."""

    def __init__(self, doc_ids: Collection[str], left_out: Collection[str]) -> None:
        self._doc_ids = doc_ids
        self._left_out = frozenset(left_out)

    def __getitem__(self, doc_id: str) -> int:
        if doc_id in self._left_out or doc_id not in self._doc_ids:
            raise KeyError(doc_id)
        return 1

    def __iter__(self) -> Iterator[str]:
        return (doc_id for doc_id in self._doc_ids if doc_id not in self._left_out)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class LabelledMismatches:
    """A `Miner` that returns the labelled mismatches of train."""

    def __init__(self, train: Sequence[Pair]) -> None:
        """Take the mismatches of each first document."""
        self._found: dict[str, list[str]] = {}
        for pair in train:
            if not pair.is_match:
                self._found.setdefault(pair.first, []).append(pair.second)

    def __call__(self, query_id: str) -> Sequence[str]:
        """In the order of train."""
        return self._found.get(query_id, [])


def _sections(
    encoder: ColdeEncoder, texts: Mapping[str, Document], train: Sequence[Pair], settings: ContrastSettings
) -> SectionContrast:
    matches = [pair for pair in train if pair.is_match]
    at = {doc_id: number for number, doc_id in enumerate(sorted(documents_of(matches)))}
    segmented = [encoder.segment(texts[doc_id]) for doc_id in at]
    graph = PairGraph(len(at), [(at[pair.first], at[pair.second]) for pair in matches])
    return SectionContrast(encoder, segmented, graph, settings)


_BACKBONE_RATE = 3e-5
_BERT_RATE = 5e-5  # SMITH, section 5.2.3, and the code of CoLDE
_NEW_RATE = 3e-4
_HEAD_RATE = 1e-3
_BLOCK, _SHORT_BLOCK = 32, 128  # tokens of a block of SMITH, special tokens counted; SMITH-Short reads four of 128
_GRAPH_TOKENS = 512  # of a document: 32 pairs through a MiniLM need 7.3 GB, or 2.2 GB with recomputed layers
# Tokens of a chunk of a CoLDE. The published 510 are 512 with special tokens; a stretch of 1,536 tokens has
# only three such chunks, and a section one.
_COLDE_CHUNK = 126
_BERT_SIZES = {  # names of sizes of a SMITH, and the names in the configuration of a BERT
    "width": "hidden_size",
    "sentence_layers": "num_hidden_layers",
    "sentence_heads": "num_attention_heads",
    "sentence_ffn": "intermediate_size",
    "sentence_positions": "max_position_embeddings",
}
_BCE = FineTuningSettings(losses={Loss.BCE: 1.0})


def recipe(name: str, encoder: str, training_tokens: int, sizes: Mapping[str, str] | None = None) -> Recipe:
    """A recipe of `RECIPES`."""
    made = RECIPES[name](encoder, training_tokens)
    if not sizes:
        return made
    if made.start.new is None:
        raise TrainingError(f"{name} makes no new encoder, so that {', '.join(sizes)} cannot be set; leave --size out")
    new = replace(made.start.new, sizes={**made.start.new.sizes, **sizes})
    return replace(made, start=replace(made.start, new=new))


def _fine_tuned(encoder: str, _training_tokens: int) -> Recipe:
    losses = FineTuningSettings(losses={Loss.DOCUMENT: 1.0})
    return Recipe(Start(encoder), losses, Comparison.COSINE, _BACKBONE_RATE)


def _smith(kind: NewKind, block: int, pretraining: frozenset[Objective], encoder: str, _training_tokens: int) -> Recipe:
    """The backbone reads the sentence blocks; the document layers are new, and as wide.

    In the paper BERT-base reads the blocks of SMITH-Short, and the sentence encoders of the other SMITHs are pretrained
    from random parameters. Here every SMITH begins with the same parameters as its rivals.
    """
    folder = resolve_backbone(encoder)
    config = parse_json(folder / "config.json")
    if not isinstance(config, dict) or config.get("model_type") != "bert":
        raise EncoderError(f"{folder} holds no BERT, which SMITH reads sentences by; name one: --encoder BERT")
    sizes = {size: str(config.get(name)) for size, name in _BERT_SIZES.items()}
    sizes["block_tokens"] = str(min(block, int(config.get("max_position_embeddings") or block)))
    start = Start(encoder, NewEncoder(kind, sizes=sizes))
    return Recipe(start, _BCE, Comparison.COSINE, _BERT_RATE, _NEW_RATE, pretraining=pretraining)


def _colde(sizes: Mapping[str, str], learned: ContrastSettings, encoder: str, training_tokens: int) -> Recipe:
    max_chunks = max(1, training_tokens // (int(sizes.get("n_sections", "2")) * (_COLDE_CHUNK + 2)))
    own = {"chunk_tokens": str(_COLDE_CHUNK), "max_chunks": str(max_chunks), **sizes}
    # All chunks of a batch have a graph at once; for long documents it fits in memory only with recomputed layers.
    start = Start(encoder, NewEncoder(NewKind.COLDE, sizes=own), checkpoint_gradients=training_tokens > _GRAPH_TOKENS)
    return Recipe(start, learned, Comparison.COSINE, _BERT_RATE, _HEAD_RATE)


def _tde(sizes: Mapping[str, str], encoder: str, _training_tokens: int) -> Recipe:
    start = Start(encoder, NewEncoder(NewKind.TDE, sizes=sizes))
    return Recipe(start, TextPairsSettings(), Comparison.HEAD, BACKBONE_RATE, HEAD_RATE)


_PLACELESS = {"n_sections": "1", "without_positions": "true"}
RECIPES: Mapping[str, Callable[[str, int], Recipe]] = {
    "cosine-infonce": _fine_tuned,
    "smith-np": partial(_smith, NewKind.SMITH, _BLOCK, frozenset()),
    "smith-wp": partial(_smith, NewKind.SMITH, _BLOCK, frozenset({Objective.WORDS})),
    "smith-wp-sp": partial(_smith, NewKind.SMITH, _BLOCK, frozenset(Objective)),
    "smith-short": partial(_smith, NewKind.SMITH_SHORT, _SHORT_BLOCK, frozenset()),
    "colde": partial(_colde, {}, ContrastSettings()),
    "colde-without-aug": partial(_colde, _PLACELESS, ContrastSettings()),
    "colde-without-lstm": partial(_colde, {"without_lstm": "true"}, ContrastSettings()),
    "colde-without-cl": partial(_colde, _PLACELESS, ContrastSettings(contrastive=False)),
    "tde": partial(_tde, {}),
    "tde-without-topics": partial(_tde, {"n_topics": "0"}),
}
