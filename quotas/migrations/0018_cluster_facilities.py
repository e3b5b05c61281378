from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('quotas', '0017_devices_of_reservations'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='facilities',
            field=models.JSONField(blank=True, default=None, editable=False, null=True, verbose_name='facilities'),
        ),
    ]
