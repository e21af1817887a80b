"""What runs leave on disk: a record, folders and packed collections of them, the check of what they state."""
