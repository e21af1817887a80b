"""Method ``slots``: blocks straight from rank to rank by a timetable."""
