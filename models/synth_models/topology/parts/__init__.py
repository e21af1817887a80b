"""What several rooms are made of: arcs, symmetries, routings, lifts."""
