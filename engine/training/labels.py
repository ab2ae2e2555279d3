"""Pairs by label: documents that share a value of a metadata field belong together. Reads no files."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping

from engine.errors import TrainingError
from engine.text.document import Document, Scalar
from engine.training.judgments import Judgments


class Fellows(Mapping[str, int]):
    """The other documents that share a label with a document, each of relevance 1.

    All documents of a label use the same mapping of its members, so a label of n documents
    costs memory for n entries; pairs would cost n (n - 1).
    """

    def __init__(self, doc_id: str, members: Mapping[str, int], n_members: int) -> None:
        """View `members` without `doc_id`, which is one of its `n_members`."""
        self._doc_id = doc_id
        self._members = members
        self._n = n_members - 1

    def __getitem__(self, doc_id: str) -> int:
        if doc_id == self._doc_id:
            raise KeyError(doc_id)
        return self._members[doc_id]

    def __contains__(self, doc_id: object) -> bool:
        return doc_id != self._doc_id and doc_id in self._members

    def __iter__(self) -> Iterator[str]:
        return (doc_id for doc_id in self._members if doc_id != self._doc_id)

    def __len__(self) -> int:
        return self._n


def pairs_by_label(documents: Iterable[Document], label: str) -> Judgments:
    """Pair each document with all others that have one of its labels.

    Args:
        documents: those that can be in a pair.
        label: a metadata field; each item of a list is a label, and null is none.

    Returns:
        The `Fellows` of each document that shares a label with another.

    Raises:
        TrainingError: no two documents share a label.
    """
    members: dict[Scalar, dict[str, int]] = {}
    labels: dict[str, tuple[Scalar, ...]] = {}
    for document in documents:
        labels[document.doc_id] = _labels(document, label)
        for one in labels[document.doc_id]:
            members.setdefault(one, {})[document.doc_id] = 1
    shared = {own: _joined([members[one] for one in own]) for own in set(labels.values())}
    pairs = {doc_id: Fellows(doc_id, *shared[own]) for doc_id, own in labels.items() if shared[own][1] > 1}
    if not pairs:
        raise TrainingError(
            f"no two of {len(labels)} documents share a value of the metadata field {label!r} "
            f"({sum(map(bool, labels.values()))} have one); name a field that they share, or give them train_pairs.tsv"
        )
    return pairs


def _labels(document: Document, label: str) -> tuple[Scalar, ...]:
    value = document.metadata.get(label)
    return tuple(dict.fromkeys(one for one in (value if isinstance(value, list) else [value]) if one is not None))


def _joined(classes: list[dict[str, int]]) -> tuple[Mapping[str, int], int]:
    """The members of several labels, and the number of different members."""
    if len(classes) == 1:
        return classes[0], len(classes[0])
    members = ChainMap(*classes)
    return members, len(members)
