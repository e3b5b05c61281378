
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import jobs.models.jobs
import jobs.models.sealed
import jobs.models.templates
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0031_events_and_replicas'),
        ('quotas', '0021_standard_names'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='accesssession',
            options={'ordering': ('-id',), 'verbose_name': 'access session', 'verbose_name_plural': 'access sessions'},
        ),
        migrations.AlterModelOptions(
            name='assetcheck',
            options={'ordering': ('-id',), 'verbose_name': 'asset test', 'verbose_name_plural': 'asset tests'},
        ),
        migrations.AlterModelOptions(
            name='assetuse',
            options={'ordering': ('-id',), 'verbose_name': 'asset use', 'verbose_name_plural': 'asset uses'},
        ),
        migrations.AlterModelOptions(
            name='draftversion',
            options={'ordering': ('-saved_at', '-pk'), 'verbose_name': 'draft version', 'verbose_name_plural': 'draft versions'},
        ),
        migrations.AlterModelOptions(
            name='endpointvisit',
            options={'ordering': ('-id',), 'verbose_name': 'endpoint visit', 'verbose_name_plural': 'endpoint visits'},
        ),
        migrations.AlterModelOptions(
            name='externaljob',
            options={'ordering': ('-id',), 'verbose_name': 'external job', 'verbose_name_plural': 'external jobs'},
        ),
        migrations.AlterModelOptions(
            name='notification',
            options={'ordering': ('-id',), 'verbose_name': 'notification', 'verbose_name_plural': 'notifications'},
        ),
        migrations.AlterModelOptions(
            name='notificationevent',
            options={'ordering': ('id',), 'verbose_name': 'notification event', 'verbose_name_plural': 'notification events'},
        ),
        migrations.AlterModelOptions(
            name='notificationrule',
            options={'ordering': ('id',), 'verbose_name': 'notification rule', 'verbose_name_plural': 'notification rules'},
        ),
        migrations.AlterModelOptions(
            name='quotalevel',
            options={'verbose_name': 'quota usage level', 'verbose_name_plural': 'quota usage levels'},
        ),
        migrations.AlterModelOptions(
            name='replicausage',
            options={'verbose_name': 'replica usage', 'verbose_name_plural': 'replica usage'},
        ),
        migrations.AlterModelOptions(
            name='sweeprun',
            options={'ordering': ('number', '-round'), 'verbose_name': 'sweep run', 'verbose_name_plural': 'sweep runs'},
        ),
        migrations.AlterModelOptions(
            name='templateuse',
            options={'verbose_name': 'job template use', 'verbose_name_plural': 'job template uses'},
        ),
        migrations.AlterModelOptions(
            name='templateversion',
            options={'ordering': ('-number',), 'verbose_name': 'job template version', 'verbose_name_plural': 'job template versions'},
        ),
        migrations.AlterField(
            model_name='accesssession',
            name='begun_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='started'),
        ),
        migrations.AlterField(
            model_name='accesssession',
            name='end_asked_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='stop requested'),
        ),
        migrations.AlterField(
            model_name='accesssession',
            name='kind',
            field=models.CharField(choices=[('ssh', 'SSH'), ('terminal', 'terminal')], max_length=8, verbose_name='access method'),
        ),
        migrations.AlterField(
            model_name='accesssession',
            name='seen_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='last activity'),
        ),
        migrations.AlterField(
            model_name='accesssession',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to=settings.AUTH_USER_MODEL, verbose_name='user'),
        ),
        migrations.AlterField(
            model_name='accesssession',
            name='why',
            field=models.CharField(blank=True, choices=[('left', 'disconnected'), ('job_ended', 'replica ended'), ('right_lost', 'access revoked'), ('asked', 'ended by a user'), ('lost', 'connection lost')], max_length=12, verbose_name='reason'),
        ),
        migrations.AlterField(
            model_name='assetcheck',
            name='asker',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='requested by'),
        ),
        migrations.AlterField(
            model_name='assetcheck',
            name='state',
            field=models.CharField(choices=[('waiting', 'queued'), ('trying', 'in progress'), ('works', 'test passed'), ('failed', 'test failed')], default='waiting', max_length=8, verbose_name='state'),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='created_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='created'),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='end_asked_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='stop sent to engine'),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='end_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='stop requested at'),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='end_kind',
            field=models.CharField(blank=True, choices=[('user_stop', 'user_stop'), ('admin_stop', 'admin_stop'), ('time_limit', 'time_limit'), ('preemption', 'preemption'), ('drain', 'drain'), ('idle', 'idle'), ('completion', 'completion')], max_length=16, verbose_name='stop type'),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='end_why',
            field=models.CharField(blank=True, max_length=500, verbose_name='stop reason'),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='logs_sealed_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='logs finalized'),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='reason_params',
            field=models.JSONField(default=dict, verbose_name='reason parameters'),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='submitted_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='sent to cluster'),
        ),
        migrations.AlterField(
            model_name='channel',
            name='failures',
            field=models.IntegerField(default=0, verbose_name='consecutive failures'),
        ),
        migrations.AlterField(
            model_name='channel',
            name='next_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='next message after'),
        ),
        migrations.AlterField(
            model_name='channel',
            name='off',
            field=models.CharField(blank=True, choices=[('person', 'turned off'), ('unsubscribed', 'unsubscribed via message link'), ('failed', 'turned off after failed deliveries')], max_length=16, verbose_name='off'),
        ),
        migrations.AlterField(
            model_name='channel',
            name='quiet_from',
            field=models.SmallIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(23)], verbose_name='quiet hours start'),
        ),
        migrations.AlterField(
            model_name='channel',
            name='quiet_until',
            field=models.SmallIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(23)], verbose_name='quiet hours end'),
        ),
        migrations.AlterField(
            model_name='channel',
            name='shown',
            field=models.CharField(blank=True, max_length=200, verbose_name='destination'),
        ),
        migrations.AlterField(
            model_name='codesource',
            name='key',
            field=models.CharField(max_length=63, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$', 'IDs can contain only letters, digits, - and _ (maximum 63 characters).')], verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='codesource',
            name='mount_path',
            field=models.CharField(default='/root/code', max_length=500, verbose_name='mount path'),
        ),
        migrations.AlterField(
            model_name='codesource',
            name='own_secret',
            field=models.CharField(blank=True, help_text='Instead of a shared password: name of a secret that each user has saved in Settings.', max_length=200, validators=[django.core.validators.RegexValidator('^[A-Za-z_][A-Za-z0-9_]*$', "Secret names can contain only letters, digits and _, and can't start with a digit.")], verbose_name='personal secret name'),
        ),
        migrations.AlterField(
            model_name='codesource',
            name='submodules',
            field=models.BooleanField(default=False, help_text='Applies to vendor targets only. Jobs that run here get the repository without submodules.', verbose_name='include submodules'),
        ),
        migrations.AlterField(
            model_name='codesource',
            name='workspace',
            field=models.ForeignKey(blank=True, help_text='Empty: available to everyone.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='quotas.workspace', verbose_name='workspace'),
        ),
        migrations.AlterField(
            model_name='dataset',
            name='endpoint',
            field=models.CharField(blank=True, help_text='For a custom object store, e.g. https://minio.example.org:9000.', max_length=300, verbose_name='endpoint'),
        ),
        migrations.AlterField(
            model_name='dataset',
            name='key',
            field=models.CharField(max_length=63, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$', 'IDs can contain only letters, digits, - and _ (maximum 63 characters).')], verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='dataset',
            name='mount_path',
            field=models.CharField(default='/mnt/data', max_length=500, verbose_name='mount path'),
        ),
        migrations.AlterField(
            model_name='dataset',
            name='options',
            field=models.JSONField(blank=True, default=dict, help_text='Example: {"mountType": "ossfs"}.', verbose_name='mount options'),
        ),
        migrations.AlterField(
            model_name='dataset',
            name='own_secret',
            field=models.CharField(blank=True, help_text='Instead of a shared password: name of a secret that each user has saved in Settings.', max_length=200, validators=[django.core.validators.RegexValidator('^[A-Za-z_][A-Za-z0-9_]*$', "Secret names can contain only letters, digits and _, and can't start with a digit.")], verbose_name='personal secret name'),
        ),
        migrations.AlterField(
            model_name='dataset',
            name='read_only',
            field=models.BooleanField(default=True, help_text='Datasets for everyone are always read-only.', verbose_name='read-only'),
        ),
        migrations.AlterField(
            model_name='dataset',
            name='source',
            field=models.CharField(choices=[('oss', 'OSS'), ('s3', 'S3'), ('bos', 'BOS'), ('nas', 'NAS'), ('extreme_nas', 'Extreme NAS'), ('cpfs', 'CPFS'), ('bmcpfs', 'BMCPFS'), ('pfs', 'PFS'), ('host', 'host path'), ('http', 'HTTP')], default='oss', max_length=16, verbose_name='storage type'),
        ),
        migrations.AlterField(
            model_name='dataset',
            name='vpc',
            field=models.ForeignKey(blank=True, help_text='VPC of the CPFS file system. Jobs that mount the dataset must use the same VPC.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='datasets', to='jobs.vpc', verbose_name='VPC'),
        ),
        migrations.AlterField(
            model_name='dataset',
            name='workspace',
            field=models.ForeignKey(blank=True, help_text='Empty: available to everyone.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='quotas.workspace', verbose_name='workspace'),
        ),
        migrations.AlterField(
            model_name='datasetversion',
            name='uri',
            field=models.CharField(help_text='oss://bucket/folder/, /data/sets/imagenet, https://…', max_length=1000, verbose_name='location'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='attempts',
            field=models.IntegerField(default=0, verbose_name='delivery attempts'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='code',
            field=models.IntegerField(blank=True, null=True, verbose_name='response code'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='created_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='created'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='detail',
            field=models.CharField(blank=True, max_length=300, verbose_name='error details'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='due_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='next attempt'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='error',
            field=models.CharField(blank=True, max_length=32, verbose_name='error'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='public_id',
            field=models.UUIDField(default=uuid.uuid4, unique=True, verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='test',
            field=models.BooleanField(default=False, verbose_name='test message'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='tried_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='last attempt'),
        ),
        migrations.AlterField(
            model_name='dependency',
            name='named',
            field=models.CharField(max_length=300, verbose_name='specified job'),
        ),
        migrations.AlterField(
            model_name='dependency',
            name='state',
            field=models.CharField(choices=[('open', 'Open'), ('met', 'Met'), ('never', "Can't be met")], default='open', max_length=8, verbose_name='state'),
        ),
        migrations.AlterField(
            model_name='dependency',
            name='when',
            field=models.CharField(choices=[('succeeded', 'Succeeded'), ('ended', 'Ended'), ('failed', 'Failed')], max_length=12, verbose_name='condition'),
        ),
        migrations.AlterField(
            model_name='draft',
            name='at_once',
            field=models.CharField(blank=True, default='', max_length=8, verbose_name='max concurrent jobs'),
        ),
        migrations.AlterField(
            model_name='draft',
            name='created_at',
            field=models.DateTimeField(auto_now_add=True, verbose_name='created'),
        ),
        migrations.AlterField(
            model_name='draft',
            name='dialect',
            field=models.CharField(blank=True, max_length=32, verbose_name='format'),
        ),
        migrations.AlterField(
            model_name='draft',
            name='place',
            field=models.CharField(blank=True, max_length=255, verbose_name='target'),
        ),
        migrations.AlterField(
            model_name='draft',
            name='sweep',
            field=jobs.models.sealed.SealedTextField(blank=True, default='', verbose_name='sweep parameters'),
        ),
        migrations.AlterField(
            model_name='draft',
            name='template',
            field=models.CharField(blank=True, max_length=80, verbose_name='source template'),
        ),
        migrations.AlterField(
            model_name='draft',
            name='text',
            field=jobs.models.sealed.SealedTextField(blank=True, verbose_name='string'),
        ),
        migrations.AlterField(
            model_name='draftversion',
            name='at_once',
            field=models.CharField(blank=True, default='', max_length=8, verbose_name='max concurrent jobs'),
        ),
        migrations.AlterField(
            model_name='draftversion',
            name='dialect',
            field=models.CharField(blank=True, max_length=32, verbose_name='format'),
        ),
        migrations.AlterField(
            model_name='draftversion',
            name='sweep',
            field=jobs.models.sealed.SealedTextField(blank=True, default='', verbose_name='sweep parameters'),
        ),
        migrations.AlterField(
            model_name='draftversion',
            name='text',
            field=jobs.models.sealed.SealedTextField(blank=True, verbose_name='string'),
        ),
        migrations.AlterField(
            model_name='dryrun',
            name='state',
            field=models.CharField(choices=[('waiting', 'queued'), ('trying', 'in progress'), ('done', 'completed')], default='waiting', max_length=8),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='slug',
            field=models.SlugField(max_length=63, unique=True, verbose_name='hostname'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='source',
            field=models.CharField(choices=[('asked', 'declared by the job'), ('announced', 'announced by the job'), ('found', 'detected')], default='asked', max_length=16, verbose_name='discovery'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='token_name',
            field=models.CharField(blank=True, max_length=32, verbose_name='token name'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='why',
            field=models.CharField(blank=True, max_length=16, verbose_name='unavailability reason'),
        ),
        migrations.AlterField(
            model_name='endpointvisit',
            name='created_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='created'),
        ),
        migrations.AlterField(
            model_name='endpointvisit',
            name='entered_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='accessed'),
        ),
        migrations.AlterField(
            model_name='endpointvisit',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user'),
        ),
        migrations.AlterField(
            model_name='event',
            name='at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='time'),
        ),
        migrations.AlterField(
            model_name='event',
            name='kind',
            field=models.CharField(choices=[('submitted', 'submitted'), ('queued_again', 'requeued'), ('admitted', 'admitted'), ('accepted', 'accepted by the cluster'), ('started', 'started'), ('task_started', 'replica started'), ('task_ended', 'replica ended'), ('end_wanted', 'stop requested'), ('end_asked', 'stop sent to cluster'), ('requeued', 'restarted by the cluster'), ('ended', 'ended'), ('found_again', 'found again'), ('lost', 'lost'), ('logs_sealed', 'logs stored'), ('shared', 'visibility changed'), ('entered', 'accessed'), ('left', 'disconnected'), ('held', 'held'), ('released', 'released'), ('prioritised', 'priority changed'), ('moved', 'moved to another quota'), ('told', 'owner notified'), ('idle_warned', 'idle warning sent'), ('still_needed', 'marked as still needed'), ('extended', 'time limit extended'), ('not_extended', 'time limit extension failed')], max_length=16, verbose_name='event'),
        ),
        migrations.AlterField(
            model_name='externaljob',
            name='ends_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='latest end'),
        ),
        migrations.AlterField(
            model_name='idleness',
            name='counts_from',
            field=models.DateTimeField(blank=True, null=True, verbose_name='idle time counted from'),
        ),
        migrations.AlterField(
            model_name='idleness',
            name='extensions',
            field=models.SmallIntegerField(default=0, verbose_name='extensions allowed'),
        ),
        migrations.AlterField(
            model_name='idleness',
            name='kept',
            field=models.SmallIntegerField(default=0, verbose_name='extensions used'),
        ),
        migrations.AlterField(
            model_name='image',
            name='accelerated',
            field=models.BooleanField(default=False, help_text='Passed to targets that load images on demand.', verbose_name='image acceleration'),
        ),
        migrations.AlterField(
            model_name='image',
            name='accelerator',
            field=models.CharField(blank=True, help_text='CPU, GPU, or the GPU type that the image is built for.', max_length=100, verbose_name='chip'),
        ),
        migrations.AlterField(
            model_name='image',
            name='address',
            field=models.CharField(help_text='Image reference, e.g. registry.example.org/group/name:tag.', max_length=500, verbose_name='address'),
        ),
        migrations.AlterField(
            model_name='image',
            name='key',
            field=models.CharField(max_length=63, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$', 'IDs can contain only letters, digits, - and _ (maximum 63 characters).')], verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='image',
            name='official',
            field=models.BooleanField(default=False, help_text="Maintained by the console's admins; other images are custom.", verbose_name='official'),
        ),
        migrations.AlterField(
            model_name='image',
            name='own_secret',
            field=models.CharField(blank=True, help_text='Instead of a shared password: name of a secret that each user has saved in Settings.', max_length=200, validators=[django.core.validators.RegexValidator('^[A-Za-z_][A-Za-z0-9_]*$', "Secret names can contain only letters, digits and _, and can't start with a digit.")], verbose_name='personal secret name'),
        ),
        migrations.AlterField(
            model_name='image',
            name='workspace',
            field=models.ForeignKey(blank=True, help_text='Empty: available to everyone.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='quotas.workspace', verbose_name='workspace'),
        ),
        migrations.AlterField(
            model_name='job',
            name='dialect',
            field=models.CharField(max_length=32, verbose_name='format'),
        ),
        migrations.AlterField(
            model_name='job',
            name='public_id',
            field=models.CharField(default=jobs.models.jobs.new_public_id, max_length=16, unique=True, verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='job',
            name='reason_params',
            field=models.JSONField(default=dict, verbose_name='reason parameters'),
        ),
        migrations.AlterField(
            model_name='jobfile',
            name='text',
            field=models.TextField(verbose_name='string'),
        ),
        migrations.AlterField(
            model_name='jobsecret',
            name='created_at',
            field=models.DateTimeField(auto_now_add=True, verbose_name='created'),
        ),
        migrations.AlterField(
            model_name='logstream',
            name='sealed',
            field=models.BooleanField(default=False, verbose_name='finalized'),
        ),
        migrations.AlterField(
            model_name='logstream',
            name='state',
            field=models.CharField(choices=[('open', 'open'), ('complete', 'complete'), ('truncated', 'truncated'), ('gone', 'missing')], default='open', max_length=12, verbose_name='state'),
        ),
        migrations.AlterField(
            model_name='measuredcluster',
            name='claimed_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='started'),
        ),
        migrations.AlterField(
            model_name='notificationevent',
            name='at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='time'),
        ),
        migrations.AlterField(
            model_name='notificationevent',
            name='kind',
            field=models.CharField(max_length=24, verbose_name='event'),
        ),
        migrations.AlterField(
            model_name='notificationevent',
            name='routed',
            field=models.BooleanField(default=False, verbose_name='routed'),
        ),
        migrations.AlterField(
            model_name='notificationrule',
            name='hour',
            field=models.SmallIntegerField(default=8, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(23)], verbose_name='hour of day'),
        ),
        migrations.AlterField(
            model_name='notificationrule',
            name='log_lines',
            field=models.BooleanField(default=False, verbose_name='with last log lines'),
        ),
        migrations.AlterField(
            model_name='notificationrule',
            name='pace',
            field=models.CharField(choices=[('now', 'Immediately'), ('hourly', 'Hourly'), ('daily', 'Daily')], default='now', max_length=8, verbose_name='frequency'),
        ),
        migrations.AlterField(
            model_name='notificationrule',
            name='quota_percent',
            field=models.IntegerField(default=90, verbose_name='quota threshold (percent)'),
        ),
        migrations.AlterField(
            model_name='notificationrule',
            name='scope',
            field=models.CharField(choices=[('mine', 'My own jobs'), ('workspace', 'All jobs of a workspace'), ('quota', 'All jobs in a quota')], default='mine', max_length=16, verbose_name='scope'),
        ),
        migrations.AlterField(
            model_name='notificationrule',
            name='wait_minutes',
            field=models.IntegerField(default=60, verbose_name='notify after (minutes)'),
        ),
        migrations.AlterField(
            model_name='personalsecret',
            name='created_at',
            field=models.DateTimeField(auto_now_add=True, verbose_name='created'),
        ),
        migrations.AlterField(
            model_name='ramrole',
            name='key',
            field=models.CharField(max_length=63, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$', 'IDs can contain only letters, digits, - and _ (maximum 63 characters).')], verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='ramrole',
            name='workspace',
            field=models.ForeignKey(blank=True, help_text='Empty: available to everyone.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='quotas.workspace', verbose_name='workspace'),
        ),
        migrations.AlterField(
            model_name='replica',
            name='commit',
            field=models.CharField(blank=True, default='', max_length=64, verbose_name='code commit'),
        ),
        migrations.AlterField(
            model_name='replica',
            name='reason_params',
            field=models.JSONField(default=dict, verbose_name='reason parameters'),
        ),
        migrations.AlterField(
            model_name='sshkey',
            name='title',
            field=models.CharField(max_length=100, verbose_name='purpose'),
        ),
        migrations.AlterField(
            model_name='sshkey',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ssh_keys', to=settings.AUTH_USER_MODEL, verbose_name='user'),
        ),
        migrations.AlterField(
            model_name='sweep',
            name='at_once',
            field=models.PositiveIntegerField(verbose_name='max concurrent jobs'),
        ),
        migrations.AlterField(
            model_name='sweep',
            name='public_id',
            field=models.CharField(default=jobs.models.jobs.new_public_id, max_length=16, unique=True, verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='sweeprun',
            name='waits',
            field=models.BooleanField(default=False, verbose_name='waiting'),
        ),
        migrations.AlterField(
            model_name='template',
            name='created_at',
            field=models.DateTimeField(auto_now_add=True, verbose_name='created'),
        ),
        migrations.AlterField(
            model_name='template',
            name='public_id',
            field=models.CharField(default=jobs.models.templates.new_template_id, max_length=16, unique=True, verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='templateuse',
            name='shipped',
            field=models.CharField(blank=True, max_length=64, verbose_name='built-in template'),
        ),
        migrations.AlterField(
            model_name='templateversion',
            name='dialect',
            field=models.CharField(max_length=32, verbose_name='format'),
        ),
        migrations.AlterField(
            model_name='templateversion',
            name='made_at',
            field=models.DateTimeField(auto_now_add=True, verbose_name='created'),
        ),
        migrations.AlterField(
            model_name='templateversion',
            name='notes',
            field=models.CharField(blank=True, max_length=400, verbose_name='change notes'),
        ),
        migrations.AlterField(
            model_name='uploadedtree',
            name='created_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='created'),
        ),
        migrations.AlterField(
            model_name='uploadedtree',
            name='sha256',
            field=models.CharField(max_length=64, unique=True, verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='vpc',
            name='key',
            field=models.CharField(max_length=63, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$', 'IDs can contain only letters, digits, - and _ (maximum 63 characters).')], verbose_name='ID'),
        ),
        migrations.AlterField(
            model_name='vpc',
            name='security_groups',
            field=models.JSONField(blank=True, default=list, help_text='List, e.g. ["sg-1"].', verbose_name='security groups'),
        ),
        migrations.AlterField(
            model_name='vpc',
            name='switches',
            field=models.JSONField(blank=True, default=list, help_text='List, e.g. ["vsw-1", "vsw-2"].', verbose_name='vSwitches'),
        ),
        migrations.AlterField(
            model_name='vpc',
            name='vpc_id',
            field=models.CharField(help_text='vpc-…', max_length=100, verbose_name='VPC ID'),
        ),
        migrations.AlterField(
            model_name='vpc',
            name='workspace',
            field=models.ForeignKey(blank=True, help_text='Empty: available to everyone.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='quotas.workspace', verbose_name='workspace'),
        ),
    ]
