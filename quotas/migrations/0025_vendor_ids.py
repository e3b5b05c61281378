"""Workspaces have the id by which a vendor's job files name them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quotas", "0024_workspace_egress")]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="vendor_id",
            field=models.CharField(
                blank=True,
                default="",
                help_text="WorkspaceId of the job files and programs that are written for PAI-DLC.",
                max_length=200,
                verbose_name="vendor's ID",
            ),
            preserve_default=False,
        ),
        migrations.AddConstraint(
            model_name="workspace",
            constraint=models.UniqueConstraint(
                condition=models.Q(("vendor_id", ""), _negated=True),
                fields=("vendor_id",),
                name="one_workspace_of_vendor_id",
            ),
        ),
    ]
