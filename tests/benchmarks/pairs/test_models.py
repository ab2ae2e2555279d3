from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, pad

from benchmarks.pairs.inputs import DocumentWords, TrigramCounts
from benchmarks.pairs.neural import (
    NEURAL,
    FirstTokens,
    SiameseLongConfig,
    dssm,
    first_tokens,
    neural_scorer,
    sbert,
    siamese_long,
    word_scorer,
)
from benchmarks.pairs.pair_model import n_parameters
from benchmarks.pairs.re2 import Re2, Re2Config
from benchmarks.pairs.scoring import PairScorer
from benchmarks.pairs.siamese import (
    ArcI,
    ArcIConfig,
    AttentiveGru,
    Dssm,
    DssmConfig,
    Han,
    HanConfig,
    Smash,
    SmashConfig,
)
from engine.encoders.backbone.backbone import Backbone
from engine.errors import EncoderError
from indexer.training.long_encoder import LongAttention, LongSizes
from tests.benchmarks.pairs.cases import (
    OVERFITTING,
    OVERFITTING_TRANSFORMER,
    TINY_WORDS,
    fitted,
    random_table,
    random_words,
    share_right,
    topical_pairs,
    turned,
)
from tests.fakes import make_document


def read_by_hand(level: AttentiveGru, sequence: Tensor) -> Tensor:
    """The equation, one sequence (L, E) at a time, by torch's own bidirectional GRU."""
    gru = nn.GRU(level.forwards.input_size, level.forwards.hidden_size, bidirectional=True)
    names = [*level.forwards.state_dict()]
    gru.load_state_dict(
        {name: level.forwards.state_dict()[name] for name in names}
        | {f"{name}_reverse": level.backwards.state_dict()[name] for name in names}
    )
    states = gru(sequence)[0]
    weights = (torch.tanh(level.attention(states)) @ level.context.weight[0]).softmax(0)
    return torch.stack([weight * state for weight, state in zip(weights, states, strict=True)]).sum(0)


def test_every_sequence_is_read_as_it_is_alone() -> None:
    torch.manual_seed(0)
    level = AttentiveGru(5, 3, 4)
    lengths = torch.tensor([2, 7, 1, 4, 5, 30, 3, 8])
    elements = torch.randn(60, 5)
    expected = torch.stack([read_by_hand(level, sequence) for sequence in elements.split(lengths.tolist())])
    torch.testing.assert_close(level(elements, lengths), expected, atol=1e-6, rtol=1e-5)


def test_gradients_are_those_of_sequences_read_alone() -> None:
    torch.manual_seed(0)
    level = AttentiveGru(5, 3, 4)
    together, alone = (torch.linspace(-1, 1, 50).reshape(10, 5).requires_grad_() for _ in range(2))
    lengths = torch.tensor([3, 4, 1, 2])
    level(together, lengths).square().sum().backward()
    learned = [weight.grad.clone() for weight in level.parameters() if weight.grad is not None]
    level.zero_grad()
    sum(level(part, torch.tensor([len(part)])).square().sum() for part in alone.split(lengths.tolist())).backward()
    torch.testing.assert_close(together.grad, alone.grad)
    torch.testing.assert_close(learned, [weight.grad for weight in level.parameters()])
    assert len(learned) == 11


def read_by_hand_han(model: Han, document: DocumentWords) -> Tensor:
    """One sentence at a time, then the sentences."""
    words = model.embedding(torch.from_numpy(document.ids))
    sentences = [model.words(part, torch.tensor([len(part)])) for part in words.split(document.sentences.tolist())]
    whole: Tensor = model.sentences(torch.cat(sentences), torch.tensor([len(sentences)]))[0]
    return whole


def test_han_vectors_equal_the_equations_in_any_batch() -> None:
    torch.manual_seed(0)
    model = Han(HanConfig(width=6, attention_width=5), random_table(width=5))
    documents = [random_words(seed, n_words=length) for seed, length in enumerate((1, 9, 33))]
    expected = torch.stack([read_by_hand_han(model, document) for document in documents])
    torch.testing.assert_close(model.encode(documents), expected, atol=1e-5, rtol=1e-5)


def read_by_hand_smash(model: Smash, words: Tensor, cut: list[list[int]]) -> Tensor:
    """One vector of a document (W, E) cut into paragraphs, each a list of the lengths of its sentences."""
    paragraphs = []
    rest = words
    for sentences in cut:
        read = []
        for length in sentences:
            read.append(model.words(rest[:length], torch.tensor([length])))
            rest = rest[length:]
        paragraphs.append(model.sentences(torch.cat(read), torch.tensor([len(read)])))
    whole: Tensor = model.paragraphs(torch.cat(paragraphs), torch.tensor([len(paragraphs)]))[0]
    return whole


