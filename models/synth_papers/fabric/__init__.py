"""What is published elsewhere, beside ours: throughput, small messages, what users have today, failures."""
