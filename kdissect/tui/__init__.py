"""The terminal screens.

What they show is in :mod:`kdissect.feed`, which needs no Textual. The screens hold no decoding. They show the
index, and read one exchange at a time from the spool when it is to be shown.
"""
