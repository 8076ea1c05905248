"""The memory of one connection: what it speaks, which response answers which request."""
