"""Work on jobs in workers: admission, sending, observation, retries, idle jobs and cleanup."""
