"""Training runs: arguments, corpora, the task of each objective, and an encoder with its card and history."""

from __future__ import annotations

import hashlib
import importlib.util
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.encoders.colde import ColdeEncoder
from engine.encoders.encoder import Encoder, SegmentedDocument, segmented
from engine.encoders.hardware import default_device
from engine.encoders.loading import DEFAULT_ENCODER, load_trainable
from engine.encoders.smith import SmithEncoder
from engine.encoders.tde import TdeEncoder
from engine.encoders.trainable import MeanEncoder, TrainableEncoder
from engine.errors import EncoderError, MissingExtra, TrainingError
from engine.index import Index
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from engine.training import selection
from engine.training.contrastive_pretraining import ContrastivePretraining, ContrastiveTension, MomentumContrast
from engine.training.corpus import CORPUS_FILES, TrainingCorpus, collect, read_training_corpus, readable
from engine.training.fine_tuning import FineTuning, Source, few
from engine.training.history import HISTORY_FILE, MEAN, VALID
from engine.training.masked_words import SmithPretraining
from engine.training.pair_tasks import Classes, LabelledPair, PairGraph, SectionContrast, TextPairs
from engine.training.task import Task
from engine.training.trainer import Outcome, Step, Trainer, Validation
from engine.training.views import Sampling, ViewPairs
from indexer.building.builder import build
from indexer.building.corpus import read_corpus
from indexer.building.report import BuildReport
from indexer.training import recipe as recipes
from indexer.training.start import StartingEncoder, starting_encoder

_SECONDS_BETWEEN_LINES = 15.0


Log = Callable[[str], None]


@dataclass(frozen=True)
class Context:
    """The device of a run, its command, its callbacks and its processes."""

    device: str | None
    command: str  # the command line of the run, for its card
    log: Log
    watch: Callable[[Step], None]
    processes: Any  # the `PartialState` of accelerate


class Library:
    """Opens each index once; the exit stack closes them."""

    def __init__(self, folder: Path, context: Context, stack: ExitStack) -> None:
        """Keep indexes in a folder, as NAME.lm, or NAME-ENCODER.lm for an encoder other than the default."""
        self._folder = folder
        self._context = context
        self._stack = stack
        self._opened: dict[tuple[str, str], Index] = {}

    def index(self, corpus: TrainingCorpus, encoder: str) -> Index:
        """The index of a corpus by an encoder."""
        if (corpus.name, encoder) not in self._opened:
            name = corpus.name if encoder == DEFAULT_ENCODER else f"{corpus.name}-{Path(encoder).name}"
            self._opened[corpus.name, encoder] = self._open(self._folder / f"{name}.lm", corpus, encoder)
        return self._opened[corpus.name, encoder]

    def _open(self, path: Path, corpus: TrainingCorpus, encoder: str) -> Index:
        context = self._context
        context.log(f"{corpus.name}: index {path.name} by {recipes.shown(encoder)}")
        if context.processes.is_main_process:
            path.parent.mkdir(parents=True, exist_ok=True)
            progress = _IndexProgress(corpus, context.log)
            build(path, corpus.documents.values(), encoder=encoder, device=context.device, progress=progress)
        context.processes.wait_for_everyone()
        # Not by `Index.open`, which would copy the vectors onto the GPU: its memory is for training.
        return self._stack.enter_context(Index(IndexSnapshot(path), device=context.device))

    def miner(self, kind: recipes.Negatives, corpus: TrainingCorpus, encoder: str) -> selection.Miner | None:
        """The miner of the hard negatives of a corpus."""
        match kind:
            case recipes.Negatives.MODEL:
                return selection.index_miner(self.index(corpus, encoder), corpus)
            case recipes.Negatives.BM25:
                return selection.lexical_miner(corpus)
            case recipes.Negatives.NONE:
                return None


class _IndexProgress:
    """Logs a line now and then while a corpus is indexed."""

    def __init__(self, corpus: TrainingCorpus, log: Log) -> None:
        self._corpus = corpus
        self._log = log
        self._last = time.monotonic()

    def __call__(self, report: BuildReport) -> None:
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self._log(f"{self._corpus.name}: {report.n_seen:,} of {len(self._corpus.documents):,} documents indexed")


