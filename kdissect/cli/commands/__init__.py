"""The commands: a module or a package for each, which is imported when the command is run."""
