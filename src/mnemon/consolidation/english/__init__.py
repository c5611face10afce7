"""Just enough English to compare what two texts say: words, measures, clauses. No grammar, no model."""