def make_task(
    recipe: recipes.Recipe, encoder: TrainableEncoder, corpora: Sequence[TrainingCorpus], library: Library
) -> Task[Any]:
    """The task of a recipe."""
    seed = recipe.trainer.seed
    match recipe.objective:
        case recipes.PairsObjective() as objective:
            sources = [_source(corpus, recipe, objective, library) for corpus in corpora]
            return FineTuning(encoder, sources, objective, seed=seed)
        case recipes.SectionsObjective() as objective:
            return section_contrast(encoder, corpora, objective, seed=seed)
        case recipes.TextPairsObjective() as objective:
            if not isinstance(encoder, TdeEncoder):  # before negatives are mined
                raise TrainingError(_unfit("text-pairs", encoder, "a TDE; make one: --new tde"))
            miners = [library.miner(objective.miner, corpus, recipe.start.encoder) for corpus in corpora]
            return text_pairs(encoder, corpora, miners, objective, seed=seed)
        case objective:
            documents = [corpus.documents[doc_id] for corpus in corpora for doc_id in corpus.trainable]
            return _alone(encoder, documents, objective, seed)


def _alone(
    encoder: TrainableEncoder,
    documents: Sequence[Document],
    objective: recipes.ViewsObjective | recipes.TensionObjective | recipes.SmithObjective,
    seed: int,
) -> Task[Any]:
    """A task over documents without pairs."""
    match objective:
        case recipes.ViewsObjective():
            pairs = _pairs(encoder, documents, objective.sampling, objective, seed)
            contrast = MomentumContrast if objective.queue else ContrastivePretraining
            return contrast(encoder, pairs, replace(objective, seed=seed))
        case recipes.TensionObjective():
            if not isinstance(encoder, MeanEncoder):
                raise TrainingError(_unfit("ct", encoder, "a mean encoder; name a backbone: --encoder"))
            return ContrastiveTension(
                encoder, _pairs(encoder, documents, Sampling.CT, objective, seed), negatives=objective.negatives
            )
        case recipes.SmithObjective():
            if not isinstance(encoder, SmithEncoder):
                raise TrainingError(_unfit("smith", encoder, "a SMITH; make one: --new smith"))
            return SmithPretraining(encoder, readable(encoder, documents), replace(objective, seed=seed))


def _source(
    corpus: TrainingCorpus, recipe: recipes.Recipe, objective: recipes.PairsObjective, library: Library
) -> Source:
    encoder = recipe.start.encoder
    selector: selection.Selector = selection.RandomRuns(objective.query_chunks, objective.target_chunks)
    # A new encoder cuts other chunks than the index holds: the index is by its backbone alone.
    if objective.miner is recipes.Negatives.MODEL and recipe.start.new is None:
        index = library.index(corpus, encoder)
        selector = selection.EvidenceChunks(
            index, objective.query_chunks, objective.target_chunks, objective.threshold_rank
        )
    return Source(corpus, selector, library.miner(objective.miner, corpus, encoder))


def section_contrast(
    encoder: TrainableEncoder, corpora: Sequence[TrainingCorpus], objective: recipes.SectionsObjective, *, seed: int
) -> SectionContrast:
    """The task of CoLDE: pairs make a graph; without them, documents that share a label are a class.

    If a label is a list, its first value counts.
    """
    if not isinstance(encoder, ColdeEncoder):
        raise TrainingError(_unfit("sections", encoder, "a CoLDE; make one: --new colde"))
    settings = replace(objective, seed=seed)
    without = [corpus.name for corpus in corpora if not corpus.pairs]
    if 0 < len(without) < len(corpora):
        raise TrainingError(f"{', '.join(without)} has no pairs, the other corpora have; train on one kind at a time")
    texts = _Numbered(encoder)
    if without:
        labels = _labels(corpora, objective.label or "", texts)
        return SectionContrast(encoder, texts.segmented, Classes(labels), settings)
    pairs = [
        (texts.number(corpus, query_id), texts.number(corpus, target_id))
        for corpus in corpora
        for query_id, targets in corpus.pairs.items()
        for target_id in targets
    ]
    readable = [(query, target) for query, target in pairs if query is not None and target is not None]
    return SectionContrast(encoder, texts.segmented, PairGraph(len(texts.segmented), readable), settings)


