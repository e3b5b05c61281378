"""What every way into a running replica promises, on a real Kubernetes.

Two are tested in `test_container_sessions` instead: connections to ports have no address of their own, and a
kubelet passes on a terminal's size beside its input, so that it comes a moment later.
"""

from tests.jobs.backends.test_sessions import (  # noqa: F401 with the bench of this folder
    test_session_arguments_are_not_expanded_by_any_shell,
    test_session_background_process_survives_line_until_close,
    test_session_close_ends_its_processes_and_leaves_job_running,
    test_session_ends_with_its_job_without_keeping_job_alive,
    test_session_is_refused_where_replica_is_not_running,
    test_session_program_has_separate_stderr_and_end_of_input,
    test_session_signal_reaches_foreground_process,
)
