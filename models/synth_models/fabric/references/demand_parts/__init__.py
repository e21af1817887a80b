"""What schedules of unequal demands between equal boxes are made of."""