def _labels(corpora: Sequence[TrainingCorpus], label: str, texts: _Numbered) -> list[int]:
    """The class of each readable document that has the label; corpora share no class."""
    classes: dict[tuple[str, object], int] = {}
    labels = []
    for corpus in corpora:
        for doc_id in corpus.trainable:
            value = corpus.documents[doc_id].metadata.get(label)
            first = (value[0] if value else None) if isinstance(value, list) else value
            if first is not None and texts.number(corpus, doc_id) is not None:
                labels.append(classes.setdefault((corpus.name, first), len(classes)))
    if not labels:
        fields = sorted(
            {name for corpus in corpora for document in corpus.documents.values() for name in document.metadata}
        )
        raise TrainingError(f"no document has the metadata field {label!r}; they have {', '.join(fields) or 'none'}")
    return labels


def text_pairs(
    encoder: TdeEncoder,
    corpora: Sequence[TrainingCorpus],
    miners: Sequence[selection.Miner | None],
    objective: recipes.TextPairsObjective,
    *,
    seed: int,
) -> TextPairs:
    """The task of TDE: the pairs of the corpora match, other pairs of the same corpus do not."""
    rng = np.random.default_rng(seed)
    texts, pairs = _Numbered(encoder), []
    for corpus, miner in zip(corpora, miners, strict=True):
        for query_id, targets in corpus.pairs.items():
            drawn = few(list(targets), objective.positives_per_query, rng)
            hard = miner(query_id) if miner else ()
            others = negatives(corpus, query_id, hard, objective.negatives_per_positive * len(drawn), rng)
            for target_id, matches in [*((match, True) for match in drawn), *((other, False) for other in others)]:
                query, target = texts.number(corpus, query_id), texts.number(corpus, target_id)
                if query is not None and target is not None:
                    pairs.append(LabelledPair(query, target, matches))
    return TextPairs(encoder, texts.segmented, pairs, objective, seed=seed)


def negatives(
    corpus: TrainingCorpus, query_id: str, hard: Sequence[str], n: int, rng: np.random.Generator
) -> list[str]:
    """At most n documents that do not belong to a query: first hard negatives, then random documents."""
    chosen = few(hard, n, rng)
    left_out = {query_id, *hard, *corpus.related.get(query_id, ())}
    others = [doc_id for doc_id in corpus.trainable if doc_id not in left_out]
    return chosen + few(others, n - len(chosen), rng)


def _pairs(
    encoder: Encoder,
    documents: Sequence[Document],
    sampling: Sampling,
    objective: recipes.ViewsObjective | recipes.TensionObjective,
    seed: int,
) -> ViewPairs:
    return ViewPairs(
        encoder,
        documents,
        sampling,
        batch_size=objective.batch_size,
        max_tokens=objective.view_tokens,
        joined=isinstance(objective, recipes.ViewsObjective) and objective.joined_views,
        seed=seed,
    )


def _unfit(objective: str, encoder: TrainableEncoder, wanted: str) -> str:
    return f"the objective {objective} does not train an encoder of type {encoder.kind}, but {wanted}"


