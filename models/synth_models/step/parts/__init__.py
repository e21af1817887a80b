"""What methods and bounds share."""
