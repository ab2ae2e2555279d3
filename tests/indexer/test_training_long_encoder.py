"""A BERT with the attention of Longformer or BigBird."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.loading import load_trainable
from engine.errors import EncoderError, TrainingError
from indexer.training.long_encoder import LongAttention, LongSizes, long_backbone
from indexer.training.start import Kind, NewEncoder, make_encoder
from tests.fakes import make_document

SIZES = LongSizes(max_tokens=96, window=8, block_tokens=4, random_blocks=1)


@pytest.mark.parametrize("attention", LongAttention)
def test_a_text_that_the_attention_covers_has_the_vector_of_the_bert(
    attention: LongAttention, bert_folder: Path
) -> None:
    bert = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    long = long_backbone(bert_folder, attention, SIZES, device="cpu")
    short = [list(range(5, 9)), [7]]  # with special tokens, half a window
    np.testing.assert_allclose(long.encode(short, 100), bert.encode(short, 100), atol=1e-5)


@pytest.mark.parametrize("attention", LongAttention)
def test_positions_are_those_of_the_bert_repeated(attention: LongAttention, bert_folder: Path) -> None:
    bert = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    long = long_backbone(bert_folder, attention, SIZES, device="cpu")
    assert (bert.max_tokens, long.max_tokens) == (46, 94)
    own = bert.model.embeddings.position_embeddings.weight
    rows = long.model.embeddings.position_embeddings.weight[-96:]
    torch.testing.assert_close(rows, torch.cat([own, own]))
    assert np.isfinite(long.encode([list(range(5, 90))], 100)).all()


@pytest.mark.parametrize("attention", LongAttention)
def test_vectors_do_not_depend_on_padding(attention: LongAttention, bert_folder: Path) -> None:
    long = long_backbone(bert_folder, attention, SIZES, device="cpu")
    sequences = [list(range(5, 5 + length)) for length in (3, 20, 45, 62)]
    alone = np.concatenate([long.encode([sequence], 1000) for sequence in sequences])
    np.testing.assert_allclose(long.encode(sequences, 1000), alone, atol=1e-5)


def test_a_new_longformer_reads_whole_sections_and_is_saved_as_any_encoder(bert_folder: Path, tmp_path: Path) -> None:
    new = NewEncoder(Kind.LONGFORMER, sizes={"max_tokens": "96", "window": "8"})
    made = make_encoder(new, str(bert_folder), lambda: (), seed=0, device="cpu")
    assert made.taken == " (with the attention of longformer, positions repeated)"
    document = make_document("d", [("", "the old red fox " * 16)])
    made.encoder.save_pretrained(tmp_path)
    kept = made.encoder.encode([document])[0]
    del made
    gc.collect()
    read = load_trainable(str(tmp_path), device="cpu", dtype=torch.float32).encode([document])[0]
    assert [span.n_tokens for span in read.chunk_spans] == [64]
    np.testing.assert_allclose(read.document, kept.document, atol=1e-6)


def test_what_is_no_bert_and_sizes_out_of_range_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    long_backbone(bert_folder, LongAttention.BIGBIRD, SIZES).save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match="holds a big_bird; a longformer is made from a BERT"):
        long_backbone(tmp_path, LongAttention.LONGFORMER, SIZES)
    with pytest.raises(EncoderError, match="a window of 7 tokens has no equal halves"):
        LongSizes(window=7)
    with pytest.raises(EncoderError, match="random_blocks 0; give at least 16, 1 and 1"):
        LongSizes(random_blocks=0)
    with pytest.raises(TrainingError, match="longformer has no size 'layers'; it has max_tokens, window"):
        make_encoder(
            NewEncoder(Kind.LONGFORMER, sizes={"layers": "2"}), str(bert_folder), lambda: (), seed=0, device=None
        )
