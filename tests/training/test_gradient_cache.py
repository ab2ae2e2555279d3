"""Gradients in groups are compared with those of the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.mean import MeanEncoder
from engine.encoders.trainable import Embedded
from engine.training.losses import ScaledCosine
from engine.training.task import GradientCache, join
from tests.fakes import make_document

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


def gradients(encoder: MeanEncoder) -> dict[str, Tensor]:
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
    cache = GradientCache(encoder, group_tokens=group_tokens)
    encoder.module.train(training)
    torch.manual_seed(1)
    whole = pairs_loss(join([encoder.embed(group) for group in cache.groups(documents)]))
    whole.backward()
    expected = gradients(encoder)
    torch.manual_seed(1)
    found = cache.backward(documents, pairs_loss, Tensor.backward)
    assert found.item() == pytest.approx(whole.item(), rel=1e-6)
    assert_close(gradients(encoder), expected)


def test_a_batch_of_one_group_is_encoded_once(documents: list[SegmentedDocument], encoder: MeanEncoder) -> None:
    class Counting(MeanEncoder):
        n_passes = 0

        def embed(self, documents: Sequence[SegmentedDocument]) -> Embedded:
            self.n_passes += 1
            return super().embed(documents)

    counting = Counting(encoder.backbone, window_tokens=12)
    cache = GradientCache(counting, group_tokens=sum(sum(map(len, one.token_ids)) for one in documents))
    value = cache.backward(documents, pairs_loss, Tensor.backward)
    found = gradients(encoder)
    assert (counting.n_passes, value.requires_grad) == (1, False)
    pairs_loss(encoder.embed(documents)).backward()
    expected = gradients(encoder)
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in expected)


def test_under_autocast_weights_have_their_gradients_too(
    encoder: MeanEncoder, documents: list[SegmentedDocument]
) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        pairs_loss(encoder.embed(documents)).backward()
        expected = gradients(encoder)
        GradientCache(encoder, group_tokens=20).backward(documents, pairs_loss, Tensor.backward)
    found = gradients(encoder)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        # A bias of keys moves all logits of a softmax alike, so its gradient is nothing but rounding.
        if gradient.norm() > 1e-3 and not name.endswith("key.bias"):
            assert (found[name] - gradient).norm() < 0.1 * gradient.norm(), name


def test_without_dropout_groups_do_not_matter(encoder: MeanEncoder, documents: list[SegmentedDocument]) -> None:
    pairs_loss(encoder.embed(documents)).backward()
    expected = gradients(encoder)
    GradientCache(encoder, group_tokens=1).backward(documents, pairs_loss, Tensor.backward)
    assert_close(gradients(encoder), expected)


def test_a_loss_of_document_vectors_alone_has_the_same_gradients(
    encoder: MeanEncoder, documents: list[SegmentedDocument]
) -> None:
    def loss(embedded: Embedded) -> Tensor:
        return embedded.documents.sum(0).square().sum()

    loss(encoder.embed(documents)).backward()
    expected = gradients(encoder)
    GradientCache(encoder, group_tokens=20).backward(documents, loss, Tensor.backward)
    assert_close(gradients(encoder), expected)


def test_a_scaled_backward_scales_all_gradients_those_of_heads_included(
    encoder: MeanEncoder, documents: list[SegmentedDocument]
) -> None:
    head = ScaledCosine()

    def loss(embedded: Embedded) -> Tensor:
        return head(embedded.documents @ embedded.documents[0]).sigmoid().sum()

    def doubled(value: Tensor) -> None:
        (2 * value).backward()

    cache = GradientCache(encoder, group_tokens=20)
    cache.backward(documents, loss, Tensor.backward)
    once, head_once = gradients(encoder), head.raw_scale.grad
    head.zero_grad()
    cache.backward(documents, loss, doubled)
    assert_close({name: gradient / 2 for name, gradient in gradients(encoder).items()}, once)
    torch.testing.assert_close(head.raw_scale.grad, 2 * head_once)


def test_the_random_state_afterwards_is_that_after_one_pass(
    encoder: MeanEncoder, documents: list[SegmentedDocument]
) -> None:
    encoder.module.train()
    cache = GradientCache(encoder, group_tokens=20)
    torch.manual_seed(1)
    for group in cache.groups(documents):
        encoder.embed(group)
    expected = torch.rand(3)
    torch.manual_seed(1)
    cache.backward(documents, pairs_loss, Tensor.backward)
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

    cache = GradientCache(encoder, group_tokens=1)
    largest = max(peak(lambda one=one: encoder.embed([one]).documents.sum().backward()) for one in documents)
    leaves = _leaves(encoder.embed(documents))
    loss_alone = peak(lambda: pairs_loss(leaves).backward())
    whole = peak(lambda: pairs_loss(encoder.embed(documents)).backward())
    assert peak(lambda: cache.backward(documents, pairs_loss, Tensor.backward)) <= largest + loss_alone < whole


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


def test_groups_keep_order_and_budget(encoder: MeanEncoder, documents: Sequence[SegmentedDocument]) -> None:
    sizes = [sum(map(len, document.token_ids)) for document in documents]
    assert sizes == [16, 36, 36, 3, 18]
    groups = [
        [int(one.document.doc_id) for one in group]
        for group in GradientCache(encoder, group_tokens=54).groups(documents)
    ]
    assert groups == [[0, 1], [2, 3], [4]]
