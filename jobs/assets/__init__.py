"""Assets: who sees and keeps them, and how the ids in a job file become places, addresses and logins."""
