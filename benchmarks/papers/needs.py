"""What a document must have for the variants of a comparison to differ on it; documents without it are left out."""

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
    """A least number of something."""

    @property
    def settings(self) -> Settings:
        """For records."""

    @property
    def text(self) -> str:
        """For people, as "at least 3 sections"."""

    def is_met(self, document: Document, encoder: str) -> bool:
        """Whether a document has enough, as far as it is read; `encoder` is the backbone, whose tokenizer counts."""


@dataclass(frozen=True)
class Sections:
    """Sections with a word in them, and words in all: what is shuffled must be able to change places."""

    n: int
    words: int  # so many that there are several chunks to shuffle, too

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
    """Blocks of the published SMITH: a document that fills fewer is the same for every larger number of blocks."""

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
