"""Lower bounds with certificates."""
