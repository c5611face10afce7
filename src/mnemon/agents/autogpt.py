"""The state files of AutoGPT's classic agent, read and written.

`state.json` of an agent's folder has changed its shape over time. Understood are

- the profile as `ai_profile`, the older `ai_config`, or on top, as in `ai_settings.yaml` of 0.4;
- the history as `history` or `event_history`, with `episodes` or the older `cycles`, or a plain list;
- an action with `thoughts`, `use_tool` and `use_tools`, with `command`, or with `name`, `args` and `reasoning`;
- a result with its status, without one, or as plain text.

What has no place in an agent or a cycle is kept in the agent's metadata, so that what is written is what was read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson

from mnemon.agents import shapes
from mnemon.errors import InvalidInput, MnemonError
from mnemon.model import Agent, Cycle, CycleStatus
from mnemon.namespaces import check_identifier

KEPT = "autogpt"
"""Under which name an agent's metadata has what only AutoGPT knows."""

_FILES = ("state.json", "ai_settings.yaml", "ai_settings.yml")
_PROFILES = ("ai_profile", "ai_config")
_HISTORIES = ("history", "event_history")
_EPISODES = ("episodes", "cycles")
_OWN = {"goals": "ai_goals", "task": "task"}  # what goes into the directives beside AutoGPT's own
_SIGNS = {"outputs": shapes.success, "reason": shapes.error, "feedback": shapes.interruption}


@dataclass(frozen=True, slots=True)
class Episode:
    """A turn of AutoGPT's agent: an action and, unless it never ended, a result."""

    proposal: dict[str, Any]
    result: dict[str, Any] | None
    summary: str | None


@dataclass(frozen=True, slots=True)
class State:
    """An agent of AutoGPT's, as far as it is understood; `rest` is what is not."""

    agent_id: str | None
    name: str
    role: str
    directives: dict[str, Any]
    config: dict[str, Any]
    episodes: tuple[Episode, ...]
    rest: dict[str, Any]


# ------------------------------------------------------------------------------------------------------- from a file


@dataclass(frozen=True, slots=True)
class Found:
    """What a state file says, and the folder in which the agent worked, if there is one."""

    told: Mapping[str, Any]
    workspace: Path | None = None


def load(path: Path) -> Found:
    """Read a state file, or the one of an agent's folder; `InvalidInput` if it cannot be read as one."""
    file = _find(path) if path.is_dir() else path
    try:
        text = file.read_bytes()
    except (OSError, ValueError) as error:  # a name that no file can have is a ValueError
        raise InvalidInput(f"{str(file)!r} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    found = _parse_yaml(file, text) if file.suffix in (".yaml", ".yml") else _parse_json(file, text)
    if not isinstance(found, Mapping):
        raise InvalidInput(f"{file} is not a state file of AutoGPT: it is no object")
    workspace = file.with_name("workspace")
    return Found(cast("Mapping[str, Any]", found), workspace if workspace.is_dir() else None)


def _find(folder: Path) -> Path:
    for name in _FILES:
        if (folder / name).is_file():
            return folder / name
    raise InvalidInput(f"{folder} has no state file of AutoGPT: there is none of {', '.join(_FILES)} in it")


def _parse_json(path: Path, text: bytes) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"{path} is not a state file of AutoGPT, as it is not JSON: {error}") from None


def _parse_yaml(path: Path, text: bytes) -> object:
    try:
        import yaml
    except ImportError:
        raise InvalidInput(f"{path} needs PyYAML: pip install 'mnemon[yaml]'") from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not a state file of AutoGPT, as it is not YAML: {error}") from None


# ----------------------------------------------------------------------------------------------------------- reading


