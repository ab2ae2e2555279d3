"""The parameters of a plain BERT, read without transformers, whose import takes longer than a query.

It reads only files for which the result is certain to equal that of transformers. Other files, and damaged ones, are
left to transformers, which reports the fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

_FLOATS = ("F16", "BF16", "F32")
_SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
# Entries of config.json that change hidden states, with the only values read here, which are also the defaults.
_PLAIN = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}


@dataclass(frozen=True, slots=True)
class BertSizes:
    """The entries of config.json that hidden states depend on, under the names of transformers."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float
    model_type: str = "bert"


class PlainBert(nn.Module):
    """The parameters of a BERT, named as in `BertModel` of transformers.

    It has no forward pass of its own; `engine.encoders.backbone.cpu_bert.CpuBert` reads it.
    """

    embeddings: Any
    encoder: Any

    def __init__(self, config: BertSizes, weights: Mapping[str, Tensor]) -> None:
        """Take tensors by their names, layers in order."""
        super().__init__()
        self.config = config
        for name, value in weights.items():
            *path, own = name.split(".")
            node: Any = self
            for part in path:
                if part not in node._modules:
                    node.add_module(part, nn.ModuleList() if part == "layer" else nn.Module())
                node = getattr(node, part)
                if part == "LayerNorm":
                    node.eps = config.layer_norm_eps
            node.register_parameter(own, nn.Parameter(value))

    def get_input_embeddings(self) -> Any:  # noqa: ANN401
        """The module with the word embeddings as `weight`, as in a model of transformers."""
        return self.embeddings.word_embeddings


def read_bert(folder: Path, description: Mapping[str, Any], dtype: torch.dtype) -> PlainBert | None:
    """Read the parameters of a BERT.

    Args:
        folder: with model.safetensors.
        description: its config.json.
        dtype: of the parameters in memory.

    Returns:
        The model; None where config.json describes more than a plain BERT, where it does not fit the file, or where
        the file lacks the pooler, which transformers then makes from random numbers.
    """
    config = _sizes(description)
    if config is None:
        return None
    try:
        with safe_open(folder / "model.safetensors", framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            if config.num_hidden_layers > len(slices):
                return None
            want = _shapes(config)
            found = {name: tuple(one.get_shape()) for name, one in slices.items()}
            is_known = all(one.get_dtype() in _FLOATS for one in slices.values())
            if found != want or not is_known or (file.metadata() or {}).get("format") != "pt":
                return None
            weights = {name: file.get_tensor(name).to(dtype, copy=True) for name in want}
    except (OSError, SafetensorError):
        return None
    return PlainBert(config, weights).eval()


def _sizes(description: Mapping[str, Any]) -> BertSizes | None:
    sizes: dict[str, Any] = {name: description.get(name) for name in _SIZES}
    if any(type(size) is not int or size < 1 for size in sizes.values()):
        return None
    epsilon = description.get("layer_norm_eps", 1e-12)
    padding = description.get("pad_token_id", 0)
    is_plain = (
        description.get("model_type") == "bert"
        and all(description.get(name, value) == value for name, value in _PLAIN.items())
        and type(epsilon) is float
        and 0 < epsilon < 1
        and type(padding) is int
        and 0 <= padding < description["vocab_size"]
        and description["hidden_size"] % description["num_attention_heads"] == 0
    )
    return BertSizes(**sizes, layer_norm_eps=epsilon) if is_plain else None


def _shapes(config: BertSizes) -> dict[str, tuple[int, ...]]:
    """Shapes of all parameters by name, layers in order."""
    width, inner = config.hidden_size, config.intermediate_size
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (config.vocab_size, width),
        "embeddings.position_embeddings.weight": (config.max_position_embeddings, width),
        "embeddings.token_type_embeddings.weight": (config.type_vocab_size, width),
    }
    layer = {
        "attention.self.query": (width, width),
        "attention.self.key": (width, width),
        "attention.self.value": (width, width),
        "attention.output.dense": (width, width),
        "attention.output.LayerNorm": (width,),
        "intermediate.dense": (inner, width),
        "output.dense": (width, inner),
        "output.LayerNorm": (width,),
    }
    parts: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (width,)}
    for number in range(config.num_hidden_layers):
        parts |= {f"encoder.layer.{number}.{name}": shape for name, shape in layer.items()}
    parts["pooler.dense"] = (width, width)
    for name, shape in parts.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return shapes
