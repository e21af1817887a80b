"""Solvers: which there are, and one place per interface that maps their statuses to ours."""
