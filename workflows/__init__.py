"""Deterministic code: the AgentRun workflow and all that may run inside it."""
