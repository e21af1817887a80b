"""The one search for routes: between two ranks, out of a rank, between boxes, in turn."""
