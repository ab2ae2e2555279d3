"""What a peer is asked to do: build from documents, open what it kept, search with a whole document."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.systems import Ranking, Settings
from engine.document import Document


@dataclass(frozen=True)
class PeerConfig:
    """What all peers of a run have in common: weights, precision, threads."""

    encoder: str  # what `load_encoder` takes; ours is asked for by this name
    backbone: Path  # the folder of its weights, which every other peer loads
    label: str  # of the weights, name@sha256
    pooling: str  # "mean" or "cls"
    max_tokens: int  # that it reads at once, special ones counted
    n_special: int  # of a sequence
    width: int  # of its vectors
    dtype: str  # of the weights in memory, as torch names it
    threads: int
    window_tokens: int = 256  # of a chunk, special ones counted: what all-MiniLM-L6-v2's own configuration cuts at
    late_interaction: Path | None = None  # a trained late-interaction model, in place of the backbone's tokens


class Peer(Protocol):
    """A program that finds documents, driven through its public interface; a `System` once it is open.

    Its constructor loads the encoder, so that building and searching are timed without that.
    """

    @property
    def name(self) -> str:
        """Short and lower case."""

    @property
    def encoder(self) -> str:
        """The weights as name@sha256."""

    @property
    def settings(self) -> Settings:
        """What is needed, beside documents and encoder, to get the same ranking again."""

    @property
    def reads(self) -> int | None:
        """Tokens that it reads of a document at most, special ones left out; None for all of them."""

    @property
    def keeps_text(self) -> bool:
        """Whether what it keeps on disk holds the documents' text."""

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        """Read a stream of documents once, and leave all that a search needs in an empty folder."""

    def open(self, folder: Path) -> None:
        """Make ready to search what `build` left, in this process or another."""

    def search(self, query: Document, k: int) -> Ranking:
        """At most `k` targets for a whole document, best first; one with the query's own doc_id is left out."""
