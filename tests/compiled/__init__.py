"""Compiled leaves do what their sources do."""
