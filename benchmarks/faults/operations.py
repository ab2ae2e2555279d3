"""The operations that are interrupted: all that change an index, on indexes of up to twenty synthetic documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import indexer.generation.reference as drawing
from benchmarks.faults.encoder import WordEncoder
from benchmarks.synthetic import SHORT, documents
from engine.document import Document
from engine.index import Index
from engine.search.allowance import Allowance
from engine.store.presence import stored_sources
from indexer.building.builder import EncodeNow, build
from indexer.building.reencoding import reencode
from indexer.generation.compaction import compact
from indexer.generation.reference import rebase
from indexer.partitions.splitting import partition
from indexer.upkeep.backup import backup, restore
from indexer.upkeep.removal import remove
from indexer.upkeep.repair import repair

INDEX, PARTS, FILE = "x.lm", "parts.lm", "x.backup"
ENCODER = WordEncoder()
IVF = "IVF4,Flat"
_ALL = list(documents(SHORT, 20))
_REMOVED = [document.doc_id for document in _ALL[2:12:3]]
_FLOOR = 0.3  # recall floor; random vectors are separated badly
_FIRST = 4  # documents with vectors before the first query
_ON_DEMAND = Allowance(candidates=6)


@dataclass(frozen=True)
class Operation:
    """A command that may be interrupted and run again."""

    name: str
    begin: Callable[[Path], None]  # makes the state before the operation, in a folder
    act: Callable[[Path], object]  # runs the command; a second run finishes it
    index: str = INDEX  # whose contents are compared
    keeps: bool = False  # documents that are there unchanged keep their ids and those of their chunks


def _index(
    folder: Path, which: Iterable[Document], encode: EncodeNow = "all", *, factory: str = "Flat", name: str = INDEX,
    prune: bool = False,
) -> None:  # fmt: skip
    encoder = None if encode == "none" else ENCODER
    build(
        folder / name, which, encoder=encoder, encode=encode, factory=factory, recall_floor=_FLOOR, language="english",
        prune=prune,
    )  # fmt: skip


def _nothing(_folder: Path) -> None:
    return


def _words(folder: Path) -> None:
    _index(folder, _ALL[:9], "none")
    _index(folder, _ALL[9:14], "none")


def _vectors(folder: Path) -> None:
    _index(folder, _ALL[:9])
    _index(folder, _ALL[9:14])


def _ivf(folder: Path) -> None:
    _index(folder, _ALL[:14], factory=IVF)


def _later(folder: Path) -> None:
    _index(folder, _ALL[:14], "none")
    _index(folder, _ALL[:14])


def _sample(folder: Path) -> None:
    """Words of all documents and vectors of a few, as for a corpus that is too large to encode at once."""
    drawing.ALL_TOKENS, drawing.FIRST_DOCUMENTS, drawing.FEWEST_FIRST = 0, _FIRST, _FIRST
    _index(folder, _ALL[:14], "later")


def _query_and_encode(folder: Path) -> None:
    for query in _ALL[:2]:
        with Index.open(folder / INDEX, encoder=ENCODER) as index:
            index.search_id(query.doc_id, allowance=_ON_DEMAND)
    _index(folder, [])


def _update(folder: Path) -> None:
    """Change the metadata of documents, and the text of every second one; leave some out, and add others."""
    changed = [replace(one, metadata={**one.metadata, "year": 1990 + at}) for at, one in enumerate(_ALL[:8])]
    changed[1::2] = [replace(one, text=f"{one.text}!") for one in changed[1::2]]
    _index(folder, changed + _ALL[10:18], prune=True)


def _remove(folder: Path) -> None:
    known = {doc_id for doc_id, _ in stored_sources(folder / INDEX)}
    if present := [doc_id for doc_id in _REMOVED if doc_id in known]:
        remove(folder / INDEX, present)


def _with_removed(folder: Path) -> None:
    _vectors(folder)
    _remove(folder)


def _damaged(folder: Path) -> None:
    _ivf(folder)
    for path in [*(folder / INDEX).glob("shards/*"), *(folder / INDEX).glob("ann/*/*.faiss")]:
        path.write_bytes(path.read_bytes()[:-9])


def _partitioned(folder: Path) -> None:
    _vectors(folder)
    partition(folder / INDEX, folder / PARTS, 2)


def _split(folder: Path) -> None:
    if not (folder / PARTS).exists():
        partition(folder / INDEX, folder / PARTS, 2)


def _back_up(folder: Path) -> None:
    if not (folder / FILE).exists():
        backup(folder / INDEX, folder / FILE)


def _backed_up(folder: Path) -> None:
    _ivf(folder)
    _back_up(folder)


def _restore(folder: Path) -> None:
    if not (folder / "back.lm").exists():
        restore(folder / FILE, folder / "back.lm")


OPERATIONS = (
    Operation("index words", _nothing, _words, keeps=True),
    Operation("index vectors", _nothing, _vectors, keeps=True),
    Operation("index words, encode later", _nothing, _later, keeps=True),
    Operation("queries that encode", _sample, _query_and_encode, keeps=True),
    Operation("index under IVF", _nothing, _ivf, keeps=True),
    Operation("extend IVF", _ivf, lambda folder: _index(folder, _ALL, factory=IVF)),
    Operation("update and prune", _vectors, _update),
    Operation("remove", _vectors, _remove),
    Operation("compact", _with_removed, lambda folder: compact(folder / INDEX)),
    Operation("rebase", _with_removed, lambda folder: rebase(folder / INDEX)),
    Operation("repair", _damaged, lambda folder: repair(folder / INDEX, encode=True, encoder=ENCODER)),
    Operation(
        "encode again", _ivf, lambda folder: reencode(folder / INDEX, encoder=WordEncoder(1), recall_floor=_FLOOR)
    ),
    Operation("partition", _vectors, _split, PARTS),
    Operation("index partitions", _partitioned, lambda folder: _index(folder, _ALL, name=PARTS), PARTS),
    Operation("backup", _ivf, _back_up),
    Operation("restore", _backed_up, _restore, "back.lm"),
)
# Undamaged indexes whose copies are damaged; and operations during which a killed writer leaves an unsealed index.
ORIGINALS = {"words": _words, "vectors": _vectors, "IVF": _ivf, "partitions": _partitioned}
UNSEALED = ("index words", "update and prune", "extend IVF")
