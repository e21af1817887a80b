"""Packing of Steiner trees by column generation, where switches copy and add."""
