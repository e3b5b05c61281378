"""Submit a job, follow its log, and download what it wrote."""

from pathlib import Path

from job_console import Client, InvalidRequestError, WaitTimeoutError

Path("job.sh").write_text("""#!/bin/sh
#SBATCH --job-name=hello --cpus-per-task=1 --mem=256M
echo hello | tee greeting.txt
""")
with Client() as console:
    try:
        job = console.submit(Path("job.sh"), idempotency_key="hello-1")
    except InvalidRequestError as error:
        raise SystemExit("\n".join(f"{each.pointer}: {each.message}" for each in error.problems)) from error
    for piece in console.logs(job.id, follow=True):
        print(piece.decode(), end="")
    try:
        job = console.wait(job.id, timeout=600)
    except WaitTimeoutError as error:
        job = console.stop(error.job.id)
    print(job.name, job.state, job.exit_codes)
    newest = next(console.list(owner="me", name="hello"))
    print(newest.id == job.id, [each.name for each in console.list_files(job.id)])
    print(console.download(job.id, "greeting.txt", Path("copy.txt")).read_text(), end="")
