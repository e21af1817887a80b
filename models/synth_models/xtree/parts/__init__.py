"""What several rooms of this family are made of."""
