"""How fast Mnemon is, beside the least that the raw driver needs for the same work, in the same run."""
