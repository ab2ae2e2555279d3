"""The case name of a court opinion, from the caption on its first page."""

from __future__ import annotations

import re

_VERSUS = re.compile(r"(?P<first>[^\n]{0,200}?)\b(?:v|vs|V|VS)\.(?=\s)(?P<second>[^\n]{0,200})")
_COURT = re.compile(r"\b(?:court|tribunal|cite as|syllabus|opinion of|docket|case no|no\. \d\d)", re.IGNORECASE)
_ROLE = re.compile(
    r",?\s*\b(?:plaintiffs?|petitioners?|appellants?|defendants?|respondents?|appellees?|et al\.?)\b[^\n]*",
    re.IGNORECASE,
)
_NOT_A_NAME = re.compile(r"\b(?:see|cf|e\.g|id|in|at|the case of|under)\.?\s*$|\d{2,} [A-Z]\w*\.", re.IGNORECASE)
_HEAD_CHARS = 4_000  # of a text that can be the first page
_MAX_PARTY_CHARS = 100


def case_name(text: str) -> str:
    """The name of a case ("Alpha v. Beta"), if a text starts like an opinion; "" for another text."""
    head = text[:_HEAD_CHARS]
    is_opinion = _COURT.search(head[:1_500]) is not None
    for match in _VERSUS.finditer(head):
        line_start = not match["first"].strip() or head[: match.start("first")].rstrip(" \t")[-1:] in ("", "\n", "\f")
        if not line_start:
            continue
        first = _party(match["first"]) or _party(_line_before(head, match.start()))
        second = _party(match["second"]) or _party(head[match.end() :].lstrip().partition("\n")[0])
        if first and second and (is_opinion or match.start() < 200):
            return f"{first} v. {second}"
    return ""


def _party(text: str) -> str:
    """The name of a party, without its role; "" where it is a sentence or a citation."""
    name = " ".join(_ROLE.sub("", text).split()).strip(" ,;:()*\u2020")
    if not name or len(name) > _MAX_PARTY_CHARS or not name[0].isupper() or _NOT_A_NAME.search(text):
        return ""
    words = [word for word in name.split() if word[0].isalpha()]
    n_small = sum(
        word[0].islower() and word not in ("of", "the", "and", "for", "de", "von", "in", "ex", "rel.") for word in words
    )
    return name if words and n_small * 4 <= len(words) and not name.endswith(('."', "?")) else ""


def _line_before(text: str, place: int) -> str:
    lines = [line for line in text[:place].split("\n") if _ROLE.sub("", line).strip(" ,")]
    return lines[-1] if lines else ""
