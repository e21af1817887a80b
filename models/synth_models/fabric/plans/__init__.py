"""What methods propose, and what several of them are made of."""
