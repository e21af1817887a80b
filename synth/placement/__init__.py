"""Experts and their copies on the ranks of boxes: loads, a published rule, a search, a program. Knows no machine."""
