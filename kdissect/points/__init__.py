"""The same traffic, captured at several points: each exchange is given once."""
