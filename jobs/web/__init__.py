"""The pages about jobs: server-rendered, each with its fragments, one permission check for both."""
