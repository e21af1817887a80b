"""What users have today, and greedy algorithms."""
