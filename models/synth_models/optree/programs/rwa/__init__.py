"""Routes and wavelengths of one stage."""
