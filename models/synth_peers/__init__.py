"""The questions that peers ask about a machine, one sub-package per peer, joined to family fabric by entry points."""
