"""Loading of encoders by name and from saved folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.encoders.cpu import WINDOW_TOKENS, CpuEncoder, MeanConfig
from engine.encoders.encoder import Pooling
from engine.encoders.files import BUNDLED_NAME, CONFIG_FILE
from engine.encoders.loading import load_encoder, load_trainable
from engine.encoders.mean import MeanEncoder
from engine.errors import EncoderError
from tests.fakes import make_document


def test_a_plain_backbone_is_pooled_by_means(bert_folder: Path) -> None:
    encoder = load_encoder(str(bert_folder), device="cpu")
    assert isinstance(encoder, CpuEncoder)
    assert (encoder.name, encoder.width) == (str(bert_folder), 32)
    assert encoder.config == MeanConfig(min(WINDOW_TOKENS, 46), Pooling.MEAN)


@pytest.mark.slow
def test_the_bundled_encoder_is_the_default_and_accurate_at_the_default_precision() -> None:
    usual, precise = load_encoder(device="cpu"), load_trainable(BUNDLED_NAME, device="cpu", dtype=torch.float32)
    documents = [make_document("d", "Whole documents are asked for; sections of theirs meet sections of ours. " * 20)]
    one, other = usual.encode(documents)[0], precise.encode(documents)[0]
    assert (usual.name, usual.width, one.coverage.share) == (BUNDLED_NAME, 384, 1)
    assert usual.fingerprint == precise.fingerprint
    assert (np.einsum("cd,cd->c", one.chunks, other.chunks) > 0.999).all()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"encoder": "mean"}'])
def test_a_damaged_configuration_is_an_encoder_error(mean_encoder: MeanEncoder, tmp_path: Path, content: str) -> None:
    mean_encoder.save_pretrained(tmp_path)
    (tmp_path / CONFIG_FILE).write_text(content)
    with pytest.raises(EncoderError, match=CONFIG_FILE):
        load_encoder(str(tmp_path), device="cpu")


@pytest.mark.parametrize("device", ["tpu", "gpu", "", "CPU", "cuda:x", "cuda:-1", "cuda:", "cpu:zero"])
def test_an_unknown_device_is_refused(bert_folder: Path, device: str) -> None:
    with pytest.raises(EncoderError) as raised:
        load_encoder(str(bert_folder), device=device)
    told = f"device {device!r} is none of cpu, cuda, cuda:N; see what there is: longmatch doctor"
    assert str(raised.value) == told


def test_a_gpu_that_is_not_there_is_refused(bert_folder: Path) -> None:
    number = torch.cuda.device_count()
    with pytest.raises(EncoderError) as raised:
        load_encoder(str(bert_folder), device=f"cuda:{number}")
    assert str(raised.value) == (
        f"device 'cuda:{number}' was requested, torch {torch.__version__} sees {number} GPUs; "
        "use --device cpu, or see longmatch doctor --deep"
    )
