"""Batches: many runs in one folder, on this machine or as Slurm job arrays.

A batch folder holds ``batch.json`` (what was asked for and what was submitted), ``records/`` (the records), ``tasks/``
(one line for each thing that happens in a task) and ``slurm/`` (submitit's files, pruned once a task's runs are done).
"""
