"""kdissect inside Wireshark: a plug-in that shows kdissect's results, and interfaces that capture with
kdissect."""
