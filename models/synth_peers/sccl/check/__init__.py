"""The check of plans in steps, and of proofs that a question has no answer; imports no method."""
