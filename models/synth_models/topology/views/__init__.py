"""Topologies for people."""
