"""Runs and how they are done: ``runs`` says what there is to run, ``pool`` does it, each run in a process of its own.

Three kinds of process: the *supervisor* (the command) hands tasks to its *guards*, one for each run that may go on at a
time; a guard starts the run's own process, the *child*, and enforces the limits. What they say is in ``messages``.
"""

may_fork = False
"""Whether guards may be forked from this process: it is the command ``synth``, and not somebody's who imports this."""
