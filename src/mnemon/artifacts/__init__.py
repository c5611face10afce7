"""Artifacts: named, versioned files of sessions. Their records are in the database, their contents outside."""

from mnemon.artifacts.service import ArtifactService

__all__ = ["ArtifactService"]
