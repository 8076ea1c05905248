"""The user's settings of the screens, and what the screens keep from one run to the next.

Nothing here imports Textual: the command line uses these modules too.
"""
