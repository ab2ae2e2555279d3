"""The properties without which variants of a comparison do not differ on a document; other documents are left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from benchmarks.systems import Settings
from engine.document import Document
from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.backbone.weights import resolve_backbone
from engine.encoders.chunking import chunk_document
from engine.encoders.smith.blocks import BlockFilling
from engine.encoders.smith.config import Overflow, SmithConfig
from engine.encoders.variant import Variant
from engine.errors import DocumentError


class Need(Protocol):
    """A minimum that a document must have."""

    @property
    def settings(self) -> Settings:
        """The settings for records."""

    @property
    def text(self) -> str:
        """The need for people, such as "at least 3 sections"."""

    def is_met(self, document: Document, encoder: str) -> bool:
        """Whether the part of a document that is read has enough; `encoder` is the backbone with the tokenizer."""


@dataclass(frozen=True)
class Sections:
    """The least number of sections with a word, and of words in all, so that there are units to shuffle."""

    n: int
    words: int  # enough for several chunks to shuffle

    @property
    def settings(self) -> Settings:
        """See `Need.settings`."""
        return {"least_sections": self.n, "least_words": self.words}

    @property
    def text(self) -> str:
        """See `Need.text`."""
        return f"at least {self.n} sections and {self.words:,} words"

    def is_met(self, document: Document, encoder: str) -> bool:
        """See `Need.is_met`."""
        sections = [document.text[one.start : one.stop] for one in document.sections]
        return sum(map(bool, map(str.strip, sections))) >= self.n and len(document.text.split()) >= self.words


@dataclass(frozen=True)
class Blocks:
    """The least number of blocks of the published SMITH; a shorter document is encoded equally for more blocks."""

    n: int
    block_tokens: int

    @property
    def settings(self) -> Settings:
        """See `Need.settings`."""
        return {"least_blocks": self.n}

    @property
    def text(self) -> str:
        """See `Need.text`."""
        return f"at least {self.n} blocks of {self.block_tokens} tokens"

    def is_met(self, document: Document, encoder: str) -> bool:
        """See `Need.is_met`."""
        config = SmithConfig(
            variant=Variant.PAPER,
            block_tokens=self.block_tokens,
            max_blocks=self.n,
            document_positions=self.n,
            overflow=Overflow.TRUNCATE,
        )
        try:
            return len(chunk_document(document, _tokenizer(encoder), BlockFilling(config)).chunks) == self.n
        except DocumentError:
            return False


@lru_cache(maxsize=1)
def _tokenizer(encoder: str) -> Tokenizer:
    return Tokenizer(resolve_backbone(encoder))
