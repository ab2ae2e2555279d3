"""The configuration of a SMITH: sizes, variants, the named configurations of the paper. Values; no parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

from engine.encoders.encoder import Variant
from engine.errors import EncoderError, EngineError
from engine.settings import COUNT, SHARE, Checked, Range, setting

_MOST_LAYERS = 128


class Combination(StrEnum):
    """The vector concatenated with the document encoder's output (section 4.1.4 of the paper)."""

    NORMAL = "normal"  # nothing
    SUM = "sum"  # the sum of the block vectors
    MEAN = "mean"  # the mean of the block vectors
    ATTENTION = "attention"  # the sum of the block vectors, weighted by a learned attention


@dataclass(frozen=True)
class SmithConfig(Checked):
    """Sizes and choices of one SMITH; by default the `fixed` one.

    `variant` determines the choices without a field of their own: the paper and the
    released code end a block with two [SEP], cut off a sentence that is longer than a
    block, and read the first `max_blocks` blocks of a document; `fixed` ends it with one,
    goes on with a long sentence in the blocks that follow, and reads every block,
    `max_blocks` of them in one pass. `released` has a ReLU after the last dense layer.

    In every variant both documents of a pair go through the same layers, as the paper says. The released
    code gives the last layer of each side parameters of its own. That is not repeated in `released`: an
    index holds one vector of each document, which is a query in one search and a target in another, and
    a document would not match itself.
    """

    error: ClassVar[type[EngineError]] = EncoderError
    variant: Variant = Variant.FIXED
    block_tokens: int = setting(32, "tokens of a block, special ones counted", COUNT)
    max_blocks: int = setting(48, "most blocks that the document encoder reads together", COUNT)
    width: int = setting(256, "width of a state; a vector is as wide, or twice as wide where it is combined", COUNT)
    sentence_layers: int = setting(6, "layers that read a block", Range(least=1, most=_MOST_LAYERS))
    sentence_heads: int = setting(4, "heads of such a layer", COUNT)
    sentence_ffn: int = setting(512, "inner width of such a layer: twice the width, not four times", COUNT)
    sentence_positions: int = setting(256, "positions of tokens in a block", COUNT)
    document_layers: int = setting(3, "layers that read the blocks; 0 in MatchBERT", Range(least=0, most=_MOST_LAYERS))
    document_heads: int = setting(4, "heads of such a layer", COUNT)
    document_ffn: int = setting(512, "inner width of such a layer", COUNT)
    document_positions: int = setting(128, "positions of blocks", COUNT)
    combination: Combination = setting(
        Combination.NORMAL, "beside the output of the document encoder: normal (nothing), sum, mean, attention"
    )
    dropout: float = setting(0.1, "share of values that are dropped", SHARE)

    def __post_init__(self) -> None:
        super().__post_init__()
        for heads in ("sentence_heads", "document_heads"):
            if self.width % getattr(self, heads):
                raise EncoderError(
                    f"width {self.width} is no multiple of {heads} {getattr(self, heads)}; choose one that divides it"
                )
        for length, positions in (("block_tokens", "sentence_positions"), ("max_blocks", "document_positions")):
            if getattr(self, length) > getattr(self, positions):
                raise EncoderError(
                    f"{length} {getattr(self, length)} is more than {positions} {getattr(self, positions)}; "
                    f"lower {length}, or raise {positions}"
                )
        if self.capacity < 1:
            raise EncoderError(
                f"block_tokens {self.block_tokens} leaves no room beside {1 + self.n_separators} special tokens; "
                "raise block_tokens"
            )
        if not self.is_hierarchical and (self.max_blocks != 1 or self.combination is not Combination.NORMAL):
            raise EncoderError(
                f"without document layers there is nothing above a block: max_blocks is {self.max_blocks} and "
                f"combination {self.combination.value!r}; set them to 1 and 'normal'"
            )

    @property
    def is_hierarchical(self) -> bool:
        """True where a document encoder reads the blocks together."""
        return self.document_layers > 0

    @property
    def n_separators(self) -> int:
        """The number of [SEP] that end a block; the released code writes two."""
        return 1 if self.variant is Variant.FIXED or not self.is_hierarchical else 2

    @property
    def capacity(self) -> int:
        """Most tokens of text in a block, [CLS] and [SEP] not counted."""
        return self.block_tokens - 1 - self.n_separators

    @property
    def vector_width(self) -> int:
        """D, the length of a vector."""
        return self.width if self.combination is Combination.NORMAL else 2 * self.width


_BERT_BASE: Mapping[str, Any] = {
    "width": 768,
    "sentence_layers": 12,
    "sentence_heads": 12,
    "sentence_ffn": 3072,
    "sentence_positions": 512,
}


def smith(variant: Variant = Variant.FIXED) -> SmithConfig:
    """SMITH: 1,536 positions, six sentence layers (four in the published checkpoint), three document layers.

    SMITH-NP, -WP and -WP+SP have this configuration; they differ in their pretraining.
    """
    return SmithConfig(variant=variant, sentence_layers=4 if variant is Variant.RELEASED else 6)


def smith_short(variant: Variant = Variant.FIXED) -> SmithConfig:
    """SMITH-Short: BERT-base reads the sentences, 4 blocks of 128 tokens; 8 of 32 in the released configuration."""
    n_tokens, n_blocks = (32, 8) if variant is Variant.RELEASED else (128, 4)
    return replace(smith(variant), block_tokens=n_tokens, max_blocks=n_blocks, **_BERT_BASE)


def match_bert(variant: Variant = Variant.FIXED, *, block_tokens: int = 256) -> SmithConfig:
    """MatchBERT: the pooled output of BERT-base over one block.

    The paper reads the first 256 tokens of a document (at most 512), and so do
    `paper` and `released`; `fixed` reads all of it, a block at a time.
    """
    return SmithConfig(variant=variant, block_tokens=block_tokens, max_blocks=1, document_layers=0, **_BERT_BASE)
