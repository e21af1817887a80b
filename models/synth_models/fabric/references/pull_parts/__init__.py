"""What method ``pull`` is made of: routes, reservations of links, growing of trees, large-neighbourhood search."""
