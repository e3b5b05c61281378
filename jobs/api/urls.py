"""URLs of the APIs."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.views import SpectacularAPIView

from jobs.api import schemas
from jobs.api.native import (
    assets,
    folders,
    job_files,
    jobs,
    parts,
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
    path(f"{JOB}/stop", jobs.Stop.as_view(), name="api_job_stop"),
    path(f"{JOB}/file", jobs.JobFileView.as_view(), name="api_job_file"),
    path(f"{JOB}/again", jobs.RetryJob.as_view(), name="api_job_again"),
    path(f"{JOB}/hold", jobs.Hold.as_view(), name="api_job_hold"),
    path(f"{JOB}/release", jobs.Release.as_view(), name="api_job_release"),
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
    path(f"{V1}templates", templates.Templates.as_view(), name="api_templates"),
    path(
        f"{V1}templates/<slug:template>/file", templates.TemplateFileView.as_view(), name="api_template_file"
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
