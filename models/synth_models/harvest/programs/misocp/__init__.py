"""Appendix A: the best topologies, exactly."""