def three_cuts(document: DocumentWords) -> list[list[list[int]]]:
    sentences = document.sentences.tolist()
    paragraphs, rest = [], sentences
    for length in document.paragraphs.tolist():
        paragraphs.append(rest[:length])
        rest = rest[length:]
    return [paragraphs, [sentences], [[len(document)]]]


def test_smash_vectors_are_those_of_three_depths_in_any_batch() -> None:
    torch.manual_seed(0)
    model = Smash(SmashConfig(width=4, attention_width=3), random_table(width=5))
    documents = [random_words(seed, n_words=length) for seed, length in enumerate((1, 9, 33))]
    for document, row in zip(documents, model.encode(documents), strict=True):
        words = model.embedding(torch.from_numpy(document.ids))
        expected = torch.cat([read_by_hand_smash(model, words, cut) for cut in three_cuts(document)])
        torch.testing.assert_close(row, expected, atol=1e-5, rtol=1e-5)


def test_both_documents_go_through_one_tower() -> None:
    torch.manual_seed(0)
    model = Smash(SmashConfig(width=4, attention_width=3), random_table(width=5))
    first, second = random_words(0, n_words=12), random_words(1, n_words=20)
    s, t = model.encode([first, second])
    features = torch.cat([s, t, (s - t).abs(), s * t])
    torch.testing.assert_close(model([first], [second])[0], model.head.layers(features)[0])


TRIGRAMS = [
    TrigramCounts(np.array([0, 3, 7]), np.array([0.5, 1.0, 2.0], np.float32)),
    TrigramCounts(np.array([], np.int64), np.array([], np.float32)),
    TrigramCounts(np.array([1]), np.array([3.0], np.float32)),
]


def test_dssm_vectors_equal_the_equation() -> None:
    torch.manual_seed(0)
    model = Dssm(DssmConfig((6, 5, 4)), 9)
    first, second = (layer for layer in model.layers)
    for document, row in zip(TRIGRAMS, model.encode(TRIGRAMS), strict=True):
        counts = torch.zeros(9)
        counts[document.ids] = torch.from_numpy(document.weights)
        hidden = torch.tanh(model.columns.weight.T @ counts + model.bias)
        expected = torch.tanh(second(torch.tanh(first(hidden))))
        torch.testing.assert_close(row, expected)


LENGTHS = (1, 2, 5, 17, 40)


def arc_i_by_hand(model: ArcI, document: DocumentWords) -> Tensor:
    """The equations over one document, position by position."""
    rows = [model.embedding.weight[number] for number in document.ids.tolist()]
    for layer in model.convolutions:
        beyond = torch.zeros_like(rows[0])
        padded = [beyond, *rows, beyond]
        left, middle, right = layer.weight.unbind(-1)
        made = [
            torch.relu(left @ padded[at] + middle @ padded[at + 1] + right @ padded[at + 2] + layer.bias)
            for at in range(len(rows))
        ]
        rows = [torch.stack(made[at : at + 2]).amax(0) for at in range(0, len(made), 2)]
    return torch.stack(rows).amax(0)


def test_arc_i_vectors_equal_the_equation_in_any_batch() -> None:
    torch.manual_seed(0)
    model = ArcI(ArcIConfig(features=6), random_table(width=5))
    documents = [random_words(seed, n_words=length) for seed, length in enumerate(LENGTHS)]
    expected = torch.stack([arc_i_by_hand(model, document) for document in documents])
    torch.testing.assert_close(model.encode(documents), expected, atol=1e-5, rtol=1e-5)


SMALL = Re2Config(TINY_WORDS, blocks=3, width=6, dropout=0.0)


def activated(layer: Tensor, rows: Tensor, bias: Tensor) -> Tensor:
    return gelu(linear(rows, layer, bias), approximate="tanh")


