"""Replicas of elastic requests that have fewer than they want."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('quotas', '0031_audit_refused_index'),
    ]

    operations = [
        migrations.AddField(
            model_name='reservation',
            name='counts',
            field=models.JSONField(blank=True, editable=False, null=True, verbose_name='replicas'),
        ),
    ]
