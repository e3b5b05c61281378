"""A job's way from state to state: what may follow what, why it waits, what comes after it."""
