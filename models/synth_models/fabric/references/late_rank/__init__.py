"""Method ``late_rank``: an allreduce that one rank joins late."""
