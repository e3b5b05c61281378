"""Indexes by which the passes of workers find waiting requests and what was released since a moment."""

from django.db import migrations, models

from quotas.migrations._online import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('quotas', '0029_lead_hours_default'),
    ]

    operations = [
        AddIndexOnline(
            model_name='request',
            index=models.Index(condition=models.Q(('state', 'waiting')), fields=['cluster', 'state'], name='requests_in_line'),
        ),
        AddIndexOnline(
            model_name='reservation',
            index=models.Index(fields=['released_at'], name='reservations_by_release'),
        ),
        AddIndexOnline(
            model_name='usagehour',
            index=models.Index(fields=['hour'], name='usage_hours_by_time'),
        ),
    ]
