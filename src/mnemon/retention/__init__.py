"""Keeping the database within its policies: what is removed, archived, restored, and how quickly all of it grows."""
