"""URLs of the APIs."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.views import SpectacularAPIView

from jobs.api import schemas
from jobs.api.native import (
    account,
    assets,
    drafts,
    dry_runs,
    external_jobs,
    folders,
    job_actions,
    job_files,
    jobs,
    lineage,
    my_templates,
    notifications,
    parts,
    resources,
    streams,
    sweeps,
    templates,
    uploads,
    usage,
)
from jobs.api.native.base import MOST_LISTED_BYTES
from jobs.api.vendors import registry
from jobs.live.bodies import takes_at_most, takes_body

V1 = "api/console/v1/"
JOB = f"{V1}jobs/<slug:public_id>"

urlpatterns = [
    path(f"{V1}jobs", jobs.Jobs.as_view(), name="api_jobs"),
    path(JOB, jobs.OneJob.as_view(), name="api_job"),
    path(f"{JOB}/replicas", parts.Replicas.as_view(), name="api_job_replicas"),
    path(f"{JOB}/tasks", parts.Tasks.as_view(), name="api_job_tasks"),
    path(f"{JOB}/endpoints", parts.Endpoints.as_view(), name="api_job_endpoints"),
    path(f"{JOB}/stop", job_actions.Stop.as_view(), name="api_job_stop"),
    path(f"{JOB}/file", jobs.JobFileView.as_view(), name="api_job_file"),
    path(f"{JOB}/again", job_actions.RetryJob.as_view(), name="api_job_again"),
    path(f"{JOB}/hold", job_actions.Hold.as_view(), name="api_job_hold"),
    path(f"{JOB}/release", job_actions.Release.as_view(), name="api_job_release"),
    path(f"{JOB}/keep", job_actions.Keep.as_view(), name="api_job_keep"),
    path(f"{JOB}/extend", job_actions.Extend.as_view(), name="api_job_extend"),
    path(f"{JOB}/suggestions", job_actions.Suggestions.as_view(), name="api_job_suggestions"),
    path(f"{JOB}/replace", job_actions.Replace.as_view(), name="api_job_replace"),
    path(f"{JOB}/history", lineage.History.as_view(), name="api_job_history"),
    path(f"{JOB}/difference", lineage.Difference.as_view(), name="api_job_difference"),
    path(f"{JOB}/events", parts.Events.as_view(), name="api_job_events"),
    path(f"{JOB}/logs", parts.Logs.as_view(), name="api_job_logs"),
    path(f"{JOB}/files", folders.Files.as_view(), name="api_job_files"),
    path(f"{JOB}/files/content", takes_body("PUT")(folders.Content.as_view()), name="api_job_files_content"),
    path(f"{JOB}/files/zip", folders.Zip.as_view(), name="api_job_files_zip"),
    path(f"{JOB}/files/folder", folders.NewFolder.as_view(), name="api_job_files_folder"),
    path(f"{JOB}/files/rename", folders.Rename.as_view(), name="api_job_files_rename"),
    path(f"{JOB}/stream", streams.stream, name="api_job_stream"),
    path(f"{V1}sweeps", sweeps.Sweeps.as_view(), name="api_sweeps"),
    path(f"{V1}sweeps/<slug:public_id>", sweeps.OneSweep.as_view(), name="api_sweep"),
    path(f"{V1}sweeps/<slug:public_id>/file", sweeps.SweepFileView.as_view(), name="api_sweep_file"),
    path(f"{V1}sweeps/<slug:public_id>/stop", sweeps.Stop.as_view(), name="api_sweep_stop"),
    path(f"{V1}sweeps/<slug:public_id>/again", sweeps.RetrySweep.as_view(), name="api_sweep_again"),
    path(f"{V1}external-jobs", external_jobs.ExternalJobs.as_view(), name="api_external_jobs"),
    path(
        f"{V1}external-jobs/<int:job>/log", external_jobs.ExternalLog.as_view(), name="api_external_job_log"
    ),
    path(f"{V1}drafts", drafts.Drafts.as_view(), name="api_drafts"),
    path(f"{V1}drafts/<int:draft>", drafts.OneDraft.as_view(), name="api_draft"),
    path(f"{V1}drafts/<int:draft>/versions", drafts.DraftVersions.as_view(), name="api_draft_versions"),
    path(f"{V1}dry-runs", dry_runs.DryRuns.as_view(), name="api_dry_runs"),
    path(f"{V1}dry-runs/<int:dry_run>", dry_runs.OneDryRun.as_view(), name="api_dry_run"),
    path(f"{V1}quotas", resources.Quotas.as_view(), name="api_quotas"),
    path(f"{V1}nodes", resources.Nodes.as_view(), name="api_nodes"),
    path(f"{V1}me", account.Account.as_view(), name="api_me"),
    path(f"{V1}tokens", account.Tokens.as_view(), name="api_tokens"),
    path(f"{V1}tokens/<int:token>", account.OneToken.as_view(), name="api_token"),
    path(f"{V1}ssh-keys", account.Keys.as_view(), name="api_ssh_keys"),
    path(f"{V1}ssh-keys/<int:key>", account.OneKey.as_view(), name="api_ssh_key"),
    path(f"{V1}secrets", account.Secrets.as_view(), name="api_secrets"),
    path(f"{V1}secrets/<slug:name>", account.OneSecret.as_view(), name="api_secret"),
    path(f"{V1}notifications", notifications.Notifications.as_view(), name="api_notifications"),
    path(
        f"{V1}notifications/read",
        notifications.ReadNotifications.as_view(),
        name="api_notifications_read",
    ),
    path(f"{V1}channels", notifications.Channels.as_view(), name="api_channels"),
    path(f"{V1}channels/<int:channel>", notifications.OneChannel.as_view(), name="api_channel"),
    path(f"{V1}channels/<int:channel>/test", notifications.ChannelTest.as_view(), name="api_channel_test"),
    path(f"{V1}templates", templates.Templates.as_view(), name="api_templates"),
    path(
        f"{V1}templates/<slug:template>/file", templates.TemplateFileView.as_view(), name="api_template_file"
    ),
    path(f"{V1}templates/<slug:template>", my_templates.OneTemplate.as_view(), name="api_template"),
    path(
        f"{V1}templates/<slug:template>/versions",
        my_templates.Versions.as_view(),
        name="api_template_versions",
    ),
    path(
        f"{V1}templates/<slug:template>/versions/<int:number>",
        my_templates.OneVersion.as_view(),
        name="api_template_version",
    ),
    path(f"{V1}templates/<slug:template>/adopt", my_templates.Adopt.as_view(), name="api_template_adopt"),
    path(
        f"{V1}templates/<slug:template>/decline", my_templates.Decline.as_view(), name="api_template_decline"
    ),
    path(
        f"{V1}uploads/missing",
        takes_at_most(MOST_LISTED_BYTES)(uploads.Missing.as_view()),
        name="api_uploads_missing",
    ),
    path(
        f"{V1}uploads/blobs/<slug:sha256>",
        takes_body("PUT")(uploads.OneBlob.as_view()),
        name="api_uploads_blob",
    ),
    path(f"{V1}uploads/packs", takes_body("POST")(uploads.Packs.as_view()), name="api_uploads_pack"),
    path(
        f"{V1}uploads/trees",
        takes_at_most(MOST_LISTED_BYTES)(uploads.Trees.as_view()),
        name="api_uploads_trees",
    ),
    path(f"{V1}uploads/trees/<slug:sha256>", uploads.OneTree.as_view(), name="api_uploads_tree"),
    path(f"{V1}assets/<slug:kind>", assets.Assets.as_view(), name="api_assets"),
    path(f"{V1}assets/<slug:kind>/<slug:key>", assets.OneAsset.as_view(), name="api_asset"),
    path(f"{V1}assets/<slug:kind>/<slug:key>/test", assets.AssetCheckView.as_view(), name="api_asset_test"),
    path(f"{V1}usage", usage.Usage.as_view(), name="api_usage"),
    path(f"{V1}check", job_files.Check.as_view(), name="api_check"),
    path(f"{V1}preview", job_files.PreviewView.as_view(), name="api_preview"),
    path(f"{V1}convert", job_files.Convert.as_view(), name="api_convert"),
    path("schemas/<slug:dialect>.json", schemas.Schema.as_view(), name="dialect_schema"),
    path(
        f"{V1}schema",
        SpectacularAPIView.as_view(authentication_classes=[], permission_classes=[]),
        name="api_schema",
    ),
    *registry.urls(),
]
