"""TE-CCL's time-expanded programs: the fewest epochs of a fixed length, and the schedule in seconds made of them."""
