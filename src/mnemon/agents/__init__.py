"""Agents: who they are, and what they proposed and did, cycle by cycle."""

from mnemon.agents.service import AgentService

__all__ = ["AgentService"]
