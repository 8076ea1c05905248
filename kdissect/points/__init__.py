"""One traffic that was captured at several points: each exchange once."""
