"""Replaces citations of other documents of a corpus by [CITE]: proposal numbers, RFC numbers, labels of references.

Without the mask a system could match a document with its targets by their numbers alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection

CITE = "[CITE]"

_FAMILY = r"(?:PEP|EIP|ERC|XEP)"
_SERIES = rf"{_FAMILY}s?(?:[\s:#-]*\d+|[\s:-]*`\d+`)"
_MORE = rf"(?:,?\s*(?:and/or|and|or|/|,)\s*(?:and\s+|or\s+)?)(?:{_FAMILY}s?[\s-]*)?\d{{2,}}\b"
_URL = r"https?://\S*(?:(?:pep|eip|erc|xep)s?[-/]?\d+|EIPs/(?:issues|pull)/\d+)\S*"
_PROPOSAL = re.compile(rf"{_URL}|\b{_SERIES}(?:{_MORE})*", re.IGNORECASE)
_ONE_XEP = re.compile(rf"{_URL}|\b{_SERIES}", re.IGNORECASE)

_AND_RFC = r"(?:,\s*(?:and/or\s+|and\s+|or\s+)?|\s+(?:and/or|and|or)\s+|/)(?:RFCs?[\s-]*)?\d{3,4}\b"
_RFCS = rf"RFC(?:s?\s*|-)\d+(?:bis)?(?:{_AND_RFC})*"
_RFC = rf"https?://\S*rfc\S*|\b(?:{_RFCS}|(?:STD|BCP|IEN)(?:\s*|-)\d{{1,4}}\b)"
_BRACKET_OR_RFC = re.compile(rf"\[([^\]\[]{{1,60}})\](?=[\s.,;:)\]'\"]|$)|{_RFC}", re.IGNORECASE)
_RFC_ALONE = re.compile(_RFC, re.IGNORECASE)
_RFC_LABEL = re.compile(r"(?:RFC|STD|BCP|IEN)s?[ -]?\d", re.IGNORECASE)
_LABEL = re.compile(r"[A-Za-z]|\d{1,3}$")  # a label that is a date or a standard's number is left alone


def mask_proposals(text: str, *, lists: bool = True) -> str:
    """Mask the numbers of PEPs, EIPs, ERCs and XEPs and the addresses of such pages.

    Args:
        text: of one heading or section.
        lists: replace "PEP 1 and PEP 2" by one mask rather than two.
    """
    return (_PROPOSAL if lists else _ONE_XEP).sub(CITE, text)


def mask_rfcs(text: str, labels: Collection[str]) -> str:
    """Mask RFC, STD, BCP and IEN numbers, their addresses, and bracketed labels of references.

    Args:
        text: of one heading or section.
        labels: of the document's own list of references, without brackets.
    """

    def masked(found: re.Match[str]) -> str:
        inside = found[1]
        if inside is None or _RFC_LABEL.match(inside) or (inside in labels and _LABEL.match(inside)):
            return CITE
        return f"[{_RFC_ALONE.sub(CITE, inside)}]"

    return _BRACKET_OR_RFC.sub(masked, text)
