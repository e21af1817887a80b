"""Method ``ring``: cycles through all ranks, and how they are found."""