def read_state(given: Mapping[str, Any]) -> State:
    """What a state file says, as an agent and its cycles; `InvalidInput` if it is no such file."""
    rest = dict(given)
    profile = _taken(rest, _PROFILES)
    if profile is None and "ai_name" in rest:
        profile = {name: rest.pop(name) for name in list(rest) if name.startswith(("ai_", "api_"))}
    history = _taken(rest, _HISTORIES)
    if profile is None and history is None:
        raise InvalidInput("this is not a state file of AutoGPT: it has neither a profile (ai_profile) nor a history")
    profile = _mapping("ai_profile", profile)
    role = profile.pop("ai_role", "")
    agent_id = rest.pop("agent_id", None)
    directives = _mapping("directives", rest.pop("directives", None))
    for name, theirs in _OWN.items():
        told = profile.pop(theirs, None) or rest.pop(theirs, None)
        if told:
            directives[name] = told
    config = _mapping("config", rest.pop("config", None))
    episodes, left = _read_history(history)
    name = profile.pop("ai_name", None) or rest.get("name") or agent_id or "AutoGPT"
    kept = {**rest, **({"ai_profile": profile} if profile else {}), **({"history": left} if left else {})}
    return State(_usable(agent_id), " ".join(str(name).split()), str(role or ""), directives, config, episodes, kept)


def _taken(state: dict[str, Any], names: Sequence[str]) -> Any:
    """The first of several names that has something, taken out."""
    found = [state.pop(name, None) for name in names]
    return next((each for each in found if each is not None), None)


def _mapping(what: str, value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"this is not a state file of AutoGPT: {what} is no object but {value!r:.80}")
    return dict(cast("Mapping[str, Any]", value))


def _usable(agent_id: object) -> str | None:
    try:
        return check_identifier("agent_id", agent_id)
    except MnemonError:
        return None


def _read_history(history: Any) -> tuple[tuple[Episode, ...], dict[str, Any]]:
    """The episodes, and what else the history has."""
    left = {} if isinstance(history, list) else _mapping("history", history)
    items = cast("object", history if isinstance(history, list) else _taken(left, _EPISODES) or [])
    if not isinstance(items, list):
        raise InvalidInput(f"this is not a state file of AutoGPT: its episodes are no list but {items!r:.80}")
    episodes = tuple(_episode(number, item) for number, item in enumerate(cast("list[object]", items), 1))
    left.pop("cursor", None)  # it points behind the last result
    return episodes, {name: value for name, value in left.items() if value}


def _episode(number: int, item: object) -> Episode:
    told = _mapping(f"episode {number}", item)
    action = _taken(told, ("action", "proposal"))
    proposal = {"thoughts": action} if isinstance(action, str) else _mapping(f"the action of episode {number}", action)
    summary = told.get("summary")
    return Episode(proposal or {"thoughts": ""}, _result(told.get("result")), str(summary) if summary else None)


def _result(told: Any) -> dict[str, Any] | None:
    if told is None or not isinstance(told, Mapping):
        return None if told is None else shapes.success(told)
    found = dict(cast("Mapping[str, Any]", told))
    try:
        return shapes.result_of(found)
    except InvalidInput:
        for sign, result in _SIGNS.items():
            if isinstance(found.get(sign), str) or (sign == "outputs" and sign in found):
                return {**found, **result(found[sign])}
        return shapes.success(found)


# ----------------------------------------------------------------------------------------------------------- writing


def write_state(agent: Agent, cycles: Sequence[Cycle]) -> dict[str, Any]:
    """The agent and its standing cycles in the newest shape of the state file."""
    rest = dict(agent.metadata.get(KEPT) or {})
    profile = rest.pop("ai_profile", {})
    history = rest.pop("history", {})
    given = cast("object", agent.directives)
    directives = dict(cast("Mapping[str, Any]", given if isinstance(given, Mapping) else {"directives": given}))
    goals, task = (directives.pop(name, None) for name in _OWN)
    episodes = [{"action": each.proposal, "result": each.result, "summary": each.summary} for each in cycles]
    finished = sum(each.status is not CycleStatus.PROPOSED for each in cycles)
    return {
        **rest,
        "agent_id": agent.id,
        "ai_profile": {"ai_name": agent.name, "ai_role": agent.role, "ai_goals": goals or [], **profile},
        "directives": directives,
        "task": task or "",
        "config": agent.config,
        "history": {"episodes": episodes, "cursor": finished, "pending_user_feedback": [], **history},
    }
