"""What Python hands out as pandas frames: numbers in the columns, units where they are shown."""
