"""Job policies, the fair-share weight and least running time of quotas, and the order that admins set."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('quotas', '0027_local_groups'),
    ]

    operations = [
        migrations.AddField(
            model_name='quota',
            name='fair_share_weight',
            field=models.PositiveSmallIntegerField(db_default=1, default=1, help_text='With weight 2, what the workspace already uses delays the jobs of this quota half as much.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100)], verbose_name='fair-share weight'),
        ),
        migrations.AddField(
            model_name='quota',
            name='least_running_minutes',
            field=models.PositiveIntegerField(blank=True, help_text='Jobs on borrowed or preemptible resources run at least this long. Empty: 5 minutes.', null=True, verbose_name='min run time when borrowing (minutes)'),
        ),
        migrations.AddField(
            model_name='request',
            name='cluster_rank',
            field=models.IntegerField(db_default=0, default=0, verbose_name='rank on the cluster'),
        ),
        migrations.AddField(
            model_name='request',
            name='workspace_rank',
            field=models.IntegerField(db_default=0, default=0, verbose_name='rank in the workspace'),
        ),
        migrations.CreateModel(
            name='JobPolicy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('by_workspace', models.BooleanField(default=False, editable=False, verbose_name='set by the workspace')),
                ('role', models.CharField(blank=True, choices=[('viewer', 'Viewer'), ('developer', 'Algorithm developer'), ('operator', 'Algorithm O&M admin'), ('admin', 'Workspace admin')], max_length=16, verbose_name='role')),
                ('highest_priority', models.PositiveSmallIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(9)], verbose_name='highest priority')),
                ('time_limit_minutes', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='max time limit (minutes)')),
                ('default_minutes', models.PositiveIntegerField(blank=True, help_text='For jobs without a time limit.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='default time limit (minutes)')),
                ('job_gpus', models.PositiveIntegerField(blank=True, null=True, verbose_name='GPUs per job')),
                ('gpu_types', models.CharField(blank=True, help_text='Allowed types, separated by commas. Empty: all types.', max_length=500, verbose_name='GPU types')),
                ('waiting_jobs', models.PositiveIntegerField(blank=True, help_text='More jobs are rejected.', null=True, verbose_name='waiting jobs per user')),
                ('running_jobs', models.PositiveIntegerField(blank=True, help_text='More jobs wait.', null=True, verbose_name='running jobs per user')),
                ('quota', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='policies', to='quotas.quota', verbose_name='resource quota')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'job policy',
                'verbose_name_plural': 'job policies',
                'ordering': ('quota', 'by_workspace', 'role', 'user'),
                'constraints': [models.UniqueConstraint(condition=models.Q(('user', None)), fields=('quota', 'by_workspace', 'role'), name='one_policy_of_role'), models.UniqueConstraint(condition=models.Q(('user__isnull', False)), fields=('quota', 'by_workspace', 'user'), name='one_policy_of_user')],
            },
        ),
    ]
