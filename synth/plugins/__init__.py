"""What others add: by entry points of their distributions, or as a file beside an instance."""
