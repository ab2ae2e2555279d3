"""Which records are older than the code that they measure, by what git knows of this checkout; no network.

A record is stale when a module that its kind is declared to measure (`MEASURED`) differs now from the
commit of the record, docstrings, comments and imports aside, or when the history has no such commit.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.records import Record
from benchmarks.runs import Run
from engine.errors import EngineError

ROOT = Path(__file__).resolve().parents[1]
NOTE = "Stale: "  # begins the line below a table
_SHOWN = 8  # files and folders in that line

_ENCODING = (
    *("engine/segmentation.py", "engine/encoders/chunking.py", "engine/encoders/backbone/tokenizer.py"),
    *("engine/encoders/backbone/backbone.py", "engine/encoders/mean.py"),
)
_SCORING = (
    *(
        "engine/scoring",
        "engine/words",
        "engine/store/reference.py",
        "engine/store/coarse.py",
        "engine/section_kinds.py",
    ),
    *(
        f"engine/search/{name}.py"
        for name in (
            *("searcher", "scorer", "query", "long_query", "candidates", "document_lists"),
            *("local_partition", "pool", "merging", "section_weights", "skipping"),
        )
    ),
)
_STORING = (
    *("engine/store/catalog.py", "engine/store/documents.py", "engine/store/durable.py", "engine/store/publishing.py"),
    *("engine/store/seal.py", "engine/store/shards.py", "engine/store/writer.py", "indexer/building/pipeline.py"),
)
_LISTS = (
    *("engine/store/ann.py", "engine/store/postings.py", "engine/search/candidates.py"),
    *("engine/search/document_lists.py", "indexer/generation/new_generation.py"),
)
_METRICS = ("benchmarks/metrics.py",)
_SYSTEMS = (*_ENCODING, *_SCORING)
_MODELS = ("engine/encoders", "engine/training")
_PAIRS = ("benchmarks/pairs/judging.py", "benchmarks/pairs/splitting.py", "benchmarks/baselines", *_MODELS)
_GROWTH = ("benchmarks/speed/growth/stream.py", "benchmarks/speed/growth/texts.py")

# By kind of record: files and folders of the checkout. Of a wide program only what decides its values.
MEASURED: Mapping[str, tuple[str, ...]] = {
    "retrieval": (*_METRICS, *_SYSTEMS),  # of our own systems, see `modules_of`
    "positions": (*_SYSTEMS, "benchmarks/tasks/positions.py"),
    "samples": (*_METRICS, *_SYSTEMS),
    "demand": (*_METRICS, *_SYSTEMS, "engine/search/on_demand.py"),
    "boilerplate": _SYSTEMS,
    "pairs": _PAIRS,
    "rerank": (*_METRICS, "benchmarks/tasks/rerank.py", *_PAIRS),
    "probe": ("benchmarks/probing.py", *_ENCODING),
    "papers": ("benchmarks/papers", "benchmarks/probing.py", *_PAIRS),
    "training": ("engine/training",),
    "summaries": ("benchmarks/scisumm.py", *_SYSTEMS),
    "facets": ("benchmarks/sections", *_SYSTEMS),
    "faithfulness": ("benchmarks/sections", *_SYSTEMS),
    "planted": ("benchmarks/sections", *_SYSTEMS),
    "contained": ("engine/search/novelty.py", *_SCORING),
    "duplicates": ("indexer/pairs", "engine/search/pair_search.py", *_SCORING),
    "peers": ("benchmarks/peers", *_SYSTEMS, *_LISTS),
    "ann": ("benchmarks/speed/vectors", *_LISTS),
    "recall": (*_SCORING, *_LISTS),
    "exactness": _SCORING,
    "stability": (*_SCORING, *_LISTS),
    "throughput": (
        *("benchmarks/speed/encode", *_ENCODING),
        *("engine/encoders/backbone/cpu_bert.py", "indexer/building/pipeline.py"),
    ),
    "plan": ("indexer/plan", "indexer/generation/footprint.py"),
    "scale": (*_GROWTH, *_SCORING, *_LISTS),
    "addition": (*_GROWTH, *_SCORING, *_STORING),
    "memory": ("indexer/reading/reader.py", "engine/encoders/backbone/batching.py", *_STORING),
    "faults": (*_STORING, "indexer/upkeep", "indexer/generation", "indexer/partitions"),
    "concurrency": (*_STORING, "engine/store/snapshot.py", "indexer/upkeep", "indexer/generation"),
    "row_checks": tuple(f"engine/store/{name}.py" for name in ("catalog", "checks", "documents", "opened")),
    "fuzz": ("engine/readers", "indexer/reading/reader.py", "indexer/reading/process.py"),
    "load": ("indexer/serving", *_SCORING),
    "startup": ("longmatch/__main__.py", "engine/index.py", "indexer/cli/query.py", "indexer/cli/query_files.py"),
    "first_answer": tuple(
        f"engine/store/{name}.py"
        for name in ("snapshot", "roster_blocks", "opened", "checks", "seal", "shards", "postings")
    ),
    "reading": ("indexer/reading", "engine/readers/reader.py", "engine/readers/text.py"),
    "partitions": ("engine/remote", "indexer/serving/rounds.py", *_SCORING),
    "partition_plan": ("indexer/plan/partitioned.py", "engine/remote/values.py", *_SCORING, *_LISTS),
    "ray_kills": ("indexer/cluster", "indexer/building", "engine/store/writer.py", "engine/store/writable.py"),
    "partition_failures": ("engine/remote", "indexer/serving/rounds.py", "engine/search/searcher.py"),
}
TASKS = (  # of runs
    *("retrieval", "pairs", "rerank", "probe", "summaries", "papers", "peers"),
    *("facets", "faithfulness", "planted", "contained", "positions"),
)
_OWN = frozenset(("evidence", "chunks", "words", "document"))  # systems of retrieval


class FreshnessError(EngineError):
    """Raised when git cannot say how old records are."""


@dataclass(frozen=True)
class Age:
    """What has changed since a record was measured."""

    name: str  # of the record
    commit: str  # ten digits; "" where the record has none
    is_known: bool  # the history has the commit
    changed: tuple[str, ...]  # of the declared files and folders

    @property
    def is_stale(self) -> bool:
        """Whether the record should be measured again."""
        return bool(self.changed) or not self.is_known


def modules_of(record: Record) -> tuple[str, ...]:
    """The files and folders that a record measures."""
    if isinstance(record, Run) and record.task == "retrieval" and record.system not in _OWN:
        return (*_METRICS, "benchmarks/baselines")
    return MEASURED[record.kind]


class History:
    """The checkout and its history."""

    def __init__(self, root: Path = ROOT) -> None:
        """Look whether there is a history.

        Raises:
            FreshnessError: git is missing, `root` is no checkout, or its history is cut off.
        """
        self._root = root
        self._changes: dict[str, tuple[str, ...] | None] = {}
        self._code_of_blob = lru_cache(maxsize=None)(lambda blob: _code(self._git("cat-file", "blob", blob)))
        self._code_now = lru_cache(maxsize=None)(lambda path: _code(self._text(path)))
        try:
            is_shallow = self._git("rev-parse", "--is-shallow-repository").strip() == "true"
        except (OSError, subprocess.CalledProcessError) as error:
            raise FreshnessError(
                f"{root} has no history of git ({error}), which says how old records are; clone the repository"
            ) from error
        if is_shallow:
            raise FreshnessError(f"the history of {root} is cut off; fetch the rest: git fetch --unshallow")

    def age(self, record: Record) -> Age:
        """What of the declared code of a record has changed since its commit."""
        commit = record.origin.commit
        files = self._changed_since(commit)
        changed = [path for path in modules_of(record) if any(_is_in(file, path) for file in files or ())]
        return Age(record.name, commit[:10], files is not None, tuple(dict.fromkeys(changed)))

    def _changed_since(self, commit: str) -> tuple[str, ...] | None:
        """Files whose code differs from a commit; None where the history lacks it."""
        if commit not in self._changes:
            self._changes[commit] = self._compared(commit) if self._has(commit) else None
        return self._changes[commit]

    def _has(self, commit: str) -> bool:
        try:
            self._git("cat-file", "-e", f"{commit}^{{commit}}")
        except subprocess.CalledProcessError:
            return False
        return bool(commit)

    def _compared(self, commit: str) -> tuple[str, ...]:
        rooms = sorted({path.split("/")[0] for paths in MEASURED.values() for path in paths})
        arguments = ("--raw", "-z", "--no-abbrev", "--find-renames", commit, "--", *(f"{room}/*.py" for room in rooms))
        raw = iter(self._git("diff", *arguments).split("\0")[:-1])
        changed = []
        for fields in raw:
            file = next(raw)
            if fields.split()[-1].startswith("R"):
                file = next(raw)  # the new name follows the old one
            if self._differs(fields, file):
                changed.append(file)
        return tuple(changed)

    def _differs(self, fields: str, file: str) -> bool:
        """Whether the code differs; `fields` are those of git diff --raw."""
        _, _, blob, _, status = fields.split()
        if status == "A":
            return Path(file).name != "__init__.py"
        return status[0] not in "MR" or self._code_of_blob(blob) != self._code_now(file)

    def _text(self, file: str) -> str:
        return (self._root / file).read_text("utf-8", errors="replace")

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self._root, capture_output=True, check=True)
        return done.stdout.decode("utf-8", errors="replace")


def stale_note(ages: Sequence[Age]) -> str:
    """The line below a table; "" where all of its records are fresh."""
    stale = [age for age in ages if age.is_stale]
    if not stale:
        return ""
    parts = []
    if changed := sorted({path for age in stale for path in age.changed}):
        n_changed = sum(bool(age.changed) for age in stale)
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        names = ", ".join(f"`{path}`" for path in changed[:_SHOWN]) + more
        parts.append(f"{n_changed} of {len(ages)} records measured before the code of {names} changed")
    if n_unknown := sum(not age.is_known for age in stale):
        parts.append(f"{n_unknown} of {len(ages)} records measured at a commit that the history lacks")
    return f"{NOTE}{'; '.join(parts)}."


def _is_in(file: str, path: str) -> bool:
    return file == path or file.startswith(f"{path}/")


def _code(text: str) -> str:
    """Python without comments, docstrings, imports and layout; other text as it is.

    Imports name where a module lies, so that moving it alone makes no record stale.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return text
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not isinstance(one, ast.Import | ast.ImportFrom)]  # type: ignore[attr-defined]
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