class _Numbered:
    """Documents that have a token, each segmented once and numbered in the order of first use."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._numbers: dict[tuple[str, str], int | None] = {}
        self.segmented: list[SegmentedDocument] = []

    def number(self, corpus: TrainingCorpus, doc_id: str) -> int | None:
        """The position of a document in `segmented`; None where it has no token."""
        key = corpus.name, doc_id
        if key not in self._numbers:
            cut = segmented(self._encoder, corpus.documents[doc_id])
            self._numbers[key] = len(self.segmented) if cut else None
            self.segmented += [cut] if cut else []
        return self._numbers[key]


_OF_MANY_DOCUMENTS = tuple(f".{name}{packed}" for name in ("jsonl", "jsonlines", "ndjson") for packed in ("", ".gz"))


Given = str | Path
Place = tuple[Path, str]  # the path of a corpus, and the suffix of the judgment files of one of its tasks


def place_of(corpus: Given) -> Place:
    """The place that `PATH` or `FOLDER:SUFFIX` names."""
    if Path(corpus).exists():
        return Path(corpus), ""
    path, _, suffix = str(corpus).partition(":")
    return Path(path), suffix


def read_with_pairs(sources: Sequence[Given], *, needs_pairs: bool = True) -> list[TrainingCorpus]:
    """Read folders in the layout of the benchmarks.

    Args:
        needs_pairs: refuse a corpus without pairs.
    """
    places = _places(sources)
    for path, _ in places:
        if not path.is_dir():
            state = "is a file" if path.exists() else "does not exist"
            raise TrainingError(
                f"{path} {state}; pairs are read from a folder with {CORPUS_FILES[0]} and train_pairs.tsv, "
                "and --objective docsplit learns from documents alone"
            )
    corpora = [read_training_corpus(path, suffix=suffix) for path, suffix in places]
    for (path, suffix), corpus in zip(places, corpora, strict=True):
        if needs_pairs and not corpus.pairs:
            raise TrainingError(_lacks_pairs(path, suffix))
    return _named(places, corpora)


def _lacks_pairs(path: Path, suffix: str) -> str:
    others = sorted(file.stem.removeprefix("train_pairs") for file in path.glob("train_pairs*.tsv"))
    mend = (
        f"name one of its tasks: {path}:{others[0]}"
        if others and others != [""]
        else "add that file, or learn from the documents alone: --objective docsplit"
    )
    return f"{path} has no train_pairs{suffix}.tsv, so no pairs to learn from; {mend}"


def read_documents(sources: Sequence[Given]) -> list[TrainingCorpus]:
    """Read documents in any form: folders of the benchmarks, with their valid judgments, or files of any format."""
    places = _places(sources)
    # Files of one document each, such as a shell expands from a pattern, together are one corpus.
    single = [path for path, _ in places if path.is_file() and not path.name.endswith(_OF_MANY_DOCUMENTS)]
    places = [place for place in places if place[0] not in single]
    corpora = [
        read_training_corpus(path, suffix=suffix)
        if any((path / name).is_file() for name in CORPUS_FILES)
        else _read_loose([path])
        for path, suffix in places
    ]
    if single:
        places.append((single[0], ""))
        corpora.append(_read_loose(single))
    return _named(places, corpora)


def _read_loose(paths: Sequence[Path]) -> TrainingCorpus:
    documents, n_unreadable = collect(read_corpus([str(path) for path in paths]), paths[0])
    digest = hashlib.sha256()
    for document in documents.values():
        digest.update(f"{document.doc_id}\0{document.text}\0".encode("utf-8", "surrogatepass"))
    checksum = digest.hexdigest()[:12]
    return TrainingCorpus(_loose_name(paths), documents, n_unreadable=n_unreadable, checksum=checksum)


def _loose_name(paths: Sequence[Path]) -> str:
    """The name of the folder, of the file without its suffixes, or of the folder of the first of several files."""
    path = paths[0].resolve()
    if len(paths) > 1:
        return path.parent.name or "documents"
    return path.name if path.is_dir() else path.name.removesuffix(".gz").rpartition(".")[0]


def _places(sources: Sequence[Given]) -> list[Place]:
    if not sources:
        raise TrainingError("no corpus was named; name one folder at least")
    return [place_of(source) for source in sources]


def _named(places: Sequence[Place], corpora: Sequence[TrainingCorpus]) -> list[TrainingCorpus]:
    """Give corpora different names, by which their indexes and validations are identified."""
    times = Counter(corpus.name for corpus in corpora)
    named = [
        replace(corpus, name=corpus.name + suffix) if times[corpus.name] > 1 else corpus
        for (_, suffix), corpus in zip(places, corpora, strict=True)
    ]
    folders: dict[str, list[str]] = {}
    for (path, _), corpus in zip(places, named, strict=True):
        folders.setdefault(corpus.name, []).append(str(path))
    for name, paths in folders.items():
        if len(paths) > 1:
            where = " and ".join(paths)
            raise TrainingError(
                f"{len(paths)} corpora have the name {name!r}: {where}; name each once, or rename a folder"
            )
        if name == MEAN:
            raise TrainingError(f"a corpus cannot have the name {MEAN!r}, which stands for the mean of all; rename it")
    return named


RUN_FOLDER = "run"
INDEX_FOLDER = "indexes"


@dataclass(frozen=True)
class TrainingRun:
    """A new or resumed run: its folder, settings and corpora, and the encoder that it trains."""

    out: Path
    recipe: recipes.Recipe
    corpora: Sequence[TrainingCorpus]
    starting: StartingEncoder
    record: recipes.Record
    context: Context

    @property
    def folder(self) -> Path:
        """The folder of history, checkpoints and the best parameters."""
        return self.out / RUN_FOLDER


@dataclass(frozen=True)
class Trained:
    """A trained encoder, and the results of its run."""

    folder: Path  # `load_trainable` reads it
    outcome: Outcome
    validations: tuple[recipes.ValidationChange, ...]  # before training, and as it was saved
    is_first: bool = True  # whether this process wrote the folder


def train(
    out: str | Path,
    corpora: Sequence[Given],
    recipe: recipes.Recipe | None = None,
    *,
    indexes: str | Path | None = None,
    device: str | None = None,
    command: str = "",
    log: Log = lambda line: None,
    watch: Callable[[Step], None] = lambda step: None,
) -> Trained:
    """Train an encoder, and write it to a folder.

    A run that was stopped resumes from its last checkpoint when this is called again.
    If a corpus has valid judgments, they choose the best parameters; otherwise the last are kept.

    Args:
        corpora: folders in the layout of `engine.training.corpus`, as FOLDER or FOLDER:SUFFIX. If the
            objective needs no pairs, also files and folders of any format that `longmatch index` reads.
        recipe: the settings; by default those of `Recipe`.
        indexes: folder of the indexes of the corpora, by which negatives and chunks are
            chosen, as NAME.lm; built if missing. OUT/indexes by default.
    """
    out, recipe = Path(out), recipe or recipes.Recipe()
    check_start(out, recipe.start.encoder, device)
    from accelerate import PartialState

    is_cpu = torch.device(device or default_device()).type == "cpu"
    context = Context(device, command, log, watch, PartialState(cpu=is_cpu))
    run = _open(out, recipe, _read(corpora, recipe), context)
    with ExitStack() as stack:
        library = Library(Path(indexes) if indexes else out / INDEX_FOLDER, run.context, stack)
        encoder, context = run.starting.encoder, run.context
        task = make_task(recipe, encoder, run.corpora, library)
        if context.processes.is_main_process:
            recipes.write_record(run.folder, run.record)
        validate, settings = _validation(run, encoder), run.recipe.trainer
        trainer = Trainer(task, encoder, run.folder, settings, validate=validate, log=context.log, watch=context.watch)
        outcome = trainer.run()
    return _finish(run, task, outcome)


def _read(corpora: Sequence[Given], recipe: recipes.Recipe) -> list[TrainingCorpus]:
    objective = recipe.objective
    if not recipe.needs_pairs:
        return read_documents(corpora)
    has_classes = isinstance(objective, recipes.SectionsObjective) and objective.label is not None
    return read_with_pairs(corpora, needs_pairs=not has_classes)


def check_start(out: Path, encoder: str, device: str | None) -> None:
    """Check that training can begin, before any slow step."""
    if importlib.util.find_spec("accelerate") is None:
        raise MissingExtra("training", "accelerate", "training")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise EncoderError(
            f"device {device!r} cannot be used ({reason}); see what there is: longmatch doctor"
        ) from error
    if out.resolve() == Path(encoder).resolve():
        raise TrainingError(f"{out} is the encoder that training starts from; name another folder for the new one")
    if out.exists() and not out.is_dir():
        raise TrainingError(f"{out} is a file; name a folder for the encoder")
    if out.is_dir() and not (out / RUN_FOLDER).is_dir():
        others = sorted(path.name for path in out.iterdir() if path.name != INDEX_FOLDER and path.name[0] != ".")
        if others:
            raise TrainingError(
                f"{out} holds {others[0]}, and no run to go on with; OUT, which comes first, must be a new folder"
            )


def _open(out: Path, recipe: recipes.Recipe, corpora: Sequence[TrainingCorpus], context: Context) -> TrainingRun:
    if not context.processes.is_main_process:
        context = replace(context, log=lambda line: None, watch=lambda step: None)
    for corpus in corpora:
        unreadable = f", {corpus.n_unreadable:,} not readable" if corpus.n_unreadable else ""
        pairs = f", {corpus.n_pairs:,} pairs" if recipe.needs_pairs else ""
        context.log(f"{corpus.name}: {len(corpus.documents):,} documents{unreadable}{pairs}")
    if recipe.trainer.patience is not None and not any(corpus.valid for corpus in corpora):
        raise TrainingError(
            f"a patience of {recipe.trainer.patience} counts validations, and no corpus has valid queries "
            "(splits.json and qrels.tsv); leave it out"
        )
    folder = out / RUN_FOLDER
    requested = recipes.Record({corpus.name: corpus.checksum for corpus in corpora}, recipes.settings_of(recipe))
    recipes.check_record(folder, requested)
    starting = starting_encoder(
        recipe.start,
        [corpus.documents[doc_id] for corpus in corpora for doc_id in corpus.trainable],
        seed=recipe.trainer.seed,
        device=context.device,
        is_resumed=recipes.reached_step(folder) is not None,
        log=context.log,
    )
    if _has_bigbird(starting.encoder):
        recipe = replace(recipe, trainer=replace(recipe.trainer, mixed_precision=False))
    return TrainingRun(out, recipe, corpora, starting, requested, context)


def _has_bigbird(encoder: TrainableEncoder) -> bool:
    """True for a BigBird, which cannot be trained under autocast.

    Under autocast the attention of transformers 5.23 scatters numbers of one precision into a tensor of another,
    which torch refuses on a CPU.
    """
    configs = (getattr(module, "config", None) for module in encoder.module.modules())
    return any(getattr(config, "model_type", None) == "big_bird" for config in configs)


def _validation(run: TrainingRun, encoder: TrainableEncoder) -> Callable[[], dict[str, float]] | None:
    """Measures nDCG@10 on each corpus that has valid judgments; None if none has."""
    chunks, queries, documents = run.recipe.valid_chunks, run.recipe.valid_queries, run.recipe.valid_documents
    validations = [
        Validation(corpus, encoder, chunks=chunks, queries=queries, documents=documents)
        for corpus in run.corpora
        if corpus.valid
    ]
    return (lambda: {corpus.name: corpus.ndcg() for corpus in validations}) if validations else None


def _finish(run: TrainingRun, task: Task[Any], outcome: Outcome) -> Trained:
    """Write the best parameters, history and card into the run's `out`."""
    changes, best = recipes.compare_validations(outcome.history, outcome.best_step), None
    if isinstance(task, ContrastiveTension) and (by_corpus := _second_is_better(run, task, outcome)):
        changes = tuple(replace(change, after=by_corpus[change.corpus]) for change in changes)
        outcome, best = replace(outcome, best_step=outcome.steps), task.encoders[1]
    processes = run.context.processes
    if processes.is_main_process:
        _write(run, outcome, best or load_trainable(str(outcome.folder), device="cpu", dtype=torch.float32), changes)
    processes.wait_for_everyone()
    return Trained(run.out, outcome, changes, processes.is_main_process)


