"""The requests that clients send: path, headers, body, and the statuses that are right."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

BUSY, FOUND = 503, 200
HOSTILE_SHARE = 0.3
_BOUNDARY = "longmatch-load-boundary"
_JSON = {"Content-Type": "application/json"}
_FORM = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}


@dataclass(frozen=True)
class Sent:
    """One request."""

    name: str
    path: str
    body: bytes | None  # None for GET
    headers: dict[str, str]
    right: int  # status

    @property
    def method(self) -> str:
        """GET where there is no body."""
        return "GET" if self.body is None else "POST"


def valid(doc_ids: Sequence[str], texts: Sequence[bytes], rng: random.Random) -> Sent:
    """A request that a server answers with a result.

    Args:
        doc_ids: of the index.
        texts: of documents to search with.
        rng: chooses.
    """
    doc_id, text = rng.choice(doc_ids), rng.choice(texts)
    path = "/v1/search"
    forms = [
        Sent("doc_id", path, json.dumps({"doc_id": doc_id, "k": 5}).encode(), _JSON, FOUND),
        Sent("text", path, json.dumps({"text": text.decode()}).encode(), _JSON, FOUND),
        Sent("file", f"{path}/file", form("draft.md", text), _FORM, FOUND),
        Sent("documents", f"/v1/documents?limit={rng.randint(1, 20)}", None, {}, FOUND),
    ]
    return rng.choice(forms)


def hostile(max_bytes: int, rng: random.Random) -> Sent:
    """A request that a server refuses.

    Args:
        max_bytes: the limit of a body.
        rng: chooses.
    """
    path = "/v1/search"
    return rng.choice(
        [
            Sent("bad JSON", path, b'{"text": ', _JSON, 422),
            Sent("nested JSON", path, b"[" * 50_000, _JSON, 400),
            Sent("wrong type", path, b'{"text": "a", "k": NaN}', _JSON, 422),
            Sent("bad filter", path, b'{"text": "a", "where": "year >"}', _JSON, 400),
            Sent("unknown id", path, b'{"doc_id": "no such document"}', _JSON, 404),
            Sent("noise as PDF", f"{path}/file", form("noise.pdf", rng.randbytes(2_000)), _FORM, 422),
            Sent("large body", path, b" " * (max_bytes + 1), _JSON, 413),
            Sent("path", "/v1/documents/..%2F..%2Fetc%2Fpasswd", None, {}, 404),
            Sent("other site", "/v1/documents", None, {"Origin": "https://example.org"}, 403),
        ]
    )


def form(name: str, data: bytes) -> bytes:
    """A form with one file."""
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return head.encode() + data + f"\r\n--{_BOUNDARY}--\r\n".encode()
