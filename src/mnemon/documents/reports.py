"""Reports of what became of documents, while they are being written."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mnemon.documents.syncing import Outcome
from mnemon.model import DocumentReport, Progress


@dataclass(slots=True)
class Tally:
    """A report that is being written."""

    paths: dict[str, list[str]] = field(default_factory=lambda: {"added": [], "changed": [], "unchanged": []})
    removed: list[str] = field(default_factory=list[str])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    skipped: int = 0
    written: int = 0
    embedded: int = 0
    deleted: int = 0

    def add(self, outcome: Outcome) -> None:
        if outcome.kind == "failed":
            self.failed[outcome.row.file_path] = outcome.row.error or ""
        else:
            self.paths[outcome.kind].append(outcome.row.file_path)
        self.written += outcome.written
        self.embedded += outcome.embedded
        self.deleted += outcome.removed

    def remove(self, path: str, chunks: int) -> None:
        self.removed.append(path)
        self.deleted += chunks

    @property
    def report(self) -> DocumentReport:
        return DocumentReport(
            tuple(self.paths["added"]), tuple(self.paths["changed"]), len(self.paths["unchanged"]),
            tuple(self.removed), self.failed, self.skipped, self.written, self.embedded, self.deleted,
        )  # fmt: skip


class Following:
    """Tells how far it has come, if somebody wants to know."""

    def __init__(self, progress: Callable[[Progress], object] | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self._began = time.monotonic()

    def step(self) -> None:
        self._done += 1
        if self._progress:
            self._progress(Progress(self._done, self._total, time.monotonic() - self._began))
