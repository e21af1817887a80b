"""The open library: best-known values with their certificates, and what others hand in."""
