
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
import quotas.models.unixnames
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('contenttypes', '0002_remove_content_type_name'),
        ('quotas', '0021_standard_names'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='adminaction',
            options={'ordering': ('-id',), 'verbose_name': 'admin action', 'verbose_name_plural': 'admin actions'},
        ),
        migrations.AlterModelOptions(
            name='auditentry',
            options={'ordering': ('-timestamp', '-id'), 'verbose_name': 'audit log entry', 'verbose_name_plural': 'audit log'},
        ),
        migrations.AlterModelOptions(
            name='grant',
            options={'verbose_name': 'provider grant', 'verbose_name_plural': 'provider grants'},
        ),
        migrations.AlterModelOptions(
            name='persongroup',
            options={'verbose_name': 'user group', 'verbose_name_plural': 'user groups'},
        ),
        migrations.AlterModelOptions(
            name='pricespan',
            options={'ordering': ('-begins', '-id'), 'verbose_name': 'price period', 'verbose_name_plural': 'price periods'},
        ),
        migrations.AlterModelOptions(
            name='queuesnapshot',
            options={'verbose_name': 'queue snapshot', 'verbose_name_plural': 'queue snapshots'},
        ),
        migrations.AlterModelOptions(
            name='readonly',
            options={'verbose_name': 'read-only mode', 'verbose_name_plural': 'read-only mode'},
        ),
        migrations.AlterModelOptions(
            name='spotprice',
            options={'ordering': ('cluster', 'gpu_type', 'from_hour'), 'verbose_name': 'spot price', 'verbose_name_plural': 'spot prices'},
        ),
        migrations.AlterModelOptions(
            name='usageday',
            options={'ordering': ('-day',), 'verbose_name': 'daily usage', 'verbose_name_plural': 'daily usage'},
        ),
        migrations.AlterModelOptions(
            name='usagehour',
            options={'verbose_name': 'hourly usage', 'verbose_name_plural': 'hourly usage'},
        ),
        migrations.AlterModelOptions(
            name='user',
            options={'verbose_name': 'user', 'verbose_name_plural': 'people'},
        ),
        migrations.AlterField(
            model_name='accesstoken',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='access_tokens', to=settings.AUTH_USER_MODEL, verbose_name='user'),
        ),
        migrations.AlterField(
            model_name='adminaction',
            name='about',
            field=models.CharField(max_length=300, verbose_name='affected object'),
        ),
        migrations.AlterField(
            model_name='adminaction',
            name='at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='time'),
        ),
        migrations.AlterField(
            model_name='adminaction',
            name='by',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='actor'),
        ),
        migrations.AlterField(
            model_name='adminaction',
            name='kind',
            field=models.CharField(choices=[('freeze', 'paused scheduling'), ('unfreeze', 'resumed scheduling'), ('read_only', 'turned on read-only mode'), ('read_write', 'turned off read-only mode'), ('end_person', 'stopped all activity of a user'), ('tell_owners', 'notified job owners on a node'), ('settle', 'resolved a lost job'), ('nodes', 'changed node state'), ('jobs', 'changed jobs'), ('quotas', 'changed the quota tree')], max_length=16, verbose_name='event'),
        ),
        migrations.AlterField(
            model_name='adminaction',
            name='why',
            field=models.CharField(blank=True, max_length=500, verbose_name='reason'),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='action',
            field=models.CharField(max_length=24, verbose_name='event'),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='actor_name',
            field=models.CharField(blank=True, max_length=200, verbose_name='actor'),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='changes',
            field=models.JSONField(default=dict, verbose_name='change'),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='cid',
            field=models.CharField(blank=True, max_length=64, verbose_name='correlation ID'),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='content_type',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='contenttypes.contenttype', verbose_name='object type'),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='object_repr',
            field=models.CharField(blank=True, max_length=200, verbose_name='affected object'),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='person',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='affected user'),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='remote_addr',
            field=models.GenericIPAddressField(null=True, verbose_name='source address'),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='timestamp',
            field=models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='time'),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='way',
            field=models.CharField(default='system', max_length=12, verbose_name='via'),
        ),
        migrations.AlterField(
            model_name='banner',
            name='level',
            field=models.CharField(choices=[('info', 'Info'), ('warn', 'Warning'), ('bad', 'Error')], default='info', max_length=8, verbose_name='level'),
        ),
        migrations.AlterField(
            model_name='banner',
            name='person',
            field=models.ForeignKey(blank=True, help_text='Shown only to this user.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
        ),
        migrations.AlterField(
            model_name='banner',
            name='text',
            field=models.CharField(max_length=500, verbose_name='string'),
        ),
        migrations.AlterField(
            model_name='banner',
            name='workspace',
            field=models.ForeignKey(blank=True, help_text='Shown only to members of this workspace. Empty: shown to everyone.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='quotas.workspace', verbose_name='workspace'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='admission',
            field=models.CharField(choices=[('console', 'Console'), ('engine', 'Engine')], default='console', max_length=16, verbose_name='scheduler'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='answered_at',
            field=models.DateTimeField(blank=True, editable=False, null=True, verbose_name='last response'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='enabled',
            field=models.BooleanField(default=True, verbose_name='accepts jobs'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='facilities',
            field=models.JSONField(blank=True, default=None, editable=False, null=True, verbose_name='capabilities'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='frozen_at',
            field=models.DateTimeField(blank=True, editable=False, null=True, verbose_name='scheduling paused'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='frozen_why',
            field=models.CharField(blank=True, editable=False, max_length=500, verbose_name='pause reason'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='look_ms',
            field=models.PositiveIntegerField(blank=True, editable=False, null=True, verbose_name='last poll (ms)'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='next_look_at',
            field=models.DateTimeField(blank=True, editable=False, null=True, verbose_name='next poll'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='region',
            field=models.CharField(blank=True, help_text='Location shown to users, e.g. cn-wulanchabu or building 3.', max_length=100, verbose_name='region'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='set_aside',
            field=models.JSONField(blank=True, default=list, editable=False, verbose_name='nodes reserved by the engine'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='shows_addresses',
            field=models.BooleanField(default=False, help_text="Shows the IP:port of a job's endpoints to users with access to the job. Useful inside the cluster's network.", verbose_name='show addresses'),
        ),
        migrations.AlterField(
            model_name='cluster',
            name='trouble',
            field=models.TextField(blank=True, editable=False, verbose_name='last error'),
        ),
        migrations.AlterField(
            model_name='gputype',
            name='aliases',
            field=models.JSONField(blank=True, default=list, help_text='List, e.g. ["NVIDIA-A100-SXM4-80GB"].', verbose_name='aliases'),
        ),
        migrations.AlterField(
            model_name='grant',
            name='checked_at',
            field=models.DateTimeField(verbose_name='last checked'),
        ),
        migrations.AlterField(
            model_name='groupmapping',
            name='group',
            field=models.CharField(help_text='Group name as sent by the provider. For LDAP: the common name or distinguished name.', max_length=500, verbose_name='group'),
        ),
        migrations.AlterField(
            model_name='groupmapping',
            name='source',
            field=models.CharField(help_text='“ldap”, or the name of an OIDC provider in CONSOLE_OIDC.', max_length=64, verbose_name='source'),
        ),
        migrations.AlterField(
            model_name='groupmapping',
            name='superuser',
            field=models.BooleanField(default=False, help_text='All members of the group become superusers of the console. Leave the workspace empty.', verbose_name='superuser'),
        ),
        migrations.AlterField(
            model_name='maintenance',
            name='cluster',
            field=models.ForeignKey(blank=True, help_text='Empty: all clusters.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='maintenance', to='quotas.cluster', verbose_name='cluster'),
        ),
        migrations.AlterField(
            model_name='maintenance',
            name='keeps_free',
            field=models.BooleanField(default=True, help_text='If not selected, the maintenance is only announced.', verbose_name="don't start jobs that would overlap the window"),
        ),
        migrations.AlterField(
            model_name='maintenance',
            name='lead_hours',
            field=models.IntegerField(default=24, help_text='Jobs without a time limit could still be running when the maintenance begins. None is started within this many hours before it.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1440)], verbose_name='lead time for jobs without a time limit (hours)'),
        ),
        migrations.AlterField(
            model_name='maintenance',
            name='text',
            field=models.CharField(max_length=500, verbose_name='string'),
        ),
        migrations.AlterField(
            model_name='membership',
            name='by_groups',
            field=models.BooleanField(default=False, editable=False, verbose_name='via group'),
        ),
        migrations.AlterField(
            model_name='membership',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL, verbose_name='user'),
        ),
        migrations.AlterField(
            model_name='node',
            name='empty_by',
            field=models.DateTimeField(blank=True, help_text='Jobs still on the draining node are moved to other nodes at this time. Empty: they run until they end.', null=True, verbose_name='drain deadline'),
        ),
        migrations.AlterField(
            model_name='node',
            name='others',
            field=models.JSONField(blank=True, default=dict, verbose_name='external usage'),
        ),
        migrations.AlterField(
            model_name='node',
            name='programs',
            field=models.JSONField(blank=True, default=None, null=True, verbose_name='installed programs'),
        ),
        migrations.AlterField(
            model_name='node',
            name='state_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='decision time'),
        ),
        migrations.AlterField(
            model_name='node',
            name='state_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='set by'),
        ),
        migrations.AlterField(
            model_name='node',
            name='state_why',
            field=models.CharField(blank=True, max_length=500, verbose_name='reason'),
        ),
        migrations.AlterField(
            model_name='node',
            name='why',
            field=models.CharField(blank=True, max_length=500, verbose_name='unavailability reason'),
        ),
        migrations.AlterField(
            model_name='persongroup',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='person_groups', to=settings.AUTH_USER_MODEL, verbose_name='user'),
        ),
        migrations.AlterField(
            model_name='pricespan',
            name='price_micro',
            field=models.BigIntegerField(verbose_name='price per hour (millionths)'),
        ),
        migrations.AlterField(
            model_name='queuesnapshot',
            name='decided_at',
            field=models.DateTimeField(auto_now=True, verbose_name='decision time'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='accepts_jobs',
            field=models.BooleanField(default=True, help_text='If not selected, the quota only distributes its resources to child quotas.', verbose_name='accepts jobs'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='gpu_hours',
            field=models.IntegerField(blank=True, help_text='When used up, no more jobs start until the next period.', null=True, validators=[django.core.validators.MinValueValidator(0)], verbose_name='GPU-hours'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='idle_exempt',
            field=models.BooleanField(default=False, help_text='No idle warnings or stops in this quota, regardless of the parent quotas.', verbose_name='never idle'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='idle_exempt_labels',
            field=models.JSONField(blank=True, default=dict, help_text='Labels in the job file, e.g. {"keep": "yes"}. Jobs with any of them are exempt; an empty value matches any value.', verbose_name='exempt job labels'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='idle_exempt_people',
            field=models.ManyToManyField(blank=True, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='exempt users'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='idle_exempt_roles',
            field=models.JSONField(blank=True, default=list, help_text='Workspace roles, e.g. ["admin"].', verbose_name='exempt roles'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='idle_extensions',
            field=models.SmallIntegerField(default=2, help_text='How many times the job owner can reset the idle time.', validators=[django.core.validators.MinValueValidator(0)], verbose_name='max “Keep running” extensions'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='idle_percent',
            field=models.SmallIntegerField(default=5, help_text='Utilization of each GPU. For notebooks and other web services: of one CPU core.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100)], verbose_name='idle below (percent)'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='idle_release_minutes',
            field=models.IntegerField(blank=True, help_text='Must be later than the warning. Empty: the job is not stopped, only its owner is notified.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='stop after (minutes idle)'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='idle_warn_minutes',
            field=models.IntegerField(blank=True, help_text="Notifies the owner that the job's resources are not in use. Empty: same as the parent quota.", null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='warn after (minutes idle)'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='kind',
            field=models.CharField(choices=[('general', 'General computing'), ('lingjun', 'Lingjun intelligent computing')], default='general', help_text='The new job form offers the PAI-DLC options for this resource type.', max_length=16, verbose_name='resource type'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='may_borrow',
            field=models.BooleanField(default=True, help_text='Jobs that allow borrowing can use idle resources of other quotas.', verbose_name='can borrow'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='most_jobs',
            field=models.IntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0)], verbose_name='max concurrent jobs'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='most_pending',
            field=models.IntegerField(default=100, help_text='If the engine schedules: maximum number of submitted jobs that are not running yet.', validators=[django.core.validators.MinValueValidator(1)], verbose_name='max pending jobs at the engine'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='parent',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='quotas.quota', verbose_name='parent quota'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='period',
            field=models.CharField(choices=[('day', 'Day'), ('week', 'Week'), ('month', 'Month')], default='month', max_length=8, verbose_name='period'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='person_cpu_milli',
            field=models.BigIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0)], verbose_name='CPU per user (milli-cores)'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='person_gpus',
            field=models.IntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0)], verbose_name='GPUs per user'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='person_jobs',
            field=models.IntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0)], verbose_name='jobs per user'),
        ),
        migrations.AlterField(
            model_name='quota',
            name='person_memory_mib',
            field=models.BigIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0)], verbose_name='memory per user (MiB)'),
        ),
        migrations.AlterField(
            model_name='readonly',
            name='why',
            field=models.CharField(max_length=500, verbose_name='reason'),
        ),
        migrations.AlterField(
            model_name='request',
            name='created_at',
            field=models.DateTimeField(auto_now_add=True, verbose_name='created'),
        ),
        migrations.AlterField(
            model_name='request',
            name='held',
            field=models.BooleanField(default=False, verbose_name='held'),
        ),
        migrations.AlterField(
            model_name='request',
            name='not_before',
            field=models.DateTimeField(blank=True, null=True, verbose_name='earliest start'),
        ),
        migrations.AlterField(
            model_name='request',
            name='others',
            field=models.BooleanField(default=False, verbose_name='waiting for dependencies'),
        ),
        migrations.AlterField(
            model_name='request',
            name='since',
            field=models.DateTimeField(default=django.utils.timezone.now, verbose_name='waiting since'),
        ),
        migrations.AlterField(
            model_name='reservation',
            name='asked_back_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='return requested'),
        ),
        migrations.AlterField(
            model_name='serviceaccount',
            name='about',
            field=models.CharField(blank=True, max_length=200, verbose_name='purpose'),
        ),
        migrations.AlterField(
            model_name='serviceaccount',
            name='contact',
            field=models.CharField(help_text='Person responsible: a name or e-mail address.', max_length=200, verbose_name='contact'),
        ),
        migrations.AlterField(
            model_name='serviceaccount',
            name='made_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by'),
        ),
        migrations.AlterField(
            model_name='serviceaccount',
            name='user',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='service_account', to=settings.AUTH_USER_MODEL, verbose_name='user'),
        ),
        migrations.AlterField(
            model_name='signin',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sign_ins', to=settings.AUTH_USER_MODEL, verbose_name='user'),
        ),
        migrations.AlterField(
            model_name='spec',
            name='gpus',
            field=models.JSONField(blank=True, default=dict, help_text='One GPU type and its count, e.g. {"A100": 8}.', verbose_name='GPUs by type'),
        ),
        migrations.AlterField(
            model_name='spec',
            name='offered',
            field=models.BooleanField(default=True, help_text="If not selected, new jobs can't use the spec. The price is kept.", verbose_name='offered'),
        ),
        migrations.AlterField(
            model_name='spec',
            name='price_micro',
            field=models.BigIntegerField(default=0, validators=[django.core.validators.MinValueValidator(0)], verbose_name='price per hour (millionths)'),
        ),
        migrations.AlterField(
            model_name='spotprice',
            name='from_hour',
            field=models.SmallIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(23)], verbose_name='start hour'),
        ),
        migrations.AlterField(
            model_name='spotprice',
            name='price_micro',
            field=models.BigIntegerField(validators=[django.core.validators.MinValueValidator(0)], verbose_name='current price (millionths)'),
        ),
        migrations.AlterField(
            model_name='spotprice',
            name='until_hour',
            field=models.SmallIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(24)], verbose_name='end hour'),
        ),
        migrations.AlterField(
            model_name='usageday',
            name='person',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
        ),
        migrations.AlterField(
            model_name='usageday',
            name='wait_seconds',
            field=models.BigIntegerField(default=0, verbose_name='wait time (seconds)'),
        ),
        migrations.AlterField(
            model_name='usagehour',
            name='borrowed_seconds',
            field=models.BigIntegerField(default=0, verbose_name='borrowed seconds'),
        ),
        migrations.AlterField(
            model_name='usagehour',
            name='waiting',
            field=models.IntegerField(default=0, verbose_name='waiting at end of hour'),
        ),
        migrations.AlterField(
            model_name='user',
            name='admin_by_groups',
            field=models.BooleanField(default=False, editable=False, verbose_name='superuser via group'),
        ),
        migrations.AlterField(
            model_name='user',
            name='break_glass',
            field=models.BooleanField(default=False, help_text='Can sign in with a console password even if SSO is required.', verbose_name='break-glass account'),
        ),
        migrations.AlterField(
            model_name='user',
            name='directory_dn',
            field=models.CharField(blank=True, help_text="The user's distinguished name in LDAP. Empty: no LDAP sign-in to this account.", max_length=500, verbose_name='LDAP distinguished name'),
        ),
        migrations.AlterField(
            model_name='user',
            name='kind',
            field=models.CharField(choices=[('person', 'User'), ('service', 'Service account')], default='person', editable=False, max_length=8, verbose_name='kind'),
        ),
        migrations.AlterField(
            model_name='user',
            name='theme',
            field=models.CharField(choices=[('auto', 'System'), ('light', 'Light'), ('dark', 'Dark')], default='auto', max_length=8, verbose_name='theme'),
        ),
        migrations.AlterField(
            model_name='user',
            name='unix_name',
            field=models.CharField(blank=True, help_text="UNIX user that runs this user's jobs on clusters with per-user identities.", max_length=32, validators=[quotas.models.unixnames.check], verbose_name='UNIX name'),
        ),
        migrations.AlterField(
            model_name='user',
            name='unix_name_from',
            field=models.CharField(blank=True, editable=False, max_length=64, verbose_name='UNIX name source'),
        ),
        migrations.AlterConstraint(
            model_name='groupmapping',
            name='workspace_or_superuser',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('superuser', True), ('workspace', None)), models.Q(('superuser', False), ('workspace__isnull', False)), _connector='OR'), name='workspace_or_superuser', violation_error_message='Select either a workspace or “superuser”.'),
        ),
    ]
