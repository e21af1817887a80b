"""Concurrent flow: the fluid program, its routes, and schedules made of them."""
