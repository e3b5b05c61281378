"""Which address of the jobs' pages leads where."""

from __future__ import annotations

from django.urls import path

from jobs.views import (
    actions,
    check,
    connect,
    drafts,
    endpoints,
    files,
    job,
    jobs,
    live,
    logs,
    new,
    nodes,
    notices,
    quotas,
    terminal,
)

urlpatterns = [
    path("live/", live.live, name="live"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/new", new.new, name="job_new"),
    path("jobs/check", check.check, name="job_check"),
    path("jobs/convert", check.convert, name="job_convert"),
    path("jobs/mend", check.mend, name="job_mend"),
    path("jobs/stop", actions.stop_many, name="jobs_stop"),
    path("jobs/<slug:public_id>/", job.job, name="job"),
    path("jobs/<slug:public_id>/logs", logs.logs, name="job_logs"),
    path("jobs/<slug:public_id>/stream", live.job_stream, name="job_stream"),
    path("jobs/<slug:public_id>/file", files.job_file, name="job_file"),
    path("jobs/<slug:public_id>/stop", actions.stop, name="job_stop"),
    path("jobs/<slug:public_id>/hold", actions.hold, name="job_hold"),
    path("jobs/<slug:public_id>/release", actions.release, name="job_release"),
    path("jobs/<slug:public_id>/instead", actions.instead, name="job_instead"),
    path("jobs/<slug:public_id>/retry", actions.retry, name="job_retry"),
    path("jobs/<slug:public_id>/share", actions.share, name="job_share"),
    path("jobs/<slug:public_id>/delete", actions.delete, name="job_delete"),
    path("jobs/<slug:public_id>/key", connect.job_key, name="job_key"),
    path("jobs/<slug:public_id>/terminals", terminal.new_terminal, name="terminal_new"),
    path("entries/<int:pk>/end", connect.end_entry, name="entry_end"),
    path("endpoints/<slug:slug>/open", endpoints.endpoint_open, name="endpoint_open"),
    path("drafts/", drafts.listed, name="drafts"),
    path("drafts/save", drafts.save_draft, name="draft_save"),
    path("drafts/<int:pk>/versions", drafts.versions, name="draft_versions"),
    path("drafts/<int:pk>/file", drafts.draft_file, name="draft_file"),
    path("drafts/<int:pk>/delete", drafts.delete_draft, name="draft_delete"),
    path("notices/", notices.notices, name="notices"),
    path("notices/bell", notices.bell, name="notices_bell"),
    path("notices/read", notices.mark_read, name="notices_read"),
    path("nodes/", nodes.nodes, name="nodes"),
    path("quotas/", quotas.quotas, name="quotas"),
]
