"""State files in the shapes that AutoGPT's classic agent had over time; all of them were written for the tests."""

import json
from pathlib import Path
from typing import Any


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def proposal(text: str, tool: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """An action as the newest ones are."""
    return {
        "thoughts": {
            "observations": "",
            "text": text,
            "reasoning": f"because of the task: {text}",
            "self_criticism": "I could be quicker.",
            "plan": ["look at the orders", "write the report"],
            "speak": text,
        },
        "use_tool": tool,
        "use_tools": [tool, *others] if others else None,
        "raw_message": {
            "role": "assistant",
            "content": text,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {**tool, "arguments": "{}"}}],
        },
    }


NEWEST: dict[str, Any] = {
    "name": "Agent",
    "description": "Executes a task.",
    "agent_id": "OrderGPT-1f2e3d4c",
    "ai_profile": {
        "ai_name": "OrderGPT",
        "ai_role": "a clerk who counts orders",
        "ai_goals": ["Count the orders", "Write a report"],
        "api_budget": 0.0,
    },
    "directives": {
        "resources": ["Files of the workspace"],
        "constraints": ["Only use the commands listed below"],
        "best_practices": ["Review what you did"],
    },
    "task": "Write report.md about orders.csv",
    "config": {"allow_fs_access": False, "fast_llm": "small", "smart_llm": "large", "cycle_count": 4},
    "history": {
        "episodes": [
            {
                "action": proposal("I list the files.", call("list_folder", folder=".")),
                "result": {"outputs": ["orders.csv"], "status": "success"},
                "summary": "Listed the workspace: orders.csv.",
            },
            {
                "action": proposal("I read both.", call("read_file", filename="a"), call("read_file", filename="b")),
                "result": {
                    "reason": "No such file: a",
                    "error": {
                        "args": ["No such file: a"], "message": "No such file: a",
                        "exception_type": "CommandExecutionError", "repr": "CommandExecutionError('No such file: a')",
                    },
                    "status": "error",
                },
                "summary": None,
            },
            {
                "action": proposal("I ask the whole web.", call("web_search", query="orders")),
                "result": {"feedback": "Stay with the file", "status": "interrupted_by_human"},
                "summary": None,
            },
            {
                "action": proposal("I read the orders.", call("read_file", filename="orders.csv")),
                "result": None,
                "summary": None,
            },
        ],
        "cursor": 3,
        "pending_user_feedback": ["be brief"],
    },
    "context": {"items": []},
}  # fmt: skip

# 0.5.0: the action is a call with a reason, episodes have no summary.
NAMED_ACTIONS: dict[str, Any] = {
    "agent_id": "MapGPT-00aa11bb",
    "ai_profile": {"ai_name": "MapGPT", "ai_role": "draws maps", "ai_goals": []},
    "task": "Draw a map",
    "history": {
        "episodes": [
            {
                "action": {
                    "name": "write_file",
                    "args": {"filename": "map.txt", "contents": "N"},
                    "reasoning": "I must",
                },
                "result": {"outputs": "File written", "status": "success"},
            },
            {"action": {"name": "finish", "args": {"reason": "done"}, "reasoning": "It is done"}, "result": None},
        ],
        "cursor": 1,
    },
}

# Before that: `ai_config`, `event_history`, `cycles`, commands, results in words.
OLDEST: dict[str, Any] = {
    "ai_config": {"ai_name": "Old\nGPT", "ai_role": "an elder", "ai_goals": ["Remember"], "api_budget": 1.5},
    "event_history": {
        "cycles": [
            {"action": {"command": {"name": "google", "args": {"query": "x"}}}, "result": "Nothing was found"},
            {"action": "I only thought", "result": {"outputs": 3}},
            {"action": {"command": {"name": "sleep", "args": {}}}, "result": None},
            {"action": {"command": {"name": "wake", "args": {}}}, "result": {"reason": "too late"}},
            {"result": {"status": "did_something_else", "code": 7}},
        ]
    },
}

SETTINGS_YAML = """
ai_goals:
- Find the cheapest ferry
ai_name: FerryGPT
ai_role: compares ferries
api_budget: 2.5
"""


def save(folder: Path, state: dict[str, Any]) -> Path:
    """The state as a file in the folder of its agent."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "state.json"
    file.write_text(json.dumps(state, indent=2))
    return file
