"""The proposals of the demo, and the format of each."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from demo.marked_up import jats, latex, markdown, tei, web_page
from demo.pdf import pdf
from demo.proposals import Proposal
from demo.unmarked import json_line, plain_text
from demo.word import docx

QUERIES = {"pep695": ".md", "eip7702": ".pdf"}

# Proposals with the subject of a query, but without a citation between them.
UNCITED_KIN = {"pep695": "pep526 pep544 pep585 pep589", "eip7702": "eip2938 eip3074 eip5806"}

CORPUS = {
    ".md": (
        "pep343 pep484 pep489 pep517 pep526 pep563 pep572 pep585 pep612 pep621 pep696 pep751 "
        "eip2718 eip2930 eip2935 eip3074 eip3607 eip7706 eip7819 eip8011"
    ),
    ".txt": "pep342 pep380 pep384 pep427 pep487 eip1153 eip2200 eip4895 eip5806",
    ".txt.gz": "pep3156",
    ".html": "pep544 pep567 pep589 pep635 pep636 pep735 eip712 eip1193 eip2929 eip5792 eip7805 eip7928",
    ".html.gz": "pep440",
    ".pdf": "pep483 pep649 pep654 pep703 eip1559 eip2938 eip4844 eip7732",
    ".docx": "pep525 pep573 pep660 eip1283 eip4762 eip8164",
    ".tex": "pep646 pep665 eip3675 eip6800 eip7864",
    ".xml (JATS)": "pep533 pep590 eip7251",
    ".xml (TEI)": "pep684 pep702 eip6110 eip7002",
    ".jsonl": "eip2315 eip3540 eip4200 eip4750 eip5450 eip7069",
}

JSONL_NAME = "eips/evm-control-flow.jsonl"


@dataclass(frozen=True)
class Format:
    """The name of a format in PROVENANCE.md, and the function that writes one proposal."""

    name: str
    write: Callable[[Proposal], bytes]


def _encoded(write: Callable[[Proposal], str]) -> Callable[[Proposal], bytes]:
    return lambda proposal: write(proposal).encode()


def _gzipped(write: Callable[[Proposal], str]) -> Callable[[Proposal], bytes]:
    return lambda proposal: gzip.compress(write(proposal).encode(), mtime=0)


FORMATS = {
    ".md": Format("Markdown", _encoded(markdown)),
    ".txt": Format("plain text", _encoded(plain_text)),
    ".txt.gz": Format("plain text, gzip", _gzipped(plain_text)),
    ".html": Format("HTML", _encoded(web_page)),
    ".html.gz": Format("HTML, gzip", _gzipped(web_page)),
    ".pdf": Format("PDF", pdf),
    ".docx": Format("DOCX", docx),
    ".tex": Format("LaTeX", _encoded(latex)),
    ".xml (JATS)": Format("JATS XML", _encoded(jats)),
    ".xml (TEI)": Format("TEI XML", _encoded(tei)),
    ".jsonl": Format("JSON lines", _encoded(json_line)),
}


@dataclass(frozen=True)
class Choice:
    """A proposal of the demo, its format and its file."""

    id: str
    ending: str  # a key of FORMATS
    folder: str  # "corpus" or "queries"

    def path(self, proposal: Proposal) -> str:
        """Path of the proposal below the output folder; several share a JSON lines file."""
        if self.folder == "queries":
            return f"queries/{proposal.name}{self.ending}"
        if self.ending == ".jsonl":
            return f"corpus/{JSONL_NAME}"
        return f"corpus/{proposal.family}s/{proposal.name}{self.ending.split()[0]}"


def choices() -> Iterator[Choice]:
    """Every proposal of the demo: the corpus by family and number, then the queries."""
    pairs = [(proposal_id, ending) for ending, ids in CORPUS.items() for proposal_id in ids.split()]
    for proposal_id, ending in sorted(pairs, key=lambda pair: (pair[0][:3] == "eip", _number(pair[0]))):
        yield Choice(proposal_id, ending, "corpus")
    for proposal_id, ending in QUERIES.items():
        yield Choice(proposal_id, ending, "queries")


def _number(proposal_id: str) -> int:
    return int(re.sub(r"\D", "", proposal_id))
