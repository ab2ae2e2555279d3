"""TDE over a random backbone: sentences, topics beside states, means, the pair head, and what is saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from engine.encoders import tde as tde_layers
from engine.encoders.encoder import Pooling, Variant
from engine.encoders.loading import load_trainable
from engine.encoders.tde import TdeConfig, TdeEncoder, sentence_windows
from engine.errors import EncoderError
from engine.text.document import Document
from tests.encoders.tiny import TDE, TEXTS, tiny_tde
from tests.fakes import make_document

CONFIG = replace(TDE, variant=Variant.PAPER, pooling=Pooling.MEAN)
Make = Callable[..., TdeEncoder]


@pytest.fixture(scope="module")
def make(bert_folder: Path) -> Make:
    def made(config: TdeConfig = CONFIG, *, seed: int = 0) -> TdeEncoder:
        return tiny_tde(bert_folder, config, seed=seed)

    return made


@pytest.fixture(scope="module")
def encoder(make: Make) -> TdeEncoder:
    return make()


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return [make_document(f"d{number}", text) for number, text in enumerate(TEXTS)]


def sentences_of(encoder: TdeEncoder, document: Document) -> list[str]:
    return [document.text[chunk.start : chunk.stop] for chunk in encoder.segment(document).chunks]


def topics_by_hand(encoder: TdeEncoder, sentence: str, document: str) -> Tensor:
    assert encoder.module.topics is not None
    model, norm = encoder.module.topics.model, encoder.module.topics.norm
    known = model.vocabulary.bags([sentence]).lengths.item()
    theta = model.shares(model.bags([sentence if known >= 3 else document]))[0]
    t = sum(theta[k] * model.alpha[k] for k in range(len(theta)))
    return norm.weight * (t - t.mean()) / (t.var(unbiased=False) + 1e-5).sqrt() + norm.bias


def by_hand(encoder: TdeEncoder, document: Document) -> tuple[Tensor, Tensor]:
    """Unit h and unit x_s, one sentence at a time."""
    rows = []
    for sentence in sentences_of(encoder, document):
        b = encoder.backbone.embed([encoder.backbone.tokenizer.tokenize([sentence])[0][0]], 64)[0]
        rows.append(torch.cat([b, topics_by_hand(encoder, sentence, document.text)]))
    h = sum(rows) / len(rows)
    return normalize(h, dim=0), torch.stack([row / row.norm() for row in rows])


@torch.no_grad()
def test_vectors_equal_the_equation(encoder: TdeEncoder, documents: list[Document]) -> None:
    for document, encoded in zip(documents, encoder.encode(documents), strict=True):
        h, x = by_hand(encoder, document)
        np.testing.assert_allclose(encoded.document, h.numpy(), atol=1e-5)
        np.testing.assert_allclose(encoded.chunks, x.numpy(), atol=1e-5)
        assert encoded.chunks.shape[1] == encoder.width == 32 + 6


@torch.no_grad()
def test_topics_start_as_long_as_states(encoder: TdeEncoder, documents: list[Document]) -> None:
    for encoded in encoder.encode(documents):
        squares = np.square(encoded.chunks)
        np.testing.assert_allclose(squares[:, :32].sum(1), squares[:, 32:].sum(1), rtol=2e-3)


@torch.no_grad()
def test_a_sentence_of_few_known_words_has_the_topics_of_its_document(encoder: TdeEncoder) -> None:
    assert encoder.module.topics is not None
    text = "Unheard unknown dog river! The quick brown fox, the dog and the river. Fox dog river."
    few, many, enough = encoder.module.topics(["Unheard unknown dog river!", TEXTS[0], "Fox dog river."], text)
    whole = encoder.module.topics([text], text)[0]
    torch.testing.assert_close(few, whole)
    assert not torch.allclose(many, whole, atol=1e-2)
    assert not torch.allclose(enough, whole, atol=1e-2)


@torch.no_grad()
def test_long_documents_read_their_topics_in_parts(encoder: TdeEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert encoder.module.topics is not None
    sentences = [*TEXTS, "fox", *TEXTS[::-1]]
    at_once = encoder.module.topics(sentences, TEXTS[0])
    monkeypatch.setattr(tde_layers, "_SENTENCES_AT_ONCE", 3)
    torch.testing.assert_close(encoder.module.topics(sentences, TEXTS[0]), at_once)


def test_without_topics_vectors_are_means_of_states(make: Make, documents: list[Document]) -> None:
    plain = make(replace(CONFIG, n_topics=0))
    assert (plain.width, plain.module.topics) == (32, None)
    encoded = plain.encode(documents[:1])[0]
    ids = [ids for ids, _ in plain.backbone.tokenizer.tokenize(sentences_of(plain, documents[0]))]
    states = plain.backbone.encode(ids, 64)
    np.testing.assert_allclose(encoded.chunks, states, atol=1e-6)
    np.testing.assert_allclose(encoded.document, states.mean(0) / np.linalg.norm(states.mean(0)), atol=1e-6)


def test_the_paper_variant_reads_the_first_token(make: Make, documents: list[Document]) -> None:
    assert TdeConfig(Variant.PAPER).pooling is Pooling.CLS
    assert TdeConfig(Variant.FIXED).pooling is Pooling.MEAN
    paper = make(replace(CONFIG, pooling=Pooling.CLS, n_topics=0))
    segmented = paper.segment(documents[0])
    ids, mask = paper.backbone.tokenizer.pad(segmented.token_ids)
    with torch.no_grad():
        first = paper.backbone.model(input_ids=ids, attention_mask=mask.long())[0][:, 0]
    np.testing.assert_allclose(paper.encode(documents[:1])[0].chunks, normalize(first, dim=-1).numpy(), atol=1e-5)


def test_the_paper_variant_reads_every_sentence_by_itself(encoder: TdeEncoder, documents: list[Document]) -> None:
    assert sentences_of(encoder, documents[0]) == [
        "The quick brown fox jumps over the lazy dog.",
        "A dark house by the river bank!",
        "Search finds it.",
    ]


def test_the_fixed_variant_reads_short_sentences_with_a_neighbour(make: Make) -> None:
    fixed = make(replace(CONFIG, variant=Variant.FIXED))
    document = make_document("d", "Model\n\nThe search finds every chunk of a long document. The fox.")
    assert sentences_of(fixed, document) == [document.text]
    first, second = "Model\n\nThe search finds every chunk of a long document.", "The old red dog was brown and quick."
    assert sentences_of(fixed, make_document("d", f"{first} {second}")) == [first, second]


@torch.no_grad()
def test_the_pair_head_reads_both_texts_their_difference_and_product(
    encoder: TdeEncoder, documents: list[Document]
) -> None:
    one, *others = (encoded.document for encoded in encoder.encode(documents))
    first, _, _, last = encoder.module.head.layers
    for other, probability in zip(others, encoder.match_probability(one, np.stack(others)), strict=True):
        h1, h2 = (torch.from_numpy(h) * 38**0.5 for h in (one, other))
        logits = last(torch.relu(first(torch.cat([h1, h2, h1 - h2, h1 * h2]))))
        assert probability == pytest.approx(logits.softmax(0)[1].item(), abs=1e-6)
        assert encoder.match_probability(one, other) == pytest.approx(probability, abs=1e-6)


def test_the_pair_head_is_saved_and_no_part_of_the_fingerprint(
    make: Make, documents: list[Document], tmp_path: Path
) -> None:
    encoder = make()
    before = encoder.fingerprint
    with torch.no_grad():
        encoder.module.head.layers[0].bias.add_(1)
    assert encoder.fingerprint == before
    encoder.save_pretrained(tmp_path)
    again = load_trainable(str(tmp_path), device="cpu", dtype=torch.float32)
    assert isinstance(again, TdeEncoder)
    h = encoder.encode(documents)[0].document
    assert again.match_probability(h, h) == encoder.match_probability(h, h)


def test_vectors_of_another_width_are_refused_by_the_pair_head(encoder: TdeEncoder) -> None:
    with pytest.raises(EncoderError) as raised:
        encoder.match_probability(np.zeros(38, np.float32), np.zeros((4, 7), np.float32))
    assert str(raised.value) == "a vector is 7 wide, those of this encoder 38; encode with it"


def test_a_sentence_without_room_is_refused(make: Make) -> None:
    with pytest.raises(EncoderError) as raised:
        make(replace(CONFIG, sentence_tokens=2))
    assert str(raised.value) == "sentence_tokens is 2, the tokenizer adds 2 of its own; give at least 3"


@pytest.mark.parametrize(
    ("ends", "capacity", "shortest", "expected"),
    [
        ([5, 9, 20], 12, 1, [(0, 5), (5, 9), (9, 20)]),
        ([5, 9, 20], 12, 5, [(0, 5), (5, 9), (9, 20)]),  # 4 and 11 do not fit together
        ([5, 9, 16], 12, 5, [(0, 5), (5, 16)]),
        ([2, 4, 6, 12], 8, 5, [(0, 6), (6, 12)]),
        ([6, 8], 8, 5, [(0, 8)]),  # the last sentence joins the one before it
        ([7, 9], 8, 5, [(0, 7), (7, 9)]),
        ([25], 12, 5, [(0, 8), (8, 16), (16, 25)]),
        ([13, 15], 12, 5, [(0, 6), (6, 13), (13, 15)]),
        ([], 12, 5, []),
    ],
)
def test_windows_are_sentences(ends: list[int], capacity: int, shortest: int, expected: list[tuple[int, int]]) -> None:
    windows = sentence_windows(ends, capacity, shortest=shortest)
    assert [(window.first, window.stop) for window in windows] == expected


@given(st.lists(st.integers(1, 40)), st.integers(1, 30), st.integers(1, 10))
def test_windows_hold_every_token_once_and_fit(lengths: list[int], capacity: int, shortest: int) -> None:
    ends = np.cumsum(lengths, dtype=int).tolist()
    windows = sentence_windows(ends, capacity, shortest=shortest)
    assert [at for window in windows for at in range(window.first, window.stop)] == list(range(sum(lengths)))
    assert all(0 < window.stop - window.first <= capacity for window in windows)
    if shortest == 1:
        cut = {end for end in ends} | {window.stop for window in windows}
        assert {window.stop for window in windows} == cut  # every sentence ends a window
