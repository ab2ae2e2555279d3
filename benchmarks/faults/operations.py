"""The operations that are interrupted: all that change an index, on indexes of up to twenty synthetic documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import indexer.generation.reference as drawing
from benchmarks.faults.encoder import WordEncoder
from benchmarks.synthetic import SHORT, documents
from engine.index import Index
from engine.search.allowance import Allowance
from engine.store.presence import stored_sources
from engine.text.document import Document
from indexer.building.builder import EncodeNow, build
from indexer.building.reencoding import reencode
from indexer.generation.compaction import compact
from indexer.generation.reference import rebase
from indexer.partitions.splitting import partition
from indexer.upkeep.backup import backup, restore
from indexer.upkeep.removal import remove
from indexer.upkeep.repair import repair

Step: TypeAlias = Callable[[Path], object]  # in a folder

INDEX, PARTS, FILE, RESTORED = "x.lm", "parts.lm", "x.backup", "back.lm"
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
    begin: Step  # makes the state before the operation
    act: Step  # runs the command; a second run finishes it
    index: str = INDEX  # whose contents are compared
    keeps: bool = False  # documents that are there unchanged keep their ids and those of their chunks


def _index(
    *batches: Sequence[Document], encode: EncodeNow = "all", factory: str = "Flat", name: str = INDEX,
    prune: bool = False,
) -> Step:  # fmt: skip
    """A step that indexes batches of documents one after another."""

    def act(folder: Path) -> None:
        for batch in batches:
            build(
                folder / name, batch, encoder=None if encode == "none" else ENCODER, encode=encode, factory=factory,
                recall_floor=_FLOOR, language="english", prune=prune,
            )  # fmt: skip

    return act


def _once(place: str, step: Step) -> Step:
    """A step that does nothing where its result is there already."""
    return lambda folder: None if (folder / place).exists() else step(folder)


def _in_turn(*steps: Step) -> Step:
    return lambda folder: [step(folder) for step in steps]


def _sample(folder: Path) -> None:
    """Words of all documents and vectors of a few, as for a corpus that is too large to encode at once."""
    drawing.ALL_TOKENS, drawing.FIRST_DOCUMENTS, drawing.FEWEST_FIRST = 0, _FIRST, _FIRST
    _index(_ALL[:14], encode="later")(folder)


def _query_and_encode(folder: Path) -> None:
    for query in _ALL[:2]:
        with Index.open(folder / INDEX, encoder=ENCODER) as index:
            index.search_id(query.doc_id, allowance=_ON_DEMAND)
    _index([])(folder)


def _remove(folder: Path) -> None:
    known = {doc_id for doc_id, _ in stored_sources(folder / INDEX)}
    if present := [doc_id for doc_id in _REMOVED if doc_id in known]:
        remove(folder / INDEX, present)


def _damage(folder: Path) -> None:
    for path in [*(folder / INDEX).glob("shards/*"), *(folder / INDEX).glob("ann/*/*.faiss")]:
        path.write_bytes(path.read_bytes()[:-9])


def _reencode(folder: Path) -> None:
    reencode(folder / INDEX, encoder=WordEncoder(1), recall_floor=_FLOOR)


# The documents with other metadata, and every second one with another text.
_CHANGED = [replace(one, metadata={**one.metadata, "year": 1990 + at}) for at, one in enumerate(_ALL)]
_CHANGED[1::2] = [replace(one, text=f"{one.text}!") for one in _CHANGED[1::2]]

_NOTHING = _in_turn()
_WORDS = _index(_ALL[:9], _ALL[9:14], encode="none")
_VECTORS = _index(_ALL[:9], _ALL[9:14])
_LATER = _in_turn(_index(_ALL[:14], encode="none"), _index(_ALL[:14]))
_IVF = _index(_ALL[:14], factory=IVF)
_SPLIT = _once(PARTS, lambda folder: partition(folder / INDEX, folder / PARTS, 2))
_BACK_UP = _once(FILE, lambda folder: backup(folder / INDEX, folder / FILE))
_RESTORE = _once(RESTORED, lambda folder: restore(folder / FILE, folder / RESTORED))
_WITH_REMOVED = _in_turn(_VECTORS, _remove)
_PARTITIONED = _in_turn(_VECTORS, _SPLIT)

OPERATIONS = (
    Operation("index words", _NOTHING, _WORDS, keeps=True),
    Operation("index vectors", _NOTHING, _VECTORS, keeps=True),
    Operation("index words, encode later", _NOTHING, _LATER, keeps=True),
    Operation("queries that encode", _sample, _query_and_encode, keeps=True),
    Operation("index under IVF", _NOTHING, _IVF, keeps=True),
    Operation("extend IVF", _IVF, _index(_ALL, factory=IVF)),
    Operation("update and prune", _VECTORS, _index(_CHANGED[:8] + _ALL[10:18], prune=True)),
    Operation("remove", _VECTORS, _remove),
    Operation("compact", _WITH_REMOVED, lambda folder: compact(folder / INDEX)),
    Operation("rebase", _WITH_REMOVED, lambda folder: rebase(folder / INDEX)),
    Operation("repair", _in_turn(_IVF, _damage), lambda folder: repair(folder / INDEX, encode=True, encoder=ENCODER)),
    Operation("encode again", _IVF, _reencode),
    Operation("partition", _VECTORS, _SPLIT, PARTS),
    Operation("index partitions", _PARTITIONED, _index(_ALL, name=PARTS), PARTS),
    Operation("backup", _IVF, _BACK_UP),
    Operation("restore", _in_turn(_IVF, _BACK_UP), _RESTORE, RESTORED),
)
# Undamaged indexes whose copies are damaged; and operations during which a killed writer leaves an unsealed index.
ORIGINALS = {"words": _WORDS, "vectors": _VECTORS, "IVF": _IVF, "partitions": _PARTITIONED}
UNSEALED = ("index words", "update and prune", "extend IVF")
