"""What callers say of agents and cycles, checked and turned into rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mnemon.access import Access
from mnemon.agents import shapes
from mnemon.agents.rows import AgentRow, CycleRow
from mnemon.clock import Clock
from mnemon.errors import InvalidInput
from mnemon.model import CycleStatus
from mnemon.namespaces import check_identifier, check_key, check_namespace
from mnemon.settings import Settings
from mnemon.values import check_text, decode, encode, encode_mapping, encode_metadata


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be recorded of a cycle; None where nothing is said of it."""

    result: str
    status: str
    summary: str | None
    artifacts: str | None

    def agrees_with(self, row: CycleRow) -> bool:
        """Whether the row says the same, as far as this says anything."""
        said = ((self.summary, row.summary), (self.artifacts, row.artifacts))
        same = all(mine is None or mine == theirs for mine, theirs in said)
        return same and row.result is not None and decode(row.result) == decode(self.result)


class Drafts:
    """Makes rows of what one caller says."""

    def __init__(self, clock: Clock, settings: Settings, access: Access) -> None:
        self._clock = clock
        self._settings = settings
        self._access = access

    def agent(
        self, agent_id: str | None, namespace: str | None, workspace_id: str | None, now: int, **columns: Any
    ) -> AgentRow:
        """A new agent; the caller must be allowed to write where it is to be."""
        identifier = self._clock.new_id() if agent_id is None else check_identifier("agent_id", agent_id)
        place = f"app:agents:{identifier}" if namespace is None else namespace
        self._access.require(check_namespace(place, self._settings.max_namespace_length), "write")
        usual = {"role": "", "directives": "{}", "config": "{}", "metadata": "{}"}
        return AgentRow(
            id=identifier, namespace=place, workspace_id=workspace_id, version=1, cycle_count=0,
            created_at=now, updated_at=now, **{**usual, **self.columns(**columns)},
        )  # fmt: skip

    def columns(self, *, name: Any, role: Any, directives: Any, config: Any, metadata: Any) -> dict[str, Any]:
        """The columns of what is given of an agent."""
        limit = self._settings.max_value_bytes
        found: dict[str, Any] = {}
        if name is not None:
            found["name"] = check_key("the agent's name", name, self._settings.max_key_length)
        if role is not None:
            found["role"] = self.text("the agent's role", role)
        if directives is not None:
            found["directives"] = encode("the agent's directives", directives, limit)
        if config is not None:
            found["config"] = encode_mapping("the agent's config", config, limit)
        if metadata is not None:
            found["metadata"] = encode_metadata(metadata, limit)
        return found

    def proposal(self, given: Any) -> str:
        """A proposal as JSON."""
        return encode("the proposal", shapes.proposal_of(given), self._settings.max_value_bytes)

    def outcome(self, result: Any, artifacts: Iterable[Any] | None, summary: str | None) -> Outcome:
        """What came of a cycle."""
        found, limit = shapes.result_of(result), self._settings.max_value_bytes
        return Outcome(
            encode("the result", found, limit),
            found["status"],
            None if summary is None else self.text("the summary", summary),
            None if artifacts is None else encode("the artifacts", shapes.addresses_of(artifacts), limit),
        )

    def cycle(
        self, agent: AgentRow, number: int, proposal: dict[str, Any], result: dict[str, Any] | None, now: int
    ) -> CycleRow:
        """A cycle of which all is known that will ever be."""
        outcome = None if result is None else self.outcome(result, None, None)
        return CycleRow(
            agent_id=agent.id, cycle=number, session_id=None, task_id=None, proposal=self.proposal(proposal),
            status=outcome.status if outcome else str(CycleStatus.PROPOSED), result=outcome.result if outcome else None,
            summary=None, artifacts="[]", workspace_id=None, snapshot=None, proposed_at=now,
            finished_at=now if outcome else None, undone_at=None,
        )  # fmt: skip

    def text(self, what: str, given: object) -> str:
        return check_text(what, given, self._settings.max_value_bytes)


def check_number(number: object, what: str = "a cycle's number") -> int:
    """The number of a cycle, or the 0 before the first; or that of a snapshot."""
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**63:
        raise InvalidInput(f"{what} is a whole number from 1, not {number!r:.80}")
    return number
