"""The least-crossing tree as an integer flow."""
