"""The trained encoders of the papers and of this project by name, each as a recipe; values only, no training.

Sizes are those of the papers unless stated otherwise. Learning rates of new layers are our choice: the papers train
for 100,000 steps (SMITH) or tens of epochs (CoLDE), while a budget here is some hundred steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from benchmarks.pairs.encoders import Comparison, Recipe
from engine.encoders.files import parse_json, resolve_backbone
from engine.errors import EncoderError, TrainingError
from engine.training.fine_tuning import FineTuningSettings, Loss
from engine.training.masked_words import Objective
from engine.training.section_contrast import ContrastSettings
from engine.training.text_pairs import BACKBONE_RATE, HEAD_RATE, TextPairsSettings
from indexer.training.start import Kind, NewEncoder, Start

_BACKBONE_RATE = 3e-5
_BERT_RATE = 5e-5  # SMITH, section 5.2.3, and the code of CoLDE
_NEW_RATE = 3e-4
_HEAD_RATE = 1e-3
_BLOCK, _SHORT_BLOCK = 32, 128  # tokens of a block of SMITH, special tokens counted; SMITH-Short reads four of 128
_GRAPH_TOKENS = 512  # of a document: 32 pairs through a MiniLM need 7.3 GB, or 2.2 GB with recomputed layers
# Tokens of a chunk of a CoLDE. The published 510 are 512 with special tokens; a stretch of 1,536 tokens has
# only three such chunks, and a section one.
_COLDE_CHUNK = 126
_BERT_SIZES = {  # names of sizes of a SMITH, and the names in the configuration of a BERT
    "width": "hidden_size",
    "sentence_layers": "num_hidden_layers",
    "sentence_heads": "num_attention_heads",
    "sentence_ffn": "intermediate_size",
    "sentence_positions": "max_position_embeddings",
}
_BCE = FineTuningSettings(losses={Loss.BCE: 1.0})


def recipe(name: str, encoder: str, training_tokens: int, sizes: Mapping[str, str] | None = None) -> Recipe:
    """A recipe of `RECIPES`."""
    made = RECIPES[name](encoder, training_tokens)
    if not sizes:
        return made
    if made.start.new is None:
        raise TrainingError(f"{name} makes no new encoder, so that {', '.join(sizes)} cannot be set; leave --size out")
    new = replace(made.start.new, sizes={**made.start.new.sizes, **sizes})
    return replace(made, start=replace(made.start, new=new))


def _fine_tuned(encoder: str, _training_tokens: int) -> Recipe:
    losses = FineTuningSettings(losses={Loss.DOCUMENT: 1.0})
    return Recipe(Start(encoder), losses, Comparison.COSINE, _BACKBONE_RATE)


def _smith(kind: Kind, block: int, pretraining: frozenset[Objective], encoder: str, _training_tokens: int) -> Recipe:
    """The backbone reads the sentence blocks; the document layers are new, and as wide.

    In the paper BERT-base reads the blocks of SMITH-Short, and the sentence encoders of the other SMITHs are pretrained
    from random parameters. Here every SMITH begins with the same parameters as its rivals.
    """
    folder = resolve_backbone(encoder)
    config = parse_json(folder / "config.json")
    if not isinstance(config, dict) or config.get("model_type") != "bert":
        raise EncoderError(f"{folder} holds no BERT, which SMITH reads sentences by; name one: --encoder BERT")
    sizes = {size: str(config.get(name)) for size, name in _BERT_SIZES.items()}
    sizes["block_tokens"] = str(min(block, int(config.get("max_position_embeddings") or block)))
    start = Start(encoder, NewEncoder(kind, sizes=sizes))
    return Recipe(start, _BCE, Comparison.COSINE, _BERT_RATE, _NEW_RATE, pretraining=pretraining)


def _colde(sizes: Mapping[str, str], learned: ContrastSettings, encoder: str, training_tokens: int) -> Recipe:
    max_chunks = max(1, training_tokens // (int(sizes.get("n_sections", "2")) * (_COLDE_CHUNK + 2)))
    own = {"chunk_tokens": str(_COLDE_CHUNK), "max_chunks": str(max_chunks), **sizes}
    # All chunks of a batch have a graph at once; for long documents it fits in memory only with recomputed layers.
    start = Start(encoder, NewEncoder(Kind.COLDE, sizes=own), checkpoint_gradients=training_tokens > _GRAPH_TOKENS)
    return Recipe(start, learned, Comparison.COSINE, _BERT_RATE, _HEAD_RATE)


def _tde(sizes: Mapping[str, str], encoder: str, _training_tokens: int) -> Recipe:
    start = Start(encoder, NewEncoder(Kind.TDE, sizes=sizes))
    return Recipe(start, TextPairsSettings(), Comparison.HEAD, BACKBONE_RATE, HEAD_RATE)


_PLACELESS = {"n_sections": "1", "without_positions": "true"}

RECIPES: Mapping[str, Callable[[str, int], Recipe]] = {
    "cosine-infonce": _fine_tuned,
    "smith-np": partial(_smith, Kind.SMITH, _BLOCK, frozenset()),
    "smith-wp": partial(_smith, Kind.SMITH, _BLOCK, frozenset({Objective.WORDS})),
    "smith-wp-sp": partial(_smith, Kind.SMITH, _BLOCK, frozenset(Objective)),
    "smith-short": partial(_smith, Kind.SMITH_SHORT, _SHORT_BLOCK, frozenset()),
    "colde": partial(_colde, {}, ContrastSettings()),
    "colde-without-aug": partial(_colde, _PLACELESS, ContrastSettings()),
    "colde-without-lstm": partial(_colde, {"without_lstm": "true"}, ContrastSettings()),
    "colde-without-cl": partial(_colde, _PLACELESS, ContrastSettings(contrastive=False)),
    "tde": partial(_tde, {}),
    "tde-without-topics": partial(_tde, {"n_topics": "0"}),
}
