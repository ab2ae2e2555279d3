"""A reference as a value, and the kinds of works that are referred to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.text.spans import Span


class Kind(StrEnum):
    """What is referred to."""

    CASE = "case"
    STATUTE = "statute"  # also constitutions, and rules of courts
    REGULATION = "regulation"
    PATENT = "patent"
    PAPER = "paper"  # by DOI, arXiv id, PMID or PMCID
    SERIES = "series"  # RFCs and proposals: BCP, STD, PEP, EIP and ERC, BIP
    STANDARD = "standard"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Reference:
    """One mention of a work."""

    kind: Kind
    name: str  # equal for all spellings: "347 U.S. 483", "42 U.S.C. § 1983", "US5123456", "RFC 2119"
    span: Span  # in the text; several sections behind one sign have spans of their own
    parallel: str = ""  # name of the citation before it, if both are places of one case
