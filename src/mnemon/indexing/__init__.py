"""Keeping every index in step with the journal, and asking the right one."""
