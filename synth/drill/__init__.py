"""Failures before they happen: what each costs, and a drawer of schedules that covers all of them."""
