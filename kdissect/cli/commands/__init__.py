"""The commands: one module or package for each, which is imported when the command runs."""
