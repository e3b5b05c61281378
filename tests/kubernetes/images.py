"""Images of the pods."""
