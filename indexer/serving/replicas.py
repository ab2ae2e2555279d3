"""Several opened copies of one index, all of the same snapshot, so that several threads can search it.

An opened index serves one thread at a time. Copies share the mapped files through the page cache of the system. They
also share vectors: a document that one copy encodes for a query is passed to all others.
"""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path

import numpy as np

from engine.encoders.encoder import EncodedDocument
from engine.errors import EngineError
from engine.index import Index
from engine.provenance import index_state
from engine.search.allowance import Allowance
from engine.search.partition import Placement
from engine.text.document import Document
from indexer.serving.encoding import RequestEncoder, SharedEncoder
from indexer.serving.failures import LOG
from indexer.serving.progress import Progress

_REOPENINGS = 3  # rounds of reopening copies that were opened before a commit which later copies include
_WARM_UP = Document.from_text("Which documents match this one, and in which sections?")


class Replica:
    """One opened copy of the index."""

    def __init__(
        self,
        folder: Path,
        shared: SharedEncoder | None,
        group: ReplicaGroup,
        placement: Placement | None,
        *,
        store: bool,
    ) -> None:
        """Open it, and search once so that everything is loaded.

        Args:
            folder: of the index.
            shared: None for an index that holds words alone.
            group: all copies of the same snapshot.
            placement: where partitions are searched.
            store: as in `engine.index.Index.open`.
        """
        self._group = group
        self._arrived: deque[tuple[str, EncodedDocument]] = deque()  # vectors that other copies encoded
        self._encoder = None if shared is None else RequestEncoder(shared, self._share)
        self.index = Index.open(folder, encoder=self._encoder, store=store, log=LOG.info, placement=placement)
        self.index.search(_WARM_UP, k=1, allowance=Allowance(candidates=0)).to_dict()

    @property
    def state(self) -> str:
        """A fingerprint that changes with the documents, the encoder and the reference."""
        return index_state(self.index.snapshot).fingerprint

    def _share(self, doc_id: str, encoded: EncodedDocument) -> None:
        self._group.share(self, doc_id, encoded)

    def follow(self, progress: Progress | None) -> None:
        """Report encoding to the progress of a request; None stops reporting."""
        if self._encoder is not None:
            self._encoder.progress = progress

    def receive(self, doc_id: str, encoded: EncodedDocument) -> None:
        """Take vectors that another copy encoded; `catch_up` attaches them."""
        self._arrived.append((doc_id, encoded))

    def catch_up(self) -> None:
        """Attach the vectors that other copies encoded, where this one has none."""
        snapshot, wanted = self.index.snapshot, dict[int, EncodedDocument]()
        while self._arrived:
            doc_id, encoded = self._arrived.popleft()
            position = snapshot.position(doc_id)
            if position is not None and not snapshot.has_vectors[position]:
                wanted[position] = encoded
        if wanted:
            snapshot.attach(np.array(list(wanted)), list(wanted.values()))


class ReplicaGroup:
    """The copies of one snapshot; each is used by one thread at a time."""

    def __init__(
        self, folder: Path, shared: SharedEncoder | None, n_replicas: int, placement: Placement | None, *, store: bool
    ) -> None:
        """Open all copies.

        Args:
            folder: of the index.
            shared: None for an index that holds words alone.
            n_replicas: at least 1.
            placement: where partitions are searched.
            store: as in `engine.index.Index.open`.

        Raises:
            EngineError: the index cannot be opened or searched.
        """
        self._change = threading.Condition()
        self._is_retired = False
        self._replicas: list[Replica] = []
        try:
            for _ in range(n_replicas):
                self._replicas.append(Replica(folder, shared, self, placement, store=store))
            for _ in range(_REOPENINGS):
                older = [number for number, one in enumerate(self._replicas) if one.state != self._replicas[-1].state]
                for number in older:
                    self._replicas[number].index.close()
                    self._replicas[number] = Replica(folder, shared, self, placement, store=store)
        except EngineError:
            for replica in self._replicas:
                replica.index.close()
            raise
        self._idle = deque(self._replicas)
        self.n_documents = self._replicas[0].index.n_documents

    def take(self) -> Replica | None:
        """A copy for one thread, the one that was idle for the longest time; None once the group is retired."""
        with self._change:
            self._change.wait_for(lambda: self._idle or self._is_retired)
            return None if self._is_retired else self._idle.popleft()

    def give_back(self, replica: Replica) -> None:
        """Let another thread have a copy; close it where the group is retired."""
        with self._change:
            if self._is_retired:
                replica.index.close()
            else:
                self._idle.append(replica)
                self._change.notify()

    def share(self, sender: Replica, doc_id: str, encoded: EncodedDocument) -> None:
        """Pass vectors on to all other copies."""
        for replica in self._replicas:
            if replica is not sender:
                replica.receive(doc_id, encoded)

    def retire(self) -> None:
        """Close the copies that are idle, and each of the others when its request has finished."""
        with self._change:
            self._is_retired = True
            while self._idle:
                self._idle.popleft().index.close()
            self._change.notify_all()
