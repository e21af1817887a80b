"""Networks: directed multigraphs with link bandwidth and latency, their builders and their symmetries."""

from synth.network.network import LinksByNode, Network

__all__ = ["LinksByNode", "Network"]
