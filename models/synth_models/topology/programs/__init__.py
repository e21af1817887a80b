"""Programs: circuits and flow at once."""
