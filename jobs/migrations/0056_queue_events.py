"""Jobs are put into another order, and queued again, by admins."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0053_replica_restarts'),
        ('quotas', '0028_job_policies'),
    ]

    operations = [
        migrations.AlterField(
            model_name='attempt',
            name='end_kind',
            field=models.CharField(blank=True, choices=[('user_stop', 'user_stop'), ('admin_stop', 'admin_stop'), ('time_limit', 'time_limit'), ('preemption', 'preemption'), ('drain', 'drain'), ('requeue', 'requeue'), ('idle', 'idle'), ('early_stop', 'early_stop'), ('fault', 'fault'), ('completion', 'completion')], max_length=16, verbose_name='stop type'),
        ),
        migrations.AlterField(
            model_name='event',
            name='kind',
            field=models.CharField(choices=[('submitted', 'submitted'), ('queued_again', 'requeued'), ('admitted', 'admitted'), ('accepted', 'accepted by the cluster'), ('started', 'started'), ('task_started', 'replica started'), ('task_ended', 'replica ended'), ('end_wanted', 'stop requested'), ('end_asked', 'stop sent to cluster'), ('requeued', 'restarted by the cluster'), ('ended', 'ended'), ('found_again', 'found again'), ('lost', 'lost'), ('logs_sealed', 'logs stored'), ('shared', 'visibility changed'), ('entered', 'accessed'), ('left', 'disconnected'), ('held', 'held'), ('released', 'released'), ('prioritised', 'priority changed'), ('moved', 'moved to another quota'), ('reordered', 'queue order changed'), ('told', 'owner notified'), ('idle_warned', 'idle warning sent'), ('still_needed', 'marked as still needed'), ('extended', 'time limit extended'), ('not_extended', 'time limit extension failed'), ('fault', 'fault detected'), ('resumed', 'resumed from a checkpoint'), ('alert', 'alert')], max_length=16, verbose_name='event'),
        ),
        migrations.AlterField(
            model_name='job',
            name='quota',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to='quotas.quota', verbose_name='quota'),
        ),
    ]
