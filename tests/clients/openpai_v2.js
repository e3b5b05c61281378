// Runs a job by the second version of OpenPAI's JavaScript SDK, and prints what it answered, as JSON.
// Environment: SERVER, USER_NAME, PASSWORD, JOB_FILE.
const http = require("http");
const { PAIV2 } = require("@microsoft/openpai-js-sdk");

const user = process.env.USER_NAME;
const file = JSON.parse(process.env.JOB_FILE);

async function waitForEnd(client, name) {
  for (;;) {
    const job = await client.job.getJob(user, name);
    if (!["WAITING", "RUNNING", "STOPPING"].includes(job.jobStatus.state)) {
      return job;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function fetchText(address) {
  return new Promise((resolve, reject) => {
    http.get(address, (response) => {
      let text = "";
      response.on("data", (piece) => (text += piece));
      response.on("end", () => resolve({ status: response.statusCode, text }));
    }).on("error", reject);
  });
}

async function main() {
  const client = new PAIV2.OpenPAIClient({
    rest_server_uri: process.env.SERVER,
    username: user,
    password: process.env.PASSWORD,
    https: false,
  });
  const failed = (error) => ({ status: error.status, data: error.data });
  const answers = {};
  answers.info = await client.api.getClusterInfo();
  answers.created = await client.job.createJob(file);
  answers.ended = await waitForEnd(client, file.name);
  answers.list = await client.job.listJobs();
  answers.counted = await client.job.listJobs({ username: user, state: "SUCCEEDED", withTotalCount: true, limit: 10 });
  answers.config = await client.job.getJobConfig(user, file.name);
  answers.logs = await client.job.getTaskLogs(user, file.name, 0, "main", 0, 0);
  answers.log = await fetchText(answers.logs.locations[0].uri);
  answers.tail = await fetchText((await client.job.getTaskLogs(user, file.name, 0, "main", 0, 0, true)).locations[0].uri);
  answers.task = await client.job.getTask(user, file.name, 0, "main", 0);
  answers.events = await client.job.listEvents(user, file.name);
  answers.tagged = await client.job.addTag(user, file.name, "paper");
  answers.untagged = await client.job.deleteTag(user, file.name, "paper");
  answers.attempts = await client.jobHistory.getJobAttempts(user, file.name);
  answers.attempt = await client.jobHistory.getJobAttempt(user, file.name, 0);
  answers.healthy = await client.jobHistory.getJobAttemptsHealthz(user, file.name);
  answers.user = await client.user.getUser(user);
  answers.users = await client.user.getAllUser().catch(failed);
  answers.clusters = await client.virtualCluster.listVirtualClusters();
  answers.cluster = await client.virtualCluster.getVirtualCluster("default");
  answers.skus = await client.virtualCluster.getVirtualClusterSkuTypes("default");
  answers.groups = await client.group.getAllGroup();
  answers.members = await client.group.getGroupMembers(answers.groups[0].groupname);
  answers.storages = await client.storage.getStorages();
  answers.tokens = await client.token.getTokens();
  answers.application = await client.token.createApplicationToken();
  answers.conflict = await client.job.createJob(file).catch(failed);
  answers.missing = await client.job.getJob(user, "nothing").catch(failed);
  const { main } = file.taskRoles;
  await client.job.createJob({ ...file, name: "long", taskRoles: { main: { ...main, commands: ["sleep 600"] } } });
  answers.executed = await client.job.updateJobExecutionType(user, "long", "STOP");
  answers.stopped = await waitForEnd(client, "long");
  answers.revoked = await client.token.deleteToken(answers.application.token);
  answers.signedOut = await client.authn.basicLogout();
  console.log(JSON.stringify(answers));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
