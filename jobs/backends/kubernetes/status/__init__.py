"""The state of an attempt: from its pods, and from what the console recorded of them."""
