"""Exchanges, connections, records and faults → something to look at: lines, trees, tables, JSON."""
