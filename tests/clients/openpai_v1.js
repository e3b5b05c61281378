// Runs a job by the first version of OpenPAI's JavaScript SDK, and prints what it answered, as JSON.
// Environment: SERVER (with user and token, as GETs send no token), USER_NAME, PASSWORD, JOB_FILE.
const { PAIV1 } = require("@microsoft/openpai-js-sdk");

const user = process.env.USER_NAME;
const file = JSON.parse(process.env.JOB_FILE);

async function waitForEnd(client, name) {
  for (;;) {
    const job = await client.job.get(user, name);
    if (!["WAITING", "RUNNING"].includes(job.jobStatus.state)) {
      return job;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function main() {
  const client = new PAIV1.OpenPAIClient({
    rest_server_uri: process.env.SERVER,
    username: user,
    password: process.env.PASSWORD,
    https: false,
  });
  const answers = {};
  answers.login = await client.authn.login();
  answers.info = await client.authn.info();
  answers.cluster = await client.config.clusterInfo();
  answers.submitted = await client.job.submit(user, file);
  answers.ended = await waitForEnd(client, file.jobName);
  answers.list = await client.job.list();
  answers.mine = await client.job.list(`username=${user}`);
  answers.framework = await client.job.getFrameworkInfo(user, file.jobName);
  answers.config = await client.job.getConfig(user, file.jobName);
  answers.ssh = await client.job.getSshInfo(user, file.jobName).catch((error) => JSON.parse(error.error));
  answers.tokens = await client.authn.getTokens();
  answers.application = await client.authn.createApplicationToken();
  answers.revoked = await client.authn.deleteToken(answers.application.token);
  answers.conflict = await client.job.submit(user, file).catch((error) => error.error);
  await client.job.submit(user, { ...file, jobName: "long", taskRoles: [{ ...file.taskRoles[0], command: "sleep 600" }] });
  answers.executed = await client.job.execute(user, "long", "STOP");
  answers.stopped = await waitForEnd(client, "long");
  answers.deleted = await client.job.delete(user, file.jobName);
  console.log(JSON.stringify(answers));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
