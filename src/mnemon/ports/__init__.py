"""The interfaces between Mnemon and the technology that it runs on. A module for each kind."""

from mnemon.ports.backend import Backend
from mnemon.ports.contents import PIECE, ContentStore, ContentWriter, Exhibit, Keeping, Showcase
from mnemon.ports.database import Database, Dialect, Follower, Params, Raced, Row, Store, Transaction, Unit
from mnemon.ports.indexes import Indexes, Scope, VectorMirror, VectorRow, WordIndex, WordStatistics
from mnemon.ports.keys import KeyProvider, Wrapped
from mnemon.ports.models import Completion, Embedder, EmbeddingCache, Expander, LanguageModel, Message, Reranker
from mnemon.ports.running import Runner
from mnemon.ports.vectors import Vector, VectorMemory, VectorQuery, VectorRecord
from mnemon.ports.working import CopyChange, CopyPlace, CopyRead, WorkingCopy

__all__ = [
    "PIECE",
    "Backend",
    "Completion",
    "ContentStore",
    "ContentWriter",
    "CopyChange",
    "CopyPlace",
    "CopyRead",
    "Database",
    "Dialect",
    "Embedder",
    "EmbeddingCache",
    "Exhibit",
    "Expander",
    "Follower",
    "Indexes",
    "Keeping",
    "KeyProvider",
    "LanguageModel",
    "Message",
    "Params",
    "Raced",
    "Reranker",
    "Row",
    "Runner",
    "Scope",
    "Showcase",
    "Store",
    "Transaction",
    "Unit",
    "Vector",
    "VectorMemory",
    "VectorMirror",
    "VectorQuery",
    "VectorRecord",
    "VectorRow",
    "WordIndex",
    "WordStatistics",
    "WorkingCopy",
    "Wrapped",
]
