"""The interface of tasks, and gradients of groups: those of the whole batch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from engine.encoders.backbone import Backbone
from engine.encoders.colde import ColdeConfig, ColdeEncoder
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.hardware import default_dtype
from engine.encoders.smith import SmithEncoder
from engine.encoders.tde import TdeConfig, TdeEncoder
from engine.encoders.trainable import Embedded, MeanEncoder
from engine.training.contrastive_pretraining import (
    ContrastivePretraining,
    ContrastiveTension,
    MomentumContrast,
    ViewsSettings,
)
from engine.training.fine_tuning import FineTuning, FineTuningSettings, Loss, Source
from engine.training.losses import ScaledCosine
from engine.training.masked_words import SmithPretraining, SmithSettings
from engine.training.pair_tasks import ContrastSettings, LabelledPair, PairGraph, SectionContrast, TextPairs
from engine.training.selection import RandomRuns, keep_chunks
from engine.training.task import (
    Task,
    backward_in_groups,
    epoch_slice,
    full_precision,
    groups_of,
    join,
    step_generator,
    tokens_read,
)
from engine.training.views import Sampling, ViewPairs
from tests.fakes import FakeEncoder, make_document
from tests.training.made import SMITH, pairs_of_texts, plain_encoder, training_corpus


def test_a_step_has_the_same_numbers_whenever_it_is_run_and_epochs_and_seeds_others() -> None:
    assert step_generator(3, 5).random() == step_generator(3, 5).random()
    drawn = {step_generator(seed, step).random() for seed in range(4) for step in range(4)}
    assert len(drawn) == 16
    orders = [tuple(epoch_slice(20, 20, step, seed)) for step in range(2) for seed in range(2)]
    assert len(set(orders)) == 4
    assert [sorted(epoch_slice(3, 8, step, seed=0)) for step in range(2)] == [[0, 1, 2]] * 2


@pytest.mark.parametrize(("n", "size"), [(10, 3), (10, 5), (7, 7), (1, 1)])
def test_an_epoch_reads_each_position_at_most_once_and_all_that_fill_a_batch(n: int, size: int) -> None:
    steps = n // size
    for epoch in range(3):
        batches = [epoch_slice(n, size, epoch * steps + step, seed=1) for step in range(steps)]
        read = [position for batch in batches for position in batch]
        assert [len(batch) for batch in batches] == [size] * steps
        assert len(set(read)) == steps * size and set(read) <= set(range(n))


DOCUMENTS = pairs_of_texts(12)
PAIRS = {f"q{number}": {f"t{number}": 1} for number in range(12)}
LOSSES = {
    torch.nn.functional.cross_entropy,
    torch.nn.functional.binary_cross_entropy_with_logits,
    torch.nn.functional.logsigmoid,
    torch.nn.functional.log_softmax,
    torch.Tensor.logsumexp,
}


def fine_tuning(folder: Path) -> FineTuning:
    settings = FineTuningSettings(dict.fromkeys(Loss, 1.0), queries=8, negatives=0)
    sources = [Source(training_corpus(DOCUMENTS, PAIRS), RandomRuns(2, 2))]
    return FineTuning(plain_encoder(folder), sources, settings)


def sections(folder: Path, *, contrastive: bool = True) -> SectionContrast:
    config = ColdeConfig(chunk_tokens=12, lstm_width=16, projection_width=24)
    encoder = ColdeEncoder.create(folder, config, device="cpu", dtype=torch.float32)
    documents = [encoder.segment(document) for document in DOCUMENTS]
    return SectionContrast(
        encoder, documents, PairGraph(24, [(0, 1), (2, 3)]), ContrastSettings(n_classes=4, contrastive=contrastive)
    )


def text_pairs(folder: Path) -> TextPairs:
    config = TdeConfig(n_topics=4, topic_width=8, topic_hidden_width=16)
    encoder = TdeEncoder.create(folder, [one.text for one in DOCUMENTS], config, device="cpu")
    pairs = [LabelledPair(number, (number + number % 2) % 24, number % 2 == 0) for number in range(1, 20)]
    return TextPairs(encoder, [encoder.segment(document) for document in DOCUMENTS], pairs)


def views(folder: Path, sampling: Sampling = Sampling.CONTRIEVER) -> ViewPairs:
    return ViewPairs(plain_encoder(folder), DOCUMENTS, sampling, batch_size=8, max_tokens=40)


def contrastive(folder: Path, **config: Any) -> ContrastivePretraining:  # noqa: ANN401
    pairs = views(folder)
    return ContrastivePretraining(pairs.encoder, pairs, ViewsSettings(**{"mlm_weight": 0.1, **config}))  # type: ignore[arg-type]


def momentum(folder: Path) -> MomentumContrast:
    pairs = views(folder)
    return MomentumContrast(pairs.encoder, pairs, ViewsSettings(queue=16))  # type: ignore[arg-type]


def tension(folder: Path) -> ContrastiveTension:
    pairs = views(folder, Sampling.CT)
    return ContrastiveTension(pairs.encoder, pairs, negatives=3)  # type: ignore[arg-type]


def smith(folder: Path) -> SmithPretraining:
    encoder = SmithEncoder.create(folder, SMITH, device="cpu")
    return SmithPretraining(encoder, [encoder.segment(document) for document in DOCUMENTS], SmithSettings(batch_size=6))


TASKS: Mapping[str, Callable[[Path], Task[Any]]] = {
    "fine-tuning": fine_tuning,
    "sections": sections,
    "sections-bce": lambda folder: sections(folder, contrastive=False),
    "text-pairs": text_pairs,
    "views": lambda folder: contrastive(folder, mlp_head=True),
    "views-cached": lambda folder: contrastive(folder, group_tokens=60),
    "momentum": momentum,
    "tension": tension,
    "smith": smith,
}


class SeenLogits(TorchFunctionMode):
    """Records the logits that loss functions are called with, and whether autocast is on."""

    def __init__(self) -> None:
        super().__init__()
        self.logits: list[Tensor] = []
        self.autocast: list[bool] = []

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        if func in LOSSES:
            self.logits.append(args[0].detach())
            self.autocast.append(torch.is_autocast_enabled("cpu"))
        return func(*args, **(kwargs or {}))


def content(value: object) -> object:
    """A batch as nested tuples, which can be compared."""
    if isinstance(value, Tensor | np.ndarray):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(content(getattr(value, field.name)) for field in fields(value))
    return tuple(map(content, value)) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("name", [name for name in TASKS if name != "views-cached"])
def test_a_batch_is_a_function_of_its_step(bert_folder: Path, name: str) -> None:
    task, again = TASKS[name](bert_folder), TASKS[name](bert_folder)
    batches = [content(task.batch(step)) for step in range(3)]
    assert [content(again.batch(step)) for step in (2, 0, 1)] == [batches[2], batches[0], batches[1]]
    assert batches[0] != batches[1] != batches[2]


@pytest.mark.parametrize("name", ["sections", "smith"])
def test_another_seed_draws_another_batch(bert_folder: Path, name: str) -> None:
    task: Any = TASKS[name](bert_folder)
    batch = content(task.batch(0))
    task.settings = replace(task.settings, seed=1)
    assert content(task.batch(0)) != batch


@pytest.mark.parametrize("mlp_head", [None, False, True])
def test_groups_change_no_gradient_of_a_task(bert_folder: Path, mlp_head: bool | None) -> None:
    task: Any = (
        fine_tuning(bert_folder) if mlp_head is None else contrastive(bert_folder, mlm_weight=0, mlp_head=mlp_head)
    )
    losses, found = [], []
    for group_tokens in (None, 30):
        task.settings = replace(task.settings, group_tokens=group_tokens)
        losses.append(task.backward(task.batch(3), Tensor.backward)["loss"])
        found.append(gradients(task))
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert_close(found[1], found[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_the_logits_of_a_loss_are_float32_under_autocast(bert_folder: Path, name: str) -> None:
    if name == "sections-bce" and default_dtype("cpu") is not torch.bfloat16:
        pytest.skip("torch has no bfloat16 LSTM on a processor that does not multiply bfloat16")
    task = TASKS[name](bert_folder)
    batch = task.batch(0)
    with torch.autocast("cpu", torch.bfloat16), SeenLogits() as seen:
        task.backward(batch, Tensor.backward)
    assert seen.logits and not any(seen.autocast)
    for logits in seen.logits:
        assert logits.dtype == torch.float32
        finite = logits[logits.isfinite()]
        assert not torch.equal(finite, finite.bfloat16().float())  # no product of bfloat16, made float32 afterwards
    assert any(weight.grad is not None and weight.grad.any() for weight in task.module.parameters())


def test_full_precision_multiplies_in_float32_inside_autocast() -> None:
    one = torch.randn(4, 4)
    with torch.autocast("cpu", torch.bfloat16):
        assert (one @ one).dtype == torch.bfloat16
        with full_precision(one.device):
            assert torch.equal(one @ one, torch.mm(one, one)) and (one @ one).dtype == torch.float32
        assert (one @ one).dtype == torch.bfloat16


TEXTS = [
    "the old fox. the young dog jumps over the house. one two three.",
    "a model finds every vector. " * 6,
    "river bank. " * 12,
    "light and dark",
    "we search long documents. " * 3,
]


@pytest.fixture
def encoder(bert_folder: Path) -> MeanEncoder:
    return MeanEncoder(Backbone(bert_folder, device="cpu", dtype=torch.float32), window_tokens=12)


@pytest.fixture
def documents(encoder: MeanEncoder) -> list[SegmentedDocument]:
    return [encoder.segment(make_document(str(number), text)) for number, text in enumerate(TEXTS)]


def pairs_loss(embedded: Embedded) -> Tensor:
    """Reads every document and chunk vector, those of different groups together."""
    best = torch.einsum("aid,bjd->aibj", embedded.chunks, embedded.chunks)
    best = best.masked_fill(~embedded.mask, -2.0).amax(-1) * embedded.mask[..., None]
    return (embedded.documents @ embedded.documents.mT / 0.3).logsumexp(1).mean() + best.square().mean()


def gradients(encoder: MeanEncoder | Task[Any]) -> dict[str, Tensor]:
    named = encoder.module.named_parameters()
    found = {name: weight.grad.clone() for name, weight in named if weight.grad is not None}
    encoder.module.zero_grad()
    return found


def assert_close(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], atol=1e-5 * largest, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("group_tokens", [1, 30, 10_000])
@pytest.mark.parametrize("training", [False, True])
def test_the_gradient_is_that_of_the_whole_batch(
    encoder: MeanEncoder, documents: list[SegmentedDocument], group_tokens: int, training: bool
) -> None:
    encoder.module.train(training)
    torch.manual_seed(1)
    whole = pairs_loss(join([encoder.embed(group) for group in groups_of(documents, group_tokens)]))
    whole.backward()
    expected = gradients(encoder)
    torch.manual_seed(1)
    found = backward_in_groups(encoder, documents, pairs_loss, Tensor.backward, group_tokens)
    assert found == pytest.approx(whole.item(), rel=1e-6)
    assert_close(gradients(encoder), expected)


def test_a_batch_of_one_group_is_encoded_once(documents: list[SegmentedDocument], encoder: MeanEncoder) -> None:
    class Counting(MeanEncoder):
        n_passes = 0

        def embed(self, documents: Sequence[SegmentedDocument]) -> Embedded:
            self.n_passes += 1
            return super().embed(documents)

    counting = Counting(encoder.backbone, window_tokens=12)
    group_tokens = sum(sum(map(len, one.token_ids)) for one in documents)
    backward_in_groups(counting, documents, pairs_loss, Tensor.backward, group_tokens)
    found = gradients(encoder)
    assert counting.n_passes == 1
    pairs_loss(encoder.embed(documents)).backward()
    expected = gradients(encoder)
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in expected)


def test_autocast_leaves_weights_their_gradients(encoder: MeanEncoder, documents: list[SegmentedDocument]) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        pairs_loss(encoder.embed(documents)).backward()
        expected = gradients(encoder)
        backward_in_groups(encoder, documents, pairs_loss, Tensor.backward, 20)
    found = gradients(encoder)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        # A bias of keys moves all logits of a softmax alike, so its gradient is nothing but rounding.
        if gradient.norm() > 1e-3 and not name.endswith("key.bias"):
            assert (found[name] - gradient).norm() < 0.1 * gradient.norm(), name


def test_a_scaled_backward_scales_all_gradients_those_of_heads_included(
    encoder: MeanEncoder, documents: list[SegmentedDocument]
) -> None:
    head = ScaledCosine()

    def loss(embedded: Embedded) -> Tensor:
        return head(embedded.documents @ embedded.documents[0]).sigmoid().sum()

    def doubled(value: Tensor) -> None:
        (2 * value).backward()

    backward_in_groups(encoder, documents, loss, Tensor.backward, 20)
    once, head_once = gradients(encoder), head.raw_scale.grad
    head.zero_grad()
    backward_in_groups(encoder, documents, loss, doubled, 20)
    assert_close({name: gradient / 2 for name, gradient in gradients(encoder).items()}, once)
    torch.testing.assert_close(head.raw_scale.grad, 2 * head_once)


def test_the_random_state_is_that_after_one_pass(encoder: MeanEncoder, documents: list[SegmentedDocument]) -> None:
    encoder.module.train()
    torch.manual_seed(1)
    for group in groups_of(documents, 20):
        encoder.embed(group)
    expected = torch.rand(3)
    torch.manual_seed(1)
    backward_in_groups(encoder, documents, pairs_loss, Tensor.backward, 20)
    assert torch.equal(torch.rand(3), expected)


def test_memory_of_the_graph_is_that_of_one_group(encoder: MeanEncoder, documents: list[SegmentedDocument]) -> None:
    """Counts the bytes that autograd saves and releases."""

    def peak(run: Callable[[], object]) -> int:
        held, most = 0, 0

        def pack(tensor: Tensor) -> _Kept:
            nonlocal held, most
            held += tensor.nbytes
            most = max(most, held)
            return _Kept(tensor.detach(), give_back)  # an output would keep its own graph alive

        def give_back(n_bytes: int) -> None:
            nonlocal held
            held -= n_bytes

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.tensor):
            run()
        return most

    largest = max(peak(lambda one=one: encoder.embed([one]).documents.sum().backward()) for one in documents)
    leaves = _leaves(encoder.embed(documents))
    loss_alone = peak(lambda: pairs_loss(leaves).backward())
    whole = peak(lambda: pairs_loss(encoder.embed(documents)).backward())
    assert (
        peak(lambda: backward_in_groups(encoder, documents, pairs_loss, Tensor.backward, 1))
        <= largest + loss_alone
        < whole
    )


class _Kept:
    def __init__(self, tensor: Tensor, give_back: Callable[[int], None]) -> None:
        self.tensor = tensor
        self.give_back = give_back

    def __del__(self) -> None:
        self.give_back(self.tensor.nbytes)


def _leaves(embedded: Embedded) -> Embedded:
    return Embedded(
        embedded.documents.detach().requires_grad_(), embedded.chunks.detach().requires_grad_(), embedded.mask
    )


def test_groups_keep_order_and_budget_and_tokens_are_those_of_the_chunks_left(
    encoder: MeanEncoder, documents: Sequence[SegmentedDocument]
) -> None:
    sizes = [sum(map(len, document.token_ids)) for document in documents]
    assert sizes == [16, 36, 36, 3, 18]
    groups = [[int(one.document.doc_id) for one in group] for group in groups_of(documents, 54)]
    assert groups == [[0, 1], [2, 3], [4]]
    document = FakeEncoder().segment(make_document("a", "word " * 20))
    assert tokens_read([document, keep_chunks(document, [0, 2])]) == 20 + 8 + 4
