"""Indexes by which the passes of workers find open attempts, jobs and sweep runs among all that ended."""

from django.db import migrations, models

from quotas.migrations._online import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('jobs', '0057_retention_policies_index'),
    ]

    operations = [
        AddIndexOnline(
            model_name='attempt',
            index=models.Index(condition=models.Q(('ended_at__isnull', False), ('logs_sealed_at', None)), fields=['ended_at'], name='attempts_to_seal'),
        ),
        AddIndexOnline(
            model_name='attempt',
            index=models.Index(fields=['ended_at'], name='attempts_ended'),
        ),
        AddIndexOnline(
            model_name='attempt',
            index=models.Index(fields=['handle'], name='attempts_by_handle'),
        ),
        AddIndexOnline(
            model_name='job',
            index=models.Index(condition=models.Q(('deleted_at__isnull', False)), fields=['id'], name='jobs_deleted'),
        ),
        AddIndexOnline(
            model_name='delivery',
            index=models.Index(fields=['created_at'], name='deliveries_by_age'),
        ),
        AddIndexOnline(
            model_name='sweeprun',
            index=models.Index(condition=models.Q(('waits', True)), fields=['id'], name='sweep_runs_waiting'),
        ),
    ]
