"""What many memories become: summaries, facts, and fewer memories that agree."""
