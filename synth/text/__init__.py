"""Texts that come in: files that people name, and quantities as they write them."""
