"""Frameworks: variables and commands by which the replicas of a job work together; standard library only."""
