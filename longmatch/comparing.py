"""`compare`: compares two documents, with or without an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.comparison import compare_alone
from engine.encoders.encoder import Encoder
from engine.errors import QueryError
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.views import Result, result_view
from longmatch.sources import Item, query_document

if TYPE_CHECKING:
    from longmatch.index import Index


def compare(
    a: Item,
    b: Item,
    *,
    index: Index | None = None,
    encoder: Encoder | str | None = None,
    skip: str | Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
    device: str | None = None,
    scoring: Scoring | None = None,
) -> Result:
    """Show which sections of a document match which sections of another one, and score the second for the first.

    Without an index there are no thresholds: the score is high for any two documents, and serves to order the
    parts. With an index it is the score that a search of that index with `a` would give `b`. The result has one hit,
    and the cosines of all sections in `matrix`.

    Args:
        a: the query: a text, a path, a dict with "text" or "sections", or a `Document`, as in `Index.search`.
        b: the target, in one of the same forms; for an indexed document, pass `index.document(doc_id)`.
        index: source of the thresholds, the word statistics and the encoder.
        encoder: an encoder or its name, only without an index; by default the bundled encoder.
        skip: kinds of sections to leave out, as in `Index.search`.
        weights: weights of sections of `a`, as in `Index.search`: {"claims": 3, "abstract": 0}.
        device: device of a named encoder, only without an index.
        scoring: the constants of the score.

    Raises:
        DocumentError: a document has no text, or its file cannot be read.
        EncoderError: the encoder cannot be loaded.
        QueryError: a file does not exist, an index and an encoder or a device are given, or a kind to skip or a
            weight cannot be used.

    Example:
        ```python
        comparison = longmatch.compare("draft.pdf", "paper.pdf")
        print(comparison[0].score, comparison[0].snippets(1))
        ```
    """
    if index is not None and (encoder is not None or device is not None):
        raise QueryError("index and encoder or device exclude each other: an index has its own encoder")
    query, target = query_document(a), query_document(b)
    request = Request.of(skip=skip, weights=weights, scoring=scoring)
    if index is not None:
        return index.opened.compare(query, target, request)
    return result_view(compare_alone(query, target, encoder, request, device=device))
