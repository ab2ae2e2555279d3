"""PROVENANCE.md: where the demo's texts come from, and which of them a query should find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from demo.blocks import n_words
from demo.proposals import Proposal
from demo.selection import FORMATS, UNCITED_KIN, Choice

_INTRODUCTION = """\
# Where the demo corpus comes from

| Source repository | Commit | Licence |
| --- | --- | --- |
| https://github.com/python/peps | `ba4deeb7969588d937da609008d05bb83a47b1ab` | public domain or CC0-1.0 |
| https://github.com/ethereum/EIPs | `f767a1e8078e17c9b381a91d35a09492189ede1b` | CC0-1.0 |

## What was changed

The prose is the authors' own. Before the texts came here:

- sections of references, footnotes, acknowledgements, copyright and revision history were dropped;
- code blocks were cut to 1,500 to 3,000 characters, and line breaks inside code, lists and tables were lost;
- headings lost their depth: every section stands at the same level.

Then `make_corpus.py`:

- put back every citation that the data set masks (`PEP 484`, `EIP-1559`);
- told list items, code and tables apart again, and wrapped code at 88 characters;
- took away leftover reStructuredText: footnote marks, link marks, and directives that only point elsewhere;
- converted each proposal to the format named below. PDF files use the standard fonts, so a few signs are spelled \
in ASCII (`->` for an arrow).

Run again, from the folder above this one, it writes the same bytes:

    python -m demo.make_corpus DATA demo

## Queries

Neither is in the corpus. Below each stands what it cites and what cites it, by the authors' own citations, and
what has the same subject without a citation, by our reading; most of these should be among its best hits.

"""


def provenance(chosen: Mapping[Choice, Proposal], citations: Set[tuple[str, str]]) -> str:
    """The text of the file.

    Args:
        citations: pairs (citing id, cited id), over more proposals than were chosen.
    """
    corpus = {choice: proposal for choice, proposal in chosen.items() if choice.folder == "corpus"}
    queries = {choice: proposal for choice, proposal in chosen.items() if choice.folder == "queries"}
    lines = []
    for choice, query in queries.items():
        described = f"`{choice.path(query)}`, {FORMATS[choice.ending].name}, {n_words(query):,} words"
        lines += [f"### {_title(query)}", "", described, "", *_relatives(query, corpus, citations), ""]
    lines += [f"## The {len(corpus)} documents", "", "| File | Title | Format | Words |", "| --- | --- | --- | ---: |"]
    lines += [
        f"| `{choice.path(proposal)}` | {_title(proposal)} | {FORMATS[choice.ending].name} | {n_words(proposal):,} |"
        for choice, proposal in corpus.items()
    ]
    return _INTRODUCTION + "\n".join(lines) + "\n"


def _relatives(query: Proposal, corpus: Mapping[Choice, Proposal], citations: Set[tuple[str, str]]) -> Iterator[str]:
    """A line for each related document of the corpus: its relation to the query, and its path."""
    kin = UNCITED_KIN[query.id].split()
    for choice, proposal in corpus.items():
        ties = {
            "cited": (query.id, proposal.id) in citations,
            "cites it": (proposal.id, query.id) in citations,
            "same subject": proposal.id in kin,
        }
        if any(ties.values()):
            tie = " and ".join(word for word, holds in ties.items() if holds)
            yield f"- {_title(proposal)} ({tie}): `{choice.path(proposal)}`"


def _title(proposal: Proposal) -> str:
    return f"{proposal.label}: {proposal.title}".replace("|", "\\|")
