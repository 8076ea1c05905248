"""What the index and the statistics hold, as rows of tables."""
