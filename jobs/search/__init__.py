"""Search of jobs: the query line that pages, API and command line share, and pages of its results."""
