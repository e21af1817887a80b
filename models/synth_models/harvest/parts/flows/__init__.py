"""How much of a step a topology carries: routes and rates."""
