"""Pages: one file each, which needs no network.

``report`` and ``diff`` make pages. ``page`` is the frame of all of them, ``svg`` draws plots, and ``sheet``
makes tables. The panels of a report are in ``head``, ``times``, ``groups`` and ``cluster``. ``embedded``
writes a report into its page as JSON, and reads it again.
"""
