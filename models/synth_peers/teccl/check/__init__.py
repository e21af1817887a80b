"""The check of plans in epochs, and of proofs that so few are not enough; imports no method."""
