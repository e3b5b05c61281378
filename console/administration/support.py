"""The support bundle, for the console's admins."""

from __future__ import annotations

from io import BytesIO

from django.http import FileResponse, HttpRequest
from django.utils import timezone
from django.views.decorators.http import require_POST

from console.management import support_bundle
from quotas import audit
from quotas.audit import action_record
from quotas.models import Action


@require_POST
def download(request: HttpRequest) -> FileResponse:
    """Send the bundle as it is now."""
    action_record.actor_of(request)
    content = BytesIO()
    support_bundle.write(content)
    content.seek(0)
    audit.log(Action.EXPORT, details={"what": "support bundle"})
    name = f"job-console-{timezone.now():%Y%m%d-%H%M%S}.zip"
    return FileResponse(content, as_attachment=True, filename=name, headers={"Cache-Control": "no-store"})
