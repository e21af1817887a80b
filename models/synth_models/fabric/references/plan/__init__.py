"""Method ``plan``: plans of many demands on one machine."""
