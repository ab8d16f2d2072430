"""Every target of fuzzing; to add one, write it beside its like and name it here."""

from __future__ import annotations

from tests.fuzz import documents, expressions, graphs, programs, recordings

TARGETS = {
    target.name: target
    for target in (
        *documents.TARGETS,
        *recordings.TARGETS,
        *expressions.TARGETS,
        *graphs.TARGETS,
        *programs.TARGETS,
    )
}
