"""What resources cost and did cost."""
