"""Workspaces: an agent's own file trees, with snapshots of them."""

from mnemon.workspaces.service import WorkspaceService

__all__ = ["WorkspaceService"]