def _second_is_better(run: TrainingRun, task: ContrastiveTension, outcome: Outcome) -> dict[str, float] | None:
    """The validation of the second encoder at the end, if its mean is above the best of the first."""
    validate = _validation(run, task.encoders[1])
    if validate is None:
        return None
    by_corpus = validate()
    by_corpus[MEAN] = sum(by_corpus.values()) / len(by_corpus)
    best_of_first = max(outcome.history.validation[MEAN].values())
    is_second = by_corpus[MEAN] > best_of_first
    run.context.log(
        f"{VALID}: the first encoder {best_of_first:.4f} at best, the second {by_corpus[MEAN]:.4f} at the end; "
        f"the {'second' if is_second else 'first'} is kept"
    )
    return by_corpus if is_second else None


def _write(
    run: TrainingRun, outcome: Outcome, best: TrainableEncoder, changes: tuple[recipes.ValidationChange, ...]
) -> None:
    best.save_pretrained(run.out, dtype=torch.float16 if run.recipe.half else torch.float32)
    (run.out / HISTORY_FILE).write_bytes((run.folder / HISTORY_FILE).read_bytes())
    trained = replace(run.starting, encoder=best)
    recipes.write_card(run.out, run.recipe, run.corpora, trained, outcome, changes, command=run.context.command)
