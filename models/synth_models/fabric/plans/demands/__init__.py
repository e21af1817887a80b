"""What plans of demands between equal boxes are made of."""
