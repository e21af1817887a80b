"""Published topologies and ours."""
