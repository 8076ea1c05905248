"""Exchanges, connections, records and faults → output: lines, trees, tables, JSON."""
