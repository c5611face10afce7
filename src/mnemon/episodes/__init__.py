"""Episodes: what happened, kept as it was told until consolidation makes memories of it."""

from mnemon.episodes.service import EpisodeService

__all__ = ["EpisodeService"]
