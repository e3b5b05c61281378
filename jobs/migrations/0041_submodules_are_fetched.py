from django.db import migrations, models


class Migration(migrations.Migration):
    """Only the help text of a field changes."""

    dependencies = [("jobs", "0040_log_sinks")]

    operations = [
        migrations.AlterField(
            model_name="codesource",
            name="submodules",
            field=models.BooleanField(
                default=False,
                help_text="Submodules are fetched from the repository's own host.",
                verbose_name="include submodules",
            ),
        ),
    ]
