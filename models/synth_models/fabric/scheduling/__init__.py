"""From transfers to start times: routes, reservations, list scheduling, insertion, timetables."""
