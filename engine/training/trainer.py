"""The training loop of every task, on the trainer of transformers: batches, validation, early stop. Defines no loss.

checkpoints/checkpoint-350/   the state after 350 updates, as transformers writes it; the last two are kept
best/                         the best parameters so far; `load_encoder` reads it
history.csv                   see `engine.training.history`
"""

import atexit
import json
import math
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from engine.encoders.encoder import EncodedDocument, Vectors
from engine.encoders.hardware import default_dtype
from engine.encoders.trainable import TrainableEncoder
from engine.errors import EncoderError, TrainingError, faults_named
from engine.scoring import evidence
from engine.settings import ABOVE_ZERO, COUNT, FROM_ZERO, SEED, SHARE, Checked, setting
from engine.text.document import Document
from engine.training.corpus import Judgments, TrainingCorpus, readable
from engine.training.history import (
    HISTORY_FILE,
    LEARNING_RATE,
    LOSS,
    MEAN,
    SECONDS,
    VALID,
    History,
    Number,
    validation_values,
)
from engine.training.selection import spread_chunks
from engine.training.task import Task, full_precision

DEPTH = 10
_DOCUMENTS_AT_A_TIME = 64


class Validation:
    """Ranks a corpus for its valid queries: nDCG@10 of the chunk component of the score, over all documents.

    Encoding a whole corpus takes minutes on a CPU, so each document can be reduced
    to some chunks, evenly spread over it. The values are then lower than those of
    whole documents, and only fit to compare encoders with each other.
    """

    def __init__(
        self,
        corpus: TrainingCorpus,
        encoder: TrainableEncoder,
        *,
        chunks: int | None = None,
        queries: int | None = None,
        documents: int | None = None,
        scoring: evidence.Scoring | None = None,
    ) -> None:
        """Prepare the corpus.

        Args:
            chunks: maximum number of chunks of a document to encode.
            queries: maximum number of queries, the first ones.
            documents: number of documents to rank: the queries, their judged targets, and others drawn once.
        """
        if not corpus.valid:
            raise TrainingError(
                f"corpus {corpus.name} has no valid queries; give it splits.json and qrels.tsv, or train without"
            )
        self.name = corpus.name
        self._encoder = encoder
        self._scoring = scoring or evidence.Scoring()
        self._qrels = dict(list(corpus.valid.items())[:queries])
        pool = _pool(corpus, self._qrels, documents)
        cut = readable(encoder, pool.values())
        self._documents = cut if chunks is None else [spread_chunks(document, chunks) for document in cut]
        self._row = {segmented.document.doc_id: row for row, segmented in enumerate(self._documents)}
        self.n_tokens = sum(chunk.n_tokens for document in self._documents for chunk in document.chunks)

    def ndcg(self) -> float:
        """Mean nDCG@10 over the valid queries, in [0, 1], with gain 2^relevance - 1."""
        values = self.by_query()
        return float(np.mean(list(values.values())))

    def by_query(self) -> Mapping[str, float]:
        """nDCG@10 of each query."""
        encoded = self._encode()
        chunks = np.concatenate([document.chunks for document in encoded])
        starts = np.cumsum([0, *(len(each.chunks) for each in encoded)])
        values = {}
        for query_id, judged in self._qrels.items():
            if query_id not in self._row:
                values[query_id] = 0.0
                continue
            scores = self._scores(self._row[query_id], encoded, chunks, starts)
            best = np.argsort(-scores, kind="stable")[:DEPTH]
            ranking = [self._documents[row].document.doc_id for row in best if scores[row] > 0]
            values[query_id] = ndcg(ranking, judged, DEPTH)
        return values

    def _encode(self) -> list[EncodedDocument]:
        encoded: list[EncodedDocument] = []
        for first in range(0, len(self._documents), _DOCUMENTS_AT_A_TIME):
            encoded.extend(self._encoder.encode_segmented(self._documents[first : first + _DOCUMENTS_AT_A_TIME]))
        return encoded

    def _scores(
        self, number: int, encoded: Sequence[EncodedDocument], chunks: Vectors, starts: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """(N,) the chunk component of all documents for query `own`, the others as the reference; its own is -1."""
        query = encoded[number]
        best, openings = evidence.best_chunks(query.chunks, chunks, starts[:-1])
        matches, heads = (np.delete(each, number, axis=1) for each in (best, openings))
        opening = evidence.opening_shares(matches, heads, self._scoring.opening)
        joined = evidence.join(best, openings, opening)
        theta, phi = (
            evidence.reference_threshold(np.delete(each, number, axis=1), self._scoring.exceeding)
            for each in (best, joined)
        )
        weights = evidence.chunk_weights(np.array([chunk.n_tokens for chunk in query.chunk_spans]))
        limits = evidence.thresholds(theta, phi, joined[:, number].astype(np.float32), opening, weights, self._scoring)
        scores = evidence.chunk_component(best, openings, limits, self._scoring)
        scores[number] = -1
        return scores


def _pool(corpus: TrainingCorpus, qrels: Judgments, most: int | None) -> Mapping[str, Document]:
    """All judged documents, and others up to `most`, in the order of the corpus."""
    if most is None or most >= len(corpus.documents):
        return corpus.documents
    judged = {*qrels, *(target for targets in qrels.values() for target in targets)}
    others = [doc_id for doc_id in corpus.documents if doc_id not in judged]
    drawn = np.random.default_rng(0).permutation(len(others))[: max(0, most - len(judged))]
    names = judged | {others[int(position)] for position in drawn}
    return {doc_id: document for doc_id, document in corpus.documents.items() if doc_id in names}


def ndcg(ranking: Sequence[str], judged: Mapping[str, int], depth: int) -> float:
    """nDCG@depth of one ranking, with the gain 2^relevance - 1 of Burges et al. (2005).

    Args:
        depth: at least 1.

    Returns:
        In [0, 1]; 0 where nothing is relevant.
    """
    discounts = 1 / np.log2(np.arange(2, depth + 2))
    gains = [2.0 ** max(judged.get(target, 0), 0) - 1 for target in ranking[:depth]]
    ideal = sorted((2.0 ** max(grade, 0) - 1 for grade in judged.values()), reverse=True)[:depth]
    best = float(np.dot(ideal, discounts[: len(ideal)]))
    return float(np.dot(gains, discounts[: len(gains)])) / best if best > 0 else 0.0


ValueT = TypeVar("ValueT")
BEST_FOLDER = "best"
CHECKPOINT_FOLDER = "checkpoints"
_KEPT = 2  # checkpoints
_MODULE_FILE, _STATE_FILE = "model.safetensors", "trainer_state.json"


@dataclass(frozen=True)
class TrainerSettings(Checked):
    """Length and speed of a run; the task defines the loss."""

    steps: int = setting(300, "updates of the parameters", COUNT)
    learning_rate: float = setting(3e-5, "highest learning rate", ABOVE_ZERO)
    head_learning_rate: float | None = setting(
        None, "rate outside the backbone (SMITH: the sentence encoder); the same by default", ABOVE_ZERO
    )
    warmup_share: float = setting(0.1, "share of the steps in which the rate rises from 0", SHARE)
    weight_decay: float = setting(0.01, "decay of matrices; biases and norms have none", FROM_ZERO)
    gradient_norm: float = setting(1.0, "length to which longer gradients are clipped", ABOVE_ZERO)
    validate_every: int = setting(50, "steps between validations", COUNT)
    patience: int | None = setting(None, "validations without a better mean before the run stops early", COUNT)
    checkpoint_every: int = setting(25, "steps between checkpoints", COUNT)
    mixed_precision: bool = setting(True, "products in bfloat16 where the device multiplies it natively")
    seed: int = setting(0, "seed of batches, dropout and new parameters", SEED)


@dataclass(frozen=True, slots=True)
class Step:
    """A finished training step."""

    number: int  # from 1
    of: int  # steps of the run
    loss: float
    tokens_per_second: float
    valid: float | None  # the last mean on valid, where there is one


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    folder: Path  # of the best parameters; `load_encoder` reads it
    best_step: int  # 0 where training did not help
    steps: int  # updates made
    n_tokens: int  # read in training, repeated ones counted again
    seconds: float  # of updates, without validation
    history: History


class Saved(Protocol):
    """A model in training: an encoder, or another module that can save its parameters."""

    @property
    def module(self) -> nn.Module:
        """The module that holds the parameters."""

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Save the current parameters."""


class Trainer(transformers.Trainer):
    """Runs a task, and keeps the parameters that are best on valid.

    AdamW with linear warm-up and linear decay. Every random number is a function
    of seed and step, so a run resumed from its last checkpoint ends with the same
    parameters, bit for bit, as one that never stopped (on the same machine, with the
    same number of threads). With P processes, started by `accelerate launch`, process p
    draws the batch P n + p at step n, and the gradients of all processes are averaged.
    The first process writes all files.

    A task makes its own passes, some of them several in a step, so nothing here wraps, moves or calls the module.
    """

    def __init__(
        self,
        task: Task[Any],
        encoder: Saved,
        folder: Path,
        settings: TrainerSettings,
        *,
        validate: Callable[[], Mapping[str, float]] | None = None,
        rate: Callable[[int, TrainerSettings], float] | None = None,
        log: Callable[[str], None] = lambda line: None,
        watch: Callable[[Step], None] = lambda step: None,
    ) -> None:
        """Prepare a run.

        Args:
            validate: measures the current parameters, by corpus, higher is better; the mean decides which
                parameters are the best. Without, the last parameters are kept.
            rate: share of the learning rate at a step, by default `rate_share`.
        """
        self._task = task
        self._encoder = encoder
        self._folder = folder
        self._settings = settings
        self._validate = validate
        self._watch = watch
        device = next(task.module.parameters()).device
        groups = _groups(task.module, encoder, settings)
        optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate)
        self._rates = [float(group["lr"]) for group in groups]
        arguments = transformers.TrainingArguments(
            str(folder / CHECKPOINT_FOLDER),
            max_steps=settings.steps,
            max_grad_norm=settings.gradient_norm,
            seed=settings.seed,
            bf16=settings.mixed_precision and default_dtype(str(device)) is torch.bfloat16,
            use_cpu=device.type == "cpu",
            eval_strategy="no",  # `_Schedule` decides
            save_strategy="no",
            logging_strategy="no",
            ignore_data_skip=True,  # a batch is a function of its step
            disable_tqdm=True,
            report_to="none",
        )
        super().__init__(
            nn.ModuleDict({"task": task.module}),  # by its class or configuration, a model would be treated otherwise
            arguments,
            optimizers=(optimizer, LambdaLR(optimizer, lambda step: (rate or rate_share)(step, settings))),
        )
        self.remove_callback(transformers.PrinterCallback)
        self.add_callback(_Schedule(self))
        self._log = log if self.is_world_process_zero() else lambda line: None
        if arguments.world_size > 1:
            # Threads that still wait for other processes when the interpreter ends would abort it.
            atexit.register(arguments.distributed_state.destroy_process_group)

    def run(self) -> Outcome:
        """Train to the end, from the last checkpoint if there is one."""
        checkpoint = latest_checkpoint(self._folder / CHECKPOINT_FOLDER)
        if checkpoint is None:
            self.args.eval_on_start = bool(self._validate)
        else:
            state = transformers.TrainerState.load_from_json(str(checkpoint / _STATE_FILE))
            self._log(f"continues after step {state.global_step:,} of {self._settings.steps:,}")
            if state.global_step >= self._settings.steps or self._is_exhausted(state):
                self.args.max_steps = state.global_step  # nothing is left to do
        with faults_named(str(self._folder)):
            self.train(None if checkpoint is None else str(checkpoint))
        return self._finish()

    def get_train_dataloader(self) -> list[dict[str, Any]]:
        """An empty batch for each step; the task draws the real one."""
        return [{}] * self.args.max_steps

    def training_step(self, model: nn.Module, inputs: object, num_items_in_batch: object = None) -> Tensor:
        """Draw the batch of the step, add its gradients, and record the step."""
        started = time.perf_counter()
        step, n, position = self.state.global_step, self.args.world_size, self.args.process_index
        # Each process draws its own batches, as if one machine took several steps at once.
        batch = self._task.batch(step * n + position)
        torch.manual_seed(torch_seed(self._settings.seed, step, position))
        model.train()
        with self.accelerator.autocast():
            parts = self._task.backward(batch, _backward)
        average_gradients(model.parameters(), n)  # before any check, so that no process waits for a stopped one
        self._check("loss", parts["loss"])
        n_tokens = int(_sum(torch.tensor(self._task.n_tokens(batch), device=self.args.device)))
        self._pending = parts, n_tokens, started, float(self.optimizer.param_groups[0]["lr"])
        return torch.tensor(parts["loss"], device=self.args.device)

    def _clip_grad_norm(self, model: nn.Module) -> Tensor:
        norm: Tensor = super()._clip_grad_norm(model)
        self._check("length of the gradient", norm.item())
        return norm

    def _check(self, name: str, value: float) -> None:
        if not math.isfinite(value):
            raise TrainingError(
                f"the {name} of step {self.state.global_step + 1} is {value}; lower the learning rate "
                f"({self._rates[0]}) and run again: it goes on from the last checkpoint in "
                f"{self._folder / CHECKPOINT_FOLDER}"
            )

    def end_step(self) -> None:
        """Record the step whose update was just made, and decide what follows it."""
        parts, n_tokens, started, rate = self._pending
        step, settings = self.state.global_step, self._settings
        seconds = max(time.perf_counter() - started, 1e-9)
        self.state.num_input_tokens_seen += n_tokens
        in_all = (_last(self.state, SECONDS) or 0.0) + seconds
        losses = {name if name == LOSS else f"{LOSS}/{name}": value for name, value in parts.items()}
        self._add({**losses, LEARNING_RATE: rate, "tokens per second": n_tokens / seconds, SECONDS: in_all})
        if self.is_world_process_zero():
            valid = _last(self.state, f"{VALID}/{MEAN}")
            self._watch(Step(step, settings.steps, parts["loss"], n_tokens / seconds, valid))
        is_last = step >= settings.steps
        self.control.should_evaluate = bool(self._validate) and (is_last or step % settings.validate_every == 0)
        self.control.should_save = is_last or step % settings.checkpoint_every == 0

    def evaluate(self, *_arguments: object, **_settings: object) -> dict[str, float]:
        """Measure the current parameters, and save them if they are the best so far."""
        with self.accelerator.autocast():
            measured = dict(self._validate()) if self._validate else {}
        values = _of_first(measured)  # rounding must not make one process stop alone
        state = self.state
        self._add(validation_values(values))
        mean = sum(values.values()) / len(values)
        is_best = state.best_metric is None or mean > state.best_metric
        shown = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
        self._log(f"{VALID} after step {state.global_step:,}: {shown}; mean {mean:.4f}{' *' if is_best else ''}")
        if is_best:
            state.best_metric, state.best_global_step = mean, state.global_step
            if self.is_world_process_zero():
                self._encoder.save_pretrained(self._folder / BEST_FOLDER, dtype=torch.float32)
        self.control.should_evaluate = False
        if self._is_exhausted(state):
            self.control.should_save = self.control.should_training_stop = True
        return {}

    def _add(self, values: Mapping[str, float]) -> None:
        # The trainer writes its log with each checkpoint, and reads it again when it resumes.
        step = self.state.global_step
        self.state.log_history += [Number(step, name, value)._asdict() for name, value in values.items()]

    def _is_exhausted(self, state: Any) -> bool:  # noqa: ANN401
        means = _history(state).validation.get(MEAN)
        if means is None or self._settings.patience is None:
            return False
        best = int(state.best_global_step)
        return sum(step > best for step in means) >= self._settings.patience

    def end_checkpoint(self) -> None:
        """Write the history beside a checkpoint, and keep the last two."""
        self._write_history()
        if self.is_world_process_zero():
            for old in sorted((self._folder / CHECKPOINT_FOLDER).glob("checkpoint-*"), key=step_of)[:-_KEPT]:
                shutil.rmtree(old)

    def _write_history(self) -> None:
        if self.is_world_process_zero():
            _history(self.state).write(self._folder / HISTORY_FILE)

    def _finish(self) -> Outcome:
        state, best = self.state, self._folder / BEST_FOLDER
        if not self._validate and self.is_world_process_zero():
            self._encoder.save_pretrained(best, dtype=torch.float32)
        self._write_history()
        state.log_history = _of_first(state.log_history)
        self.accelerator.wait_for_everyone()
        return Outcome(
            best,
            state.best_global_step if self._validate else state.global_step,
            state.global_step,
            state.num_input_tokens_seen,
            _last(state, SECONDS) or 0.0,
            _history(state),
        )

    def log(self, logs: object, start_time: object = None) -> None:
        """Leave out the numbers of transformers; see `end_step`."""

    def create_accelerator_and_postprocess(self) -> None:
        """Keep the module as it is: gradients are averaged by `average_gradients`."""
        super().create_accelerator_and_postprocess()
        self.accelerator.prepare_model = lambda model, **_settings: model

    def _move_model_to_device(self, model: nn.Module, device: torch.device) -> None:
        """Leave the module where it is."""

    def _wrap_model(self, model: nn.Module, *_arguments: object, **_settings: object) -> nn.Module:
        return model

    def _save(self, output_dir: str | None = None, state_dict: object = None) -> None:
        # Tied parameters share memory, which safetensors refuses: each name gets its own copy.
        super()._save(output_dir, {name: weight.detach().clone() for name, weight in self.model.state_dict().items()})

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: object = None) -> None:
        path = Path(resume_from_checkpoint)
        try:
            saved = load_file(path / _MODULE_FILE)
        except (OSError, SafetensorError) as error:
            raise _damaged(path, error) from error
        try:
            self.model.load_state_dict(saved)
        except RuntimeError as error:
            raise EncoderError(
                f"{path} is of another encoder ({' '.join(str(error).split())}); give the settings of its first run, "
                "or start it again"
            ) from error

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        try:
            super()._load_optimizer_and_scheduler(checkpoint)
        except Exception as error:  # damaged files raise errors of torch, zip files and unpickling
            raise _damaged(Path(checkpoint), error) from error


class _Schedule(transformers.TrainerCallback):
    """Ends each step of a trainer, and writes the history with each checkpoint."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer

    def on_step_end(self, *_arguments: object, **_more: object) -> None:
        self._trainer.end_step()

    def on_save(self, *_arguments: object, **_more: object) -> None:
        self._trainer.end_checkpoint()


def latest_checkpoint(folder: Path) -> Path | None:
    """The last complete checkpoint; None where there is none."""
    return max(filter(_is_complete, folder.glob("checkpoint-*")), key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    """The number of updates before a checkpoint."""
    return int(checkpoint.name.rpartition("-")[2])


def _is_complete(checkpoint: Path) -> bool:
    try:
        return bool(json.loads((checkpoint / _STATE_FILE).read_bytes()))  # written last
    except (OSError, ValueError):
        return False


def _damaged(checkpoint: Path, error: Exception) -> TrainingError:
    return TrainingError(
        f"{checkpoint} is damaged ({error}); delete it, and the run goes on from the checkpoint before it"
    )


def _history(state: Any) -> History:  # noqa: ANN401
    return History(Number(**entry) for entry in state.log_history)


def _last(state: Any, name: str) -> float | None:  # noqa: ANN401
    return next((entry["value"] for entry in reversed(state.log_history) if entry["name"] == name), None)


def torch_seed(*numbers: int) -> int:
    """One seed from several numbers, the same on every machine."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def rate_share(step: int, settings: TrainerSettings) -> float:
    """Share of the learning rate at a step, in (0, 1]: linear warm-up, then linear decay towards 0."""
    warmup = settings.warmup_share * settings.steps
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return (settings.steps - step) / max(settings.steps - warmup, 1)


def average_gradients(weights: Iterable[nn.Parameter], n: int) -> None:
    """Replace the gradients of each of n processes with their mean over all processes.

    A parameter without a gradient in one process counts as 0 there. A parameter
    without a gradient in any process keeps none, so the optimizer does not change it.
    """
    if n == 1:
        return
    trained = [weight for weight in weights if weight.requires_grad]
    has_gradient = torch.tensor([weight.grad is not None for weight in trained], device=trained[0].device)
    for weight, count in zip(trained, _sum(has_gradient.int()).tolist(), strict=True):
        if count:
            weight.grad = _sum(torch.zeros_like(weight) if weight.grad is None else weight.grad) / n


def _sum(tensor: Tensor) -> Tensor:
    """The sum over all processes."""
    from accelerate.utils import reduce

    summed: Tensor = reduce(tensor, "sum")
    return summed


def _of_first(value: ValueT) -> ValueT:
    """The value in the first process."""
    from accelerate.utils import broadcast_object_list

    shared: ValueT = broadcast_object_list([value])[0]
    return shared


def _groups(module: nn.Module, encoder: Saved, settings: TrainerSettings) -> list[dict[str, Any]]:
    """Group the parameters by weight decay and by learning rate.

    Heads are the parameters outside the backbone or the sentence encoder of a SMITH, or outside an encoder
    that has neither. If heads have no learning rate of their own, the encoder is not divided.
    """
    body: nn.Module = encoder.module
    if settings.head_learning_rate is not None:
        backbone = getattr(encoder, "backbone", None)
        body = getattr(encoder.module, "sentence", body) if backbone is None else backbone.model
    ids = {id(weight) for weight in body.parameters()}
    groups: dict[tuple[bool, bool], list[Tensor]] = {}
    for weight in module.parameters():
        if weight.requires_grad:
            groups.setdefault((id(weight) in ids, weight.dim() > 1), []).append(weight)
    head_rate = settings.learning_rate if settings.head_learning_rate is None else settings.head_learning_rate
    return [
        {
            "params": weights,
            "lr": settings.learning_rate if is_own else head_rate,
            "weight_decay": settings.weight_decay if decays else 0.0,
        }
        for (is_own, decays), weights in groups.items()
    ]


def _backward(loss: Tensor) -> None:
    # The gradient of each product is computed in the precision of that product.
    with full_precision(loss.device):
        loss.backward()  # type: ignore[no-untyped-call]
