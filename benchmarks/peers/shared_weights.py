"""Loads the parameters that all peers of a run share, by the name of an encoder; also as sentence-transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.peers.peer import PeerConfig
from benchmarks.prepare import label_of
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.backbone.hardware import default_dtype
from engine.encoders.encoder import Pooling
from engine.encoders.files import CONFIG_FILE, read_json, resolve_backbone
from engine.errors import EncoderError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer

SAME_DTYPE = "same"
DTYPES = (SAME_DTYPE, "float32", "bfloat16")


def peer_config(encoder: str, *, dtype: str, threads: int) -> PeerConfig:
    """The configuration with which peers use the parameters of an encoder of longmatch.

    Args:
        encoder: a name for `load_encoder`; it must be a backbone with pooling and no further layers, such as
            all-MiniLM-L6-v2 or a trained encoder of the kind "mean", or an `EncoderError` is raised.
        dtype: one of `DTYPES`; "same" is the default precision of longmatch on this machine.
    """
    folder = resolve_backbone(encoder)
    values = read_json(folder / CONFIG_FILE) if (folder / CONFIG_FILE).exists() else {}
    kind = values.get("encoder", "mean")
    if kind != "mean":
        raise EncoderError(
            f"encoder {encoder!r} is of the kind {kind!r}, whose layers no peer can load; peers share encoders of the "
            "kind 'mean': name one, or a backbone, as all-MiniLM-L6-v2"
        )
    backbone = Backbone(folder, device="cpu")
    return PeerConfig(
        encoder=encoder,
        backbone=folder,
        label=label_of(encoder, backbone.sha256),
        pooling=values.get("pooling", Pooling.MEAN.value),
        max_tokens=backbone.max_tokens + backbone.tokenizer.n_special,
        n_special=backbone.tokenizer.n_special,
        width=backbone.width,
        dtype=str(default_dtype("cpu")).removeprefix("torch.") if dtype == SAME_DTYPE else dtype,
        threads=threads,
    )


def transformer(config: PeerConfig, max_tokens: int) -> Transformer:
    """The backbone as the first module of sentence-transformers; `max_tokens` counts special tokens."""
    from sentence_transformers.base.modules import Transformer

    arguments = {"use_safetensors": True, "dtype": config.dtype, "local_files_only": True}
    module = Transformer(str(config.backbone), model_kwargs=arguments, processor_kwargs={"local_files_only": True})
    module.max_seq_length = min(max_tokens, config.max_tokens)
    return module


def sentence_encoder(config: PeerConfig, max_tokens: int) -> SentenceTransformer:
    """The backbone as a model of sentence-transformers that returns unit vectors."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

    first = transformer(config, max_tokens)
    pooling = PoolingModule(first.get_embedding_dimension(), config.pooling)
    return SentenceTransformer(modules=[first, pooling, Normalize()], device="cpu")
