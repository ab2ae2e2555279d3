"""A small CL-SciSumm: four topics, each with a paper, its summary, six papers that cite it and two citances."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

N_CITING = 6
TOPICS = {"parsing": "tree grammar parser", "speech": "audio phone signal", "words": "lexicon sense noun"} | {
    "dialogue": "turn speaker answer"
}


def write_scisumm(data: Path) -> Path:
    """Returns `data`, the folder that holds the dataset's folder."""
    folder = data / "clscisumm"
    folder.mkdir(parents=True)
    papers, summaries, citances = [], [], []
    judged: dict[str, list[str]] = {"qrels.tsv": [], "qrels_citing.tsv": [], "qrels_citances.tsv": []}
    for topic, words in TOPICS.items():
        papers.append(_line(topic, f"{words} {words} method", roles=["reference"]))
        summaries.append(_line(f"sum:{topic}", f"{words} method", ref=topic))
        judged["qrels.tsv"].append(f"sum:{topic}\t{topic}\t1")
        for number in range(N_CITING):
            papers.append(_line(f"{topic}{number}", f"{words} study {number} corpus", roles=["citing"]))
            judged["qrels_citing.tsv"].append(f"sum:{topic}\t{topic}{number}\t1")
        for number in range(2):
            citances.append(_line(f"cit:{topic}:{number}", f"we use the {words} of others", topic=topic))
            judged["qrels_citances.tsv"].append(f"sum:{topic}\tcit:{topic}:{number}\t1")
    _write(folder / "corpus.jsonl.gz", papers)
    _write(folder / "queries.jsonl.gz", summaries)
    _write(folder / "citances.jsonl.gz", citances)
    for name, rows in judged.items():
        (folder / name).write_text("\n".join(["query_id\tdoc_id\trelevance", *rows]) + "\n")
    everyone = [f"sum:{topic}" for topic in TOPICS]
    (folder / "splits.json").write_text(json.dumps({"cl2018train": everyone, "small": everyone[:2]}))
    return data


def _line(doc_id: str, text: str, **meta: object) -> str:
    return json.dumps({"id": doc_id, "title": "", "sections": [{"heading": "", "text": text}], "meta": meta})


def _write(path: Path, lines: Iterable[str]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
