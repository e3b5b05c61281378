"""The index by which removal finds ended jobs."""

from django.db import migrations, models

from quotas.migrations._online import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('jobs', '0057_retention_policies'),
    ]

    operations = [
        AddIndexOnline(
            model_name='job',
            index=models.Index(condition=models.Q(('deleted_at', None), ('ended_at__isnull', False)), fields=['workspace', 'ended_at'], name='jobs_ended'),
        ),
    ]