def score_by_hand(model: Re2, one: Tensor, other: Tensor) -> Tensor:
    """The equations over a single pair of ids, without padding: the logit."""
    words = [model.embedding(one), model.embedding(other)]
    rows, residual = words, words
    for number, block in enumerate(model.blocks):
        if number == 1:
            residual = rows
        if number > 1:
            residual = [(now + before) / math.sqrt(2) for now, before in zip(rows, residual, strict=True)]
        if number:
            rows = [torch.cat([left, word], -1) for left, word in zip(residual, words, strict=True)]
        seen = []
        for text in rows:
            context = text
            for layer, _ in block.convolutions:
                beyond = pad(context, (0, 0, 1, 1))
                windows = torch.cat([beyond[:-2], beyond[1:-1], beyond[2:]], -1)
                context = activated(layer.weight.permute(0, 2, 1).flatten(1), windows, layer.bias)
            seen.append(torch.cat([text, context], -1))
        a, b = seen
        similar = block.projection(a) @ block.projection(b).T * block.temperature
        pairs = [(a, similar.softmax(1) @ b), (b, similar.T.softmax(1) @ a)]
        rows = []
        for z, aligned in pairs:
            beside = [aligned, z - aligned, z * aligned]
            parts = [layer(torch.cat([z, x], -1)) for layer, x in zip(block.fusions, beside, strict=True)]
            rows.append(block.fused(torch.cat(parts, -1)))
    v1, v2 = (text.amax(0) for text in rows)
    classes = model.classes(model.hidden(torch.cat([v1, v2, v1 * v2, v1 - v2])))
    return classes[1] - classes[0]  # type: ignore[no-any-return]


def test_logits_equal_the_equations_in_any_batch() -> None:
    torch.manual_seed(0)
    model = Re2(SMALL, random_table(width=5)).eval()
    first = [random_words(seed, n_words=length) for seed, length in enumerate((1, 9, 20))]
    second = [random_words(seed, n_words=length) for seed, length in enumerate((14, 3, 7), start=9)]
    expected = [
        score_by_hand(model, torch.from_numpy(one.ids), torch.from_numpy(other.ids))
        for one, other in zip(first, second, strict=True)
    ]
    torch.testing.assert_close(model(first, second), torch.stack(expected), atol=1e-5, rtol=1e-5)


@pytest.fixture
def backbone(bert_folder: Path) -> Backbone:
    return Backbone(bert_folder, device="cpu", dtype=torch.float32)


def test_a_vector_is_the_pooled_output_of_bert_in_any_batch(backbone: Backbone) -> None:
    bert = backbone.model
    sequences = [[7, 8, 9], [10], list(range(5, 40))]
    read = FirstTokens(backbone, pooler=bert.pooler).eval().encode(sequences)
    for sequence, row in zip(sequences, read, strict=True):
        ids, _ = backbone.tokenizer.pad([sequence])
        torch.testing.assert_close(row, bert(input_ids=ids).pooler_output[0], atol=1e-5, rtol=1e-5)


def test_only_the_first_tokens_are_read_across_sections(backbone: Backbone) -> None:
    document = make_document("d", [("", "the old fox "), ("", "is red and the dog is brown")])
    whole = first_tokens(document, backbone, 512)
    assert len(whole) == 10
    assert first_tokens(document, backbone, 7) == whole[:5]
    long = make_document("long", "fox " * 500)
    assert len(first_tokens(long, backbone, 512)) == 46  # what this BERT can read


@pytest.fixture
def calm_bert_folder(bert_folder: Path, tmp_path: Path) -> Path:
    """The BERT of the tests with parameters a tenth as large, because the original learns slowly."""
    folder = tmp_path / "calm"
    folder.mkdir()
    for file in bert_folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    file = folder / "model.safetensors"
    weights = {name: value / 10 if value.dim() > 1 else value for name, value in load_file(file).items()}
    save_file(weights, file, {"format": "pt"})
    return folder


