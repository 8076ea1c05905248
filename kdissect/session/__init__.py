"""The state of one connection: its protocol, and which response answers which request."""
