"""Encryption at rest: values sealed by data keys, which are wrapped by master keys that are never in the database."""

from mnemon.encryption.tables import TABLES, Table

__all__ = ["TABLES", "Table"]