def test_a_model_without_berts_pooler_is_refused(tmp_path: Path, bert_folder: Path) -> None:
    from transformers import DistilBertConfig, DistilBertModel

    for file in bert_folder.glob("*token*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    words = Backbone(bert_folder, device="cpu").tokenizer.vocabulary_size
    DistilBertModel(DistilBertConfig(vocab_size=words, dim=32, n_layers=1, n_heads=2, hidden_dim=64)).save_pretrained(
        tmp_path
    )
    scorer = sbert("s-bert-512", str(tmp_path), 512)
    with pytest.raises(EncoderError, match="is a distilbert, S-BERT reads the pooler of a bert"):
        fitted(scorer)


def tiny(attention: LongAttention, folder: Path) -> SiameseLongConfig:
    return SiameseLongConfig(
        attention, bert=str(folder), sizes=LongSizes(64, window=8, block_tokens=4, random_blocks=1)
    )


@pytest.mark.slow
@pytest.mark.parametrize("attention", LongAttention)
def test_long_models_fit_their_training_pairs(attention: LongAttention, calm_bert_folder: Path) -> None:
    scorer = fitted(siamese_long(tiny(attention, calm_bert_folder), OVERFITTING_TRANSFORMER), steps=40)
    pairs = topical_pairs()
    assert share_right(scorer, pairs) > 0.95
    np.testing.assert_allclose(scorer.score(pairs), scorer.score(turned(pairs)), atol=1e-5)
    assert scorer.name == f"s-{attention}"
    assert scorer.settings.items() >= {"bert": "calm", "sizes_window": 8, "max_tokens": 64}.items()


def test_a_pooler_that_is_not_used_is_not_learned(bert_folder: Path) -> None:
    backbone = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    n_pooler = sum(weight.numel() for weight in backbone.model.pooler.parameters())
    whole = n_parameters(FirstTokens(backbone, pooler=backbone.model.pooler))
    assert n_parameters(FirstTokens(backbone)) == whole - n_pooler


def frozen_table(width: int) -> nn.Embedding:
    return random_table(width=width).requires_grad_(False)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Dssm(DssmConfig(), 30_000), (30_000 * 300 + 300) + (300 * 300 + 300) + (300 * 128 + 128) + 2),
        (ArcI(ArcIConfig(), frozen_table(50)), (3 * 50 * 200 + 200) + 2 * (3 * 200 * 200 + 200) + 2),
        # torch's GRU has two biases a gate
        (
            Han(HanConfig(), frozen_table(200)),
            2 * 3 * 50 * (200 + 50 + 2) + 2 * 3 * 50 * (100 + 50 + 2) + 2 * (100 * 100 + 100 + 100) + 2,
        ),
        (
            Smash(SmashConfig(), frozen_table(50)),
            2 * 3 * 128 * (50 + 128 + 2)
            + 2 * (2 * 3 * 128 * (256 + 128 + 2))
            + 3 * (256 * 128 + 128 + 128)
            + (3072 * 1536 + 1536)
            + (1536 + 1),
        ),
    ],
    ids=["dssm", "arc-i", "han", "smash"],
)
def test_a_model_has_as_many_parameters_as_in_its_paper(model: nn.Module, expected: int) -> None:
    assert n_parameters(model) == expected


def test_re2_has_as_many_parameters_as_published() -> None:
    model = Re2(Re2Config(blocks=3), frozen_table(300))
    assert n_parameters(model) / 1e6 == pytest.approx(2.8, abs=0.05)  # the paper's table of SNLI


MAKERS: dict[str, Callable[[Path], PairScorer]] = {
    "dssm": lambda _: dssm(DssmConfig((32, 16), 500, 1), OVERFITTING),
    "arc-i": lambda _: word_scorer("arc-i", ArcIConfig(TINY_WORDS, layers=2, features=100), OVERFITTING),
    "han": lambda _: word_scorer("han", HanConfig(TINY_WORDS, width=8, attention_width=8), OVERFITTING),
    "smash": lambda _: word_scorer("smash", SmashConfig(TINY_WORDS, width=8, attention_width=8), OVERFITTING),
    "re2": lambda _: word_scorer("re2", Re2Config(TINY_WORDS, width=16, dropout=0.0), OVERFITTING),
    "s-bert-512": lambda folder: sbert("s-bert-512", str(folder), 512, OVERFITTING_TRANSFORMER),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_a_baseline_fits_its_training_pairs_and_compares_by_a_cosine(name: str, calm_bert_folder: Path) -> None:
    scorer, pairs = fitted(MAKERS[name](calm_bert_folder), steps=60), topical_pairs()
    assert share_right(scorer, pairs) == 1
    if name not in ("smash", "re2"):  # whose scores depend on the order of the documents
        np.testing.assert_allclose(scorer.score(pairs), scorer.score(turned(pairs)), atol=1e-5)


@pytest.mark.parametrize("name", NEURAL)
def test_a_baseline_has_its_name_and_states_the_sizes_of_its_paper(name: str) -> None:
    scorer = neural_scorer(name, bert="bert")
    assert scorer.name == name
    lengths = {"arc-i": 2048, "han": 2048, "smash": 2048, "re2": 999}
    tokens = {"matchbert": 256, "s-bert-512": 512, "s-longformer": 4096, "s-bigbird": 4096}
    assert scorer.settings.get("max_words") == lengths.get(name)
    assert scorer.settings.get("max_tokens", scorer.settings.get("sizes_max_tokens")) == tokens.get(name)
