"""URLs of the administration's API, below api/console/v1/admin/."""

from __future__ import annotations

from django.urls import path

from console.admin_api import jobs, maintenance, nodes, people, quotas, workspaces

PERSON = "people/<str:username>"
WORKSPACE = "workspaces/<slug:workspace>"
NODE = "nodes/<slug:cluster>/<str:name>"

urlpatterns = [
    path("people", people.People.as_view(), name="api_admin_people"),
    path(PERSON, people.OnePerson.as_view(), name="api_admin_person"),
    path(f"{PERSON}/deactivate", people.Deactivation.as_view(), name="api_admin_person_deactivate"),
    path(f"{PERSON}/activate", people.Activation.as_view(), name="api_admin_person_activate"),
    path(f"{PERSON}/password-link", people.PasswordLink.as_view(), name="api_admin_person_password_link"),
    path("workspaces", workspaces.Workspaces.as_view(), name="api_admin_workspaces"),
    path(WORKSPACE, workspaces.OneWorkspace.as_view(), name="api_admin_workspace"),
    path(f"{WORKSPACE}/members", workspaces.Members.as_view(), name="api_admin_members"),
    path(f"{WORKSPACE}/members/<str:username>", workspaces.OneMember.as_view(), name="api_admin_member"),
    path("quotas", quotas.AdminQuotas.as_view(), name="api_admin_quotas"),
    path("quotas/<int:quota>", quotas.OneQuota.as_view(), name="api_admin_quota"),
    path("nodes", nodes.AdminNodes.as_view(), name="api_admin_nodes"),
    path(NODE, nodes.OneNode.as_view(), name="api_admin_node"),
    path(f"{NODE}/state", nodes.OneNodeState.as_view(), name="api_admin_node_state"),
    path("maintenance", maintenance.Windows.as_view(), name="api_admin_windows"),
    path("maintenance/preview", maintenance.WindowPreview.as_view(), name="api_admin_window_preview"),
    path("maintenance/<int:window>", maintenance.OneWindow.as_view(), name="api_admin_window"),
    path("jobs/<slug:public_id>/priority", jobs.Priority.as_view(), name="api_admin_job_priority"),
]
