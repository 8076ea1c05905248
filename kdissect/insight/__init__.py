"""Rows of facts ─► findings: what is wrong, why, and what to do.

    judge(facts) ─► Judged(findings, not_judged)

A rule is one function in :mod:`kdissect.insight.rules`, with a page of text in ``pages/ID.txt``. It sees rows
of statistics and the :class:`~kdissect.insight.context.JudgingContext` of the capture, never a byte.
"""
