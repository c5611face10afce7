"""The shapes of proposals and results, which are those of AutoGPT's classic agent.

A proposal is any JSON object. What it has of `thoughts`, `reasoning`, `plan`, `use_tool` or `use_tools` is understood,
and so are the older `command` and `name` with `args`. A result is one of

- `{"status": "success", "outputs": …}`
- `{"status": "error", "reason": "…", "error": …}`
- `{"status": "interrupted_by_human", "feedback": "…"}`

with whatever else it has. Either may also come as an object of pydantic's, as AutoGPT has them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from mnemon.errors import InvalidInput, InvalidStatus, InvalidValue
from mnemon.model import Cycle, CycleStatus
from mnemon.texts import mappings_in, text_of

_RESULTS = (CycleStatus.SUCCESS, CycleStatus.ERROR, CycleStatus.INTERRUPTED)
_SAID = {CycleStatus.ERROR: "reason", CycleStatus.INTERRUPTED: "feedback"}  # what a result must say in words


def proposal_of(given: object) -> dict[str, Any]:
    """A proposal as a JSON object; a plain text is its thoughts."""
    if isinstance(given, str) and given:
        return {"thoughts": given}
    found = _object(given)
    if not found:
        raise InvalidValue(f"a proposal is an object with thoughts, a plan or a tool's call, not {given!r:.80}")
    return found


def result_of(given: object) -> dict[str, Any]:
    """A result as a JSON object with its status; an exception is an error."""
    if isinstance(given, BaseException):
        return error(given)
    found = _object(given)
    if not found:
        raise InvalidValue(f"a result is an object with a status, not {given!r:.80}")
    status = found.get("status")
    if status not in _RESULTS:
        raise InvalidStatus(f"{status!r:.80} is not the status of a result; use one of {', '.join(_RESULTS)}")
    said = _SAID.get(CycleStatus(status))
    if said and not isinstance(found.get(said), str):
        raise InvalidValue(f"a result that is {status} needs its {said!r} as text, not {found.get(said)!r:.80}")
    return found if said else {"outputs": None, **found}


def success(outputs: Any) -> dict[str, Any]:
    """The result of an action that was done."""
    return {"status": str(CycleStatus.SUCCESS), "outputs": outputs}


def error(reason: str | BaseException, details: Any = None) -> dict[str, Any]:
    """The result of an action that failed; an exception tells its own details."""
    if isinstance(reason, BaseException):
        details = details or {
            "exception_type": type(reason).__name__,
            "message": str(reason),
            "args": [text_of(str(each)) for each in reason.args],
            "repr": repr(reason),
        }
        reason = str(reason) or type(reason).__name__
    return {"status": str(CycleStatus.ERROR), "reason": reason, "error": details}


def interruption(feedback: str) -> dict[str, Any]:
    """The result of an action that somebody stopped, and what they said."""
    return {"status": str(CycleStatus.INTERRUPTED), "feedback": feedback}


def addresses_of(artifacts: Iterable[object]) -> list[str]:
    """The URLs of artifacts, which come as URLs or as whatever has a `url`."""
    if isinstance(artifacts, str):
        raise InvalidInput("artifacts is a list, of URLs or of what `artifacts.save` returned")
    found = [each if isinstance(each, str) else getattr(each, "url", None) for each in artifacts]
    if not all(isinstance(each, str) and each for each in found):
        raise InvalidInput(
            f"an artifact is named by its URL, or by what `artifacts.save` returned, not {artifacts!r:.80}"
        )
    return cast("list[str]", found)


def told(cycle: Cycle) -> str:
    """What a cycle was about, as text: its summary, or else the action and what came of it."""
    if cycle.summary:
        return cycle.summary
    done = action_of(cycle.proposal)
    if cycle.result is None:
        return done
    came = outcome_of(cycle.result)
    return f"{done}: {came}" if came else done


def action_of(proposal: Mapping[str, Any]) -> str:
    """What is proposed, in a line: the tools' calls, or else the thoughts."""
    calls = [_call(each) for each in _calls(proposal)]
    return ", ".join(calls) or text_of(proposal.get("thoughts") or proposal, 200)


def outcome_of(result: Mapping[str, Any]) -> str:
    """What came of it, in words."""
    status = CycleStatus(result["status"])
    if status is CycleStatus.SUCCESS:
        return "" if result["outputs"] is None else text_of(result["outputs"])
    said: str = result[_SAID[status]]
    return f"failed, {said}" if status is CycleStatus.ERROR else f"interrupted, {said}"


def _calls(proposal: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    several = mappings_in(proposal.get("use_tools"))
    return several or mappings_in([proposal.get("use_tool"), proposal.get("command")]) or mappings_in([proposal])


def _call(call: Mapping[str, Any]) -> str:
    name = call.get("name")
    if not isinstance(name, str) or not name:
        return ""
    given = call.get("arguments", call.get("args"))
    arguments = cast("Mapping[str, Any]", given if isinstance(given, Mapping) else {})
    return f"{name}({', '.join(f'{key}={text_of(value, 80)!r}' for key, value in arguments.items())})"


def _object(given: object) -> dict[str, Any] | None:
    if isinstance(given, Mapping):
        return dict(cast("Mapping[str, Any]", given))
    dump = getattr(given, "model_dump", None)
    return dump(mode="json") if callable(dump) else None  # pyright: ignore[reportReturnType]
