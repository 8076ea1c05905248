"""What users set for the screens, and what the screens keep from one run to the next.

Nothing here imports Textual: the command line reads these modules too.
"""
