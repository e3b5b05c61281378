"""Ends of attempts that restart with more replicas."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0058_open_work_indexes'),
    ]

    operations = [
        migrations.AlterField(
            model_name='attempt',
            name='end_kind',
            field=models.CharField(blank=True, choices=[('user_stop', 'user_stop'), ('admin_stop', 'admin_stop'), ('time_limit', 'time_limit'), ('preemption', 'preemption'), ('drain', 'drain'), ('requeue', 'requeue'), ('growth', 'growth'), ('idle', 'idle'), ('early_stop', 'early_stop'), ('fault', 'fault'), ('completion', 'completion')], max_length=16, verbose_name='stop type'),
        ),
    ]
