"""The index of the events' jobs, which `events_of_job` begins with."""

import django.db.models.deletion
from django.db import migrations, models

from quotas.migrations._online import DropColumnIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('jobs', '0059_elastic_counts'),
    ]

    operations = [
        DropColumnIndexOnline(
            model_name='event',
            name='job',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='jobs.job', verbose_name='job'),
        ),
    ]
