"""What a recipe is: where the sources of a corpus are, which of their files count, and how they become documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from benchmarks.fetching.recorded import CorpusDocument, Recorded

Files = Mapping[str, bytes]  # by the key that the recipe gives them


@dataclass(frozen=True)
class Source:
    """One download."""

    file: str  # name of the downloaded file
    url: str
    patterns: tuple[str, ...]  # names of files or folders, with "*", that hold the same
    is_optional: bool = False  # in a folder of downloads another source may hold what this one does


@dataclass(frozen=True)
class Recipe:
    """How one corpus is rebuilt."""

    name: str
    sources: tuple[Source, ...]
    key: Callable[[str], str]  # the name of a member of an archive to its key, "" where it is not used
    is_text: Callable[[str], bool]  # whether the file of a key holds a document rather than metadata
    documents: Callable[[Recorded, Files], Iterator[CorpusDocument]]  # those that the files hold, in recorded order
    queries: Callable[[Recorded, Files], Iterator[CorpusDocument]] | None = None  # None where queries are documents
    given: tuple[str, ...] = ()  # metadata that ships, since no source file holds it
    left_out: str = ""  # what the recorded folder has besides, as a sentence


def github_archive(repository: str, commit: str) -> Source:
    """The archive of a public repository at a commit."""
    name = repository.partition("/")[2]
    return Source(
        f"{name}-{commit[:12]}.tar.gz",
        f"https://codeload.github.com/{repository}/tar.gz/{commit}",
        (f"{name}-*", name),
    )


def corpus_document(
    doc_id: str, title: str, sections: Iterator[tuple[str, str]], meta: Mapping[str, object]
) -> CorpusDocument:
    """One line of a corpus."""
    parts = [{"heading": heading, "text": text} for heading, text in sections]
    return {"id": doc_id, "title": title, "sections": parts, "meta": dict(meta)}
