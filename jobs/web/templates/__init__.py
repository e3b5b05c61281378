"""The pages of job templates."""
