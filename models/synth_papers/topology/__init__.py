"""The page of the topology family: published topologies beside ours."""
