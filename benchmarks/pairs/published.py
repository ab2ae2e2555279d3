"""Pairs of published sets, as they are given out: AAN by the Long Range Arena, GWikiMatch by the authors of SMITH."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.formats import gwikimatch, pair_files
from benchmarks.formats.lines import FormatError
from benchmarks.pairs.given_pairs import GivenPairs
from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.splitting import Split
from engine.document import Document


@dataclass(frozen=True)
class PublishedPairs:
    """A set that was read."""

    given: GivenPairs
    documents: Mapping[str, Document]
    n_lost: Mapping[Split, int]  # pairs that went, for want of a text
    files: Sequence[Path]  # all that was read


def read_published(folder: Path, texts: Path) -> PublishedPairs:
    """Read the set in a folder, whichever it is.

    Args:
        folder: with `new_aan_pairs.{train,eval,test}.tsv`, which hold the texts; or with the files of GWikiMatch,
            see `benchmarks.formats.gwikimatch`.
        texts: the file of articles that GWikiMatch needs; else not looked at.

    Raises:
        FormatError: the folder holds neither, or a file cannot be read.
    """
    if pair_files.is_pair_folder(folder):
        read = pair_files.read_folder(folder)
        files = [folder / name for name in pair_files.FILES.values()]
        n_lost = {split: read.n_blank[split] for split in Split}
        return PublishedPairs(_given(folder, read.pairs), read.documents, n_lost, files)
    paths = gwikimatch.pair_files(folder)
    if not paths:
        raise FormatError(
            f"{folder} holds neither {', '.join(pair_files.FILES.values())} nor the files of GWikiMatch; name a folder "
            "of these, or a file of your own pairs"
        )
    if not texts.is_file():
        raise FormatError(
            f"{texts} is no file, and GWikiMatch holds no texts; name the file of its articles as TASK, which "
            "benchmarks/formats/gwikimatch.py tells how to make"
        )
    pairs = {split: list(gwikimatch.read_pairs(path)) for split, path in paths.items()}
    names = gwikimatch.article_names(pair for own in pairs.values() for pair in own)
    documents = gwikimatch.read_texts(texts, names)
    kept = {split: gwikimatch.with_texts(own, documents)[0] for split, own in pairs.items()}
    n_lost = {split: len(pairs[split]) - len(kept[split]) for split in Split}
    return PublishedPairs(_given(folder, kept), documents, n_lost, [texts, *paths.values()])


def _given(folder: Path, pairs: Mapping[str, Sequence[Pair]]) -> GivenPairs:
    flat = [(pair, Split(split)) for split, own in pairs.items() for pair in own]
    return GivenPairs(str(folder), [pair for pair, _ in flat], [split for _, split in flat])
