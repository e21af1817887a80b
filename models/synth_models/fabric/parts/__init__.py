"""What several rooms are made of."""
