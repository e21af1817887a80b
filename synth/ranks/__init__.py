"""Schedules run by real processes, one a rank, with real data: what ``synth run`` does.

``program``: what every rank does, from a schedule's transfers or an algorithm's steps. ``rank``: one rank doing it over
a port: ``shared_memory`` between processes of one machine, ``mpi`` between those that mpirun or srun has started.
``data`` and ``goals`` say what every buffer holds before and after, from the collective's definition alone: neither
they nor the ranks use the check.
"""
