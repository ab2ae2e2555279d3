"""Readers of the corpora of a run: folders with pairs, or documents in any form. Encodes nothing."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from engine.errors import TrainingError
from engine.readers import Unreadable
from engine.text.document import Document
from engine.training.corpus import CORPUS_FILES, TrainingCorpus, read_training_corpus
from engine.training.history import MEAN
from indexer.building.corpus import read_corpus

_OF_MANY_DOCUMENTS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


@dataclass(frozen=True)
class CorpusPath:
    """The path of a corpus, and the suffix of one of its tasks."""

    path: Path
    suffix: str = ""  # of the names of judgment files, such as "_citation"

    @classmethod
    def parse(cls, given: str | Path) -> Self:
        """Parse `PATH` or `FOLDER:SUFFIX`."""
        if Path(given).exists():
            return cls(Path(given))
        path, _, suffix = str(given).partition(":")
        return cls(Path(path), suffix)

    @property
    def is_benchmark(self) -> bool:
        """Whether it has the layout of the benchmarks; see `engine.training.corpus`."""
        return any((self.path / name).is_file() for name in CORPUS_FILES)


Given = str | Path | CorpusPath


def read_with_pairs(given: Sequence[Given], *, label: str | None, needs_pairs: bool = True) -> list[TrainingCorpus]:
    """Read folders in the layout of the benchmarks.

    Args:
        needs_pairs: refuse a corpus without pairs.

    Raises:
        TrainingError: a folder is missing or not of this layout, or has no pairs, or two have the same name.
    """
    paths = _parsed(given)
    for one in paths:
        if not one.path.is_dir():
            found = "is a file" if one.path.exists() else "does not exist"
            raise TrainingError(
                f"{one.path} {found}; pairs are read from a folder with {CORPUS_FILES[0]} and train_pairs.tsv, "
                "and --objective docsplit learns from documents alone"
            )
    corpora = [read_training_corpus(path.path, suffix=path.suffix, label=label) for path in paths]
    for one, corpus in zip(paths, corpora, strict=True):
        if needs_pairs and not corpus.pairs:
            raise TrainingError(_lacks_pairs(one))
    return _named(paths, corpora)


def _lacks_pairs(one: CorpusPath) -> str:
    others = sorted(file.stem.removeprefix("train_pairs") for file in one.path.glob("train_pairs*.tsv"))
    mend = (
        f"name one of its tasks: {one.path}:{others[0]}"
        if others and others != [""]
        else "add that file, name a metadata field (--set label=FIELD), or learn from the documents alone: "
        "--objective docsplit"
    )
    return f"{one.path} has no train_pairs{one.suffix}.tsv, so no pairs to learn from; {mend}"


def read_documents(given: Sequence[Given]) -> list[TrainingCorpus]:
    """Read documents in any form: folders of the benchmarks, with their valid judgments, or files of any format.

    Raises:
        DocumentError: a path does not exist, or has no file of a readable format.
        TrainingError: no path is given, a corpus has no readable document, or two have the same name.
    """
    paths = _parsed(given)
    # Files of one document each, such as a shell expands from a pattern, together are one corpus.
    single = [path for path in paths if path.path.is_file() and not path.path.name.endswith(_OF_MANY_DOCUMENTS)]
    paths = [path for path in paths if path not in single]
    corpora = [
        read_training_corpus(path.path, suffix=path.suffix) if path.is_benchmark else _read_loose([path.path])
        for path in paths
    ]
    if single:
        paths.append(single[0])
        corpora.append(_read_loose([one.path for one in single]))
    return _named(paths, corpora)


def _read_loose(paths: Sequence[Path]) -> TrainingCorpus:
    documents: dict[str, Document] = {}
    n_unreadable = 0
    for document in read_corpus([str(path) for path in paths]):
        if isinstance(document, Unreadable):
            n_unreadable += 1
        else:
            documents[document.doc_id] = document
    if not documents:
        raise TrainingError(f"{paths[0]} holds no readable document ({n_unreadable} were not read)")
    checksum = _checksum(documents.values())
    return TrainingCorpus(_loose_name(paths), documents, n_unreadable=n_unreadable, checksum=checksum)


def _loose_name(paths: Sequence[Path]) -> str:
    """The name of the folder, of the file without its suffixes, or of the folder of the first of several files."""
    path = paths[0].resolve()
    if len(paths) > 1:
        return path.parent.name or "documents"
    return path.name if path.is_dir() else path.name.removesuffix(".gz").rpartition(".")[0]


def _checksum(documents: Iterable[Document]) -> str:
    digest = hashlib.sha256()
    for document in documents:
        digest.update(f"{document.doc_id}\0{document.text}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:12]


def _parsed(given: Sequence[Given]) -> list[CorpusPath]:
    if not given:
        raise TrainingError("no corpus was named; name one folder at least")
    return [one if isinstance(one, CorpusPath) else CorpusPath.parse(one) for one in given]


def _named(paths: Sequence[CorpusPath], corpora: Sequence[TrainingCorpus]) -> list[TrainingCorpus]:
    """Give corpora different names, by which their indexes and validations are identified."""
    times = Counter(corpus.name for corpus in corpora)
    named = [
        replace(corpus, name=corpus.name + one.suffix) if times[corpus.name] > 1 else corpus
        for one, corpus in zip(paths, corpora, strict=True)
    ]
    times = Counter(corpus.name for corpus in named)
    for name, n in times.items():
        if n > 1:
            where = " and ".join(str(one.path) for one, corpus in zip(paths, named, strict=True) if corpus.name == name)
            raise TrainingError(f"{n} corpora have the name {name!r}: {where}; name each once, or rename a folder")
        if name == MEAN:
            raise TrainingError(f"a corpus cannot have the name {MEAN!r}, which stands for the mean of all; rename it")
    return named
