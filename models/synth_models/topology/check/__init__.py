"""The check: replay and bounds' certificates, from the instance alone; imports no method."""
