"""Finding the right memories, and packing what an agent needs into a budget of tokens."""
