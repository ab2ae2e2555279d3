"""Small sets in the published formats of AAN's pairs and of GWikiMatch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

WIKI = "http://en.wikipedia.org/wiki/"
SPLITS = ("train", "eval", "test")


def write_aan(folder: Path, n_pairs: int = 8) -> Path:
    """Papers of a topic cite each other; each split has as many pairs of either kind, and one with a blank text."""
    folder.mkdir(parents=True)
    for at, split in enumerate(SPLITS):
        ids = [f"P{at}{number:02d}" for number in range(n_pairs + 1)]
        rows = []
        for number in range(n_pairs):
            is_match = number % 2 == 0
            first, second = ids[number], ids[number + 1]
            rows.append((f"{is_match:.1f}", first, second, _paper(number), _paper(number + 1)))
        rows.append(("0", ids[0], "blank", _paper(0), " "))
        text = "".join("\t".join(row) + "\n" for row in rows)
        (folder / f"new_aan_pairs.{split}.tsv").write_text(text)
    return folder


def _paper(number: int) -> str:
    words = ["parsing trees grammar", "speech audio phonemes"][number // 2 % 2]
    return f"b'{words}\\n{words} paper {number}'"


def write_gwikimatch(folder: Path, texts: Path, missing: Iterable[str] = ()) -> Path:
    """Articles A0 to A5 in each split; the even one and the next match."""
    folder.mkdir(parents=True)
    articles: set[str] = set()
    for split in SPLITS:
        rows = []
        for number in range(0, 6, 2):
            names = [f"{split}_A{one}" for one in (number, number + 1, (number + 3) % 6)]
            articles |= set(names)
            rows += [f"2\t{WIKI}{names[0]}\t{WIKI}{names[1]}", f"0\t{WIKI}{names[0]}\t{WIKI}{names[2]}"]
        name = f"gwikimatch_v2_human_neg_1.{split}_external_wdp.filtered_contro_wiki_cc_team.only_urls.tsv"
        (folder / name).write_text("\n".join([*rows, ""]))
    kept = sorted(articles - set(missing))
    lines = [json.dumps({"id": WIKI + name, "sections": [{"heading": "", "text": f"about {name}"}]}) for name in kept]
    texts.write_text("\n".join([*lines, ""]))
    return folder
