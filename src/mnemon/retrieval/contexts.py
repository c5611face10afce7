"""Gathering what an agent needs to know for a question, to be packed into a budget of tokens."""

from collections.abc import Sequence

from mnemon.access import Access
from mnemon.artifacts import ArtifactService
from mnemon.errors import AccessDenied, SessionNotFound
from mnemon.model import ArtifactReference, Context, Event, Session
from mnemon.namespaces import EVERYTHING
from mnemon.ports import Runner, Scope
from mnemon.retrieval.context import pack
from mnemon.retrieval.recall import Recall
from mnemon.scopes import scope_of
from mnemon.sessions import SessionService
from mnemon.settings import Settings
from mnemon.tokens import counter

_EVENTS = 100
_ARTIFACTS = 50
_MEMORIES = 50


class Contexts:
    """Puts contexts together, as one caller may see them."""

    def __init__(
        self,
        sessions: SessionService,
        artifacts: ArtifactService,
        recall: Recall,
        access: Access,
        settings: Settings,
        runner: Runner,
    ) -> None:
        self._sessions = sessions
        self._artifacts = artifacts
        self._recall = recall
        self._access = access
        self._settings = settings
        self._runner = runner

    async def context(
        self, query: str, session_id: str | None, namespaces: str | Sequence[str] | None, budget: int
    ) -> Context:
        """State, recent events and artifacts of the session, and memories that answer the question."""
        session = None if session_id is None else await self._session(session_id)
        hits = await self._recall.recall(query, self._scope(session, namespaces), k=_MEMORIES)
        events: Sequence[Event] = session.events if session else ()
        state = session.state if session else {}
        artifacts = await self._references(session.id) if session else ()
        return await self._runner.aside(
            lambda: pack(
                query, state=state, events=events, hits=hits, artifacts=artifacts, budget=budget, counter=counter()
            )
        )

    async def _references(self, session_id: str) -> Sequence[ArtifactReference]:
        """The session's files that were saved last."""
        found = await self._artifacts.recent(session_id, _ARTIFACTS)
        return [ArtifactReference(each.name, each.version, each.url, each.size, each.content_type) for each in found]

    async def _session(self, session_id: str) -> Session:
        session = await self._sessions.get_session(session_id, last=_EVENTS)
        if session is None:
            raise SessionNotFound(f"no session {session_id!r}; create it with create_session")
        return session

    def _scope(self, session: Session | None, namespaces: str | Sequence[str] | None) -> Scope:
        """What was asked for; else everything that has to do with the session, or everything.

        Who may see a session may see what was said in it.
        """
        longest = self._settings.max_namespace_length
        if namespaces is not None:
            return scope_of(self._access, namespaces, longest)
        if session is None:
            return scope_of(self._access, EVERYTHING, longest)
        about = [f"user:{session.user_id}", f"app:{session.app_name}"]
        about += [f"project:{session.project_id}"] if session.project_id else []
        open_to_caller = [each for each in about if self._opens(each)]
        found = scope_of(self._access, open_to_caller, longest).prefixes if open_to_caller else ()
        return Scope((*found, f"session:{session.id}"))

    def _opens(self, namespace: str) -> bool:
        try:
            self._access.within(namespace, "read")
        except AccessDenied:
            return False
        return True
