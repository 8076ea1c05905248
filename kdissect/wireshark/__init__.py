"""kdissect inside Wireshark: a plug-in that shows what it found, and interfaces that it captures from."""
