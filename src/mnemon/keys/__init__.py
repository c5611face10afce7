"""Looking after keys: which there are and what they seal, rotating them, and sealing anew what is there already."""

from mnemon.keys.service import KeyService

__all__ = ["KeyService"]
