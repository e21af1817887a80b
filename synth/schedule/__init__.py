"""Collectives, schedules, their replay and their timing."""
