"""Method ``symmetric``: one origin's timetable, moved to all others."""
