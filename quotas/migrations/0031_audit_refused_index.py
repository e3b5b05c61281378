"""The index by which refusals are listed, in the order of the audit log."""

from django.db import migrations, models

from quotas.migrations._online import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('quotas', '0030_open_work_indexes'),
    ]

    operations = [
        AddIndexOnline(
            model_name='auditentry',
            index=models.Index(condition=models.Q(('denied', True)), fields=['-timestamp', '-id'], name='audit_refused'),
        ),
    ]
