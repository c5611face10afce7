"""Documents: files and texts that are indexed as chunks, which are memories."""

from mnemon.documents.service import DocumentService

__all__ = ["DocumentService"]
