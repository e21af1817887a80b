"""The fewest steps of any schedule, as a time-expanded constraint program."""
