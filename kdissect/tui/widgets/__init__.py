"""Widgets that several screens use: tables, trees, bytes, questions."""
