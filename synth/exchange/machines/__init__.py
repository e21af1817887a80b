"""Machines that come in: one module per format of topology, one form
(:class:`~synth.exchange.machines.machine.Machine`).

:mod:`~synth.exchange.machines.formats` lists the formats and tells them apart by content; what a file leaves open is
``None`` until :mod:`~synth.exchange.machines.completion` puts in what a person supplies, or refuses.
"""
