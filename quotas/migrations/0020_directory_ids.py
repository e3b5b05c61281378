"""People of a directory are known by the immutable id of their entry."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quotas", "0019_session_keys_are_digests")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="directory_id",
            field=models.CharField(blank=True, editable=False, max_length=64),
        ),
    ]
