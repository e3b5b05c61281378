"""The queue of a cluster in the order of admission, and its running jobs, for admins."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseBase
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from jobs.lifecycle import pending_reasons
from jobs.live import bus
from jobs.models import Attempt, Job
from jobs.search.job_pages import SHOWN
from jobs.states import LIVE
from jobs.web.http import SignedIn, live, page, signed_in, slice_before
from jobs.web.queue_actions import list_actions
from quotas.access import administered_by
from quotas.admission import queue_snapshot
from quotas.admission.queue_snapshot import QueuePlace
from quotas.models import Cluster, Quota, User

PAGE: Final = 50
MOST_CLUSTERS: Final = 50


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A waiting job and its positions."""

    job: Job
    place: QueuePlace | None = None


@require_safe
@signed_in
def queue(request: SignedIn) -> HttpResponseBase:
    """Show the waiting or running jobs of a cluster in the workspaces that the person administers."""
    around = live(request)
    workspace_ids = set(administered_by(request.user).values_list("pk", flat=True))
    if not workspace_ids:
        raise PermissionDenied(_("Only workspace admins and console admins can manage the queue."))
    clusters = list_clusters(workspace_ids)
    slug = request.GET.get("cluster", "")
    cluster = next((each for each in clusters if each.slug == slug), clusters[0] if clusters else None)
    if cluster is None or (slug and cluster.slug != slug):
        raise Http404
    is_running = request.GET.get("show") == "running"
    context: dict[str, Any] = {
        **around,
        "live_names": f"jobs {bus.QUEUE}",
        "cluster": cluster,
        "clusters": clusters,
        "is_running": is_running,
        "list_url": f"{reverse('queue')}?{request.GET.urlencode()}",
        "actions": list_actions(is_running=is_running),
        "chosen": request.GET.getlist("id"),
    }
    base = {"cluster": cluster.slug, **({"show": "running"} if is_running else {})}
    if is_running:
        running = Job.objects.visible_to(request.user).filter(
            cluster=cluster, workspace__in=workspace_ids, state__in=[state.value for state in LIVE]
        )
        jobs, following = slice_before(running.select_related(*SHOWN), request.GET.get("before", ""), PAGE)
        rows: Sequence[QueueRow] = [QueueRow(job) for job in jobs]
        next_page = {"before": str(following)} if following else None
    else:
        rows, after = list_queue(request.user, cluster, workspace_ids, request.GET.get("after", "")[:64])
        next_page = {"after": after} if after else None
    context["rows"] = rows
    context["next_url"] = f"{reverse('queue')}?{urlencode({**base, **next_page})}" if next_page else ""
    is_first = not (request.GET.get("after") or request.GET.get("before"))
    context["previous_url"] = "" if is_first else f"{reverse('queue')}?{urlencode(base)}"
    return page(request, "jobs/queue.html", context, fragments={"queue-list": "jobs/queue/list.html"})


def list_clusters(workspace_ids: Collection[int]) -> list[Cluster]:
    """Return the clusters on which the workspaces have a quota."""
    rows = Cluster.objects.filter(quotas__workspace__in=workspace_ids).distinct()
    return list(rows.order_by("-enabled", "name")[:MOST_CLUSTERS])


def list_queue(
    user: User, cluster: Cluster, workspace_ids: Collection[int], after: str
) -> tuple[list[QueueRow], str]:
    """Return a page of the cluster's waiting jobs in the order of admission, and the key of the next page.

    The page begins behind the holder `after`, or at the first one where that waits no more.
    """
    mine = Quota.objects.filter(cluster=cluster, workspace__in=workspace_ids)
    quotas = set(mine.values_list("pk", flat=True))
    queue_now = queue_snapshot.queue_of(cluster.pk)
    places = [place for place in queue_snapshot.places_in(queue_now) if place.quota_id in quotas]
    holders = [place.holder for place in places]
    begin = holders.index(after) + 1 if after in holders else 0
    shown = places[begin : begin + PAGE]
    attempts = Attempt.objects.filter(key__in=[place.holder for place in shown])
    ids = dict(attempts.values_list("key", "job_id"))
    jobs = Job.objects.visible_to(user).select_related(*SHOWN).in_bulk(list(ids.values()))
    pending_reasons.load_reasons(jobs.values())
    rows = [QueueRow(jobs[ids[place.holder]], place) for place in shown if ids.get(place.holder) in jobs]
    return rows, shown[-1].holder if begin + PAGE < len(places) else ""
