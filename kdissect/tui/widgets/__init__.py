"""What the screens are made of, and none of them alone: tables, trees, bytes, questions."""
