"""The screens that the numbers lead to."""
