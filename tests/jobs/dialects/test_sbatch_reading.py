"""How sbatch scripts are understood."""

from collections.abc import Mapping

import pytest

from jobs import dialects
from jobs.dialects.base import Problem, Refused
from jobs.dialects.document import Document
from jobs.spec import After, EndSignal, Framework, JobSpec, When

SBATCH = dialects.get("sbatch")


def script(*options: str, body: str = "./run", first: str = "#!/bin/bash") -> str:
    return "\n".join([first, *(f"#SBATCH {each}" for each in options), "", body, ""])


def spec(*options: str, body: str = "./run") -> JobSpec:
    return SBATCH.parse(Document(script(*options, body=body))).spec


def notes(text: str) -> dict[str, Mapping[str, object]]:
    return {note.code: note.params for note in SBATCH.parse(Document(text)).notes}


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(Refused) as caught:
        SBATCH.parse(Document(text))
    return caught.value.problems


def test_script_for_one_node_is_one_process() -> None:
    job = spec("--job-name=hello", body="echo hello\n# the end")
    assert (job.name, job.framework, job.replicas) == ("hello", None, 1)
    assert (job.roles[0].name, job.roles[0].command) == ("main", "echo hello\n# the end")


def test_script_without_name_is_reported() -> None:
    assert spec().name == "sbatch"
    assert "job_unnamed" in notes(script())


@pytest.mark.parametrize(
    "line",
    [
        "--nodes=3",
        "--nodes 3",
        "-N3",
        "-N 3",
        '--nodes="3"',
        "--nodes='3'",
        "--ntasks=6 --ntasks-per-no=2",
        "-HN3",
        "-N3  # three of them",
        "-N9 -N 3",
        "--nodes=3-7",
    ],
)
def test_option_is_read_in_every_spelling(line: str) -> None:
    assert spec(line).roles[0].replicas == 3


@pytest.mark.parametrize(
    "line", ["##SBATCH -N3", " #SBATCH -N3", "# SBATCH -N3", "#sbatch -N3", "echo\n#SBATCH -N3"]
)
def test_lines_unread_by_slurm_are_no_options(line: str) -> None:
    assert SBATCH.parse(Document(f"#!/bin/sh\n{line}\nrun\n")).spec.roles[0].replicas == 1


def test_options_after_comments_and_empty_lines_count() -> None:
    job = SBATCH.parse(Document("#!/bin/sh\n\n# about it\n   # more\n#SBATCH -N3\nrun\n")).spec
    assert (job.roles[0].replicas, job.roles[0].command) == (3, "run")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('"two words"', "two words"),
        (r"two\ words", "two words"),
        (r'"a \"b\""', 'a "b"'),
        ("'it'\\''s'", "it's"),
        ("a#b", "a"),
        (r"a\#b", "a#b"),
        ('"a#b"', "a#b"),
    ],
)
def test_quotes_group_and_escape_as_in_slurm(line: str, value: str) -> None:
    assert spec(f"--comment={line}").description == value


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("90", 5400),
        ("1:30", 120),
        ("1:30:00", 5400),
        ("2-12", 216_000),
        ("2-12:30", 217_800),
        ("2-12:30:01", 217_860),
        ("0", None),
        ("UNLIMITED", None),
        ("infinite", None),
        ("-1", None),
    ],
)
def test_time_limit_is_read_in_every_form(said: str, seconds: int | None) -> None:
    assert spec(f"--time={said}").time_limit_s == seconds


def test_time_limit_left_unset_is_none() -> None:
    assert spec().time_limit_s is None


@pytest.mark.parametrize(
    ("options", "replicas", "cpus", "memory", "gpus", "kind"),
    [
        (["-N2 --ntasks-per-node=8 -c4 --mem=480G --gres=gpu:a100:8"], 2, 32, 491_520, 8, "a100"),
        (["-N2 -n16 -c4 --mem-per-cpu=2G --gpus=h100:16"], 2, 32, 65_536, 8, "h100"),
        (["-n16 --ntasks-per-node=8"], 2, 8, 1024, 0, ""),
        (["-n8 --mem=16G"], 1, 8, 16_384, 0, ""),
        (["-n4 --gpus-per-task=2 --mem-per-gpu=10G"], 1, 4, 81_920, 8, ""),
        (["-G4 --cpus-per-gpu=8"], 1, 32, 1024, 4, ""),
        (["--gpus-per-task=1 --gpus=4"], 1, 4, 1024, 4, ""),
        (["-w gpu[01-03] --mincpus=6"], 3, 6, 1024, 0, ""),
        (["--gres=gpu:2,shard:1", "--gres=gpu:v100:1,gpu:a100:2"], 1, 1, 1024, 3, ""),
        (["--gpus-per-node=2 --ntasks-per-gpu=3 -c2"], 1, 12, 1024, 2, ""),
        (["--mem=1500000K"], 1, 1, 1465, 0, ""),
    ],
)
def test_replica_gets_share_of_its_node(
    options: list[str], replicas: int, cpus: int, memory: int, gpus: int, kind: str
) -> None:
    role = spec(*options).roles[0]
    has = role.resources
    assert (role.replicas, has.cpu_milli, has.memory_mib) == (replicas, cpus * 1000, memory)
    assert (has.gpus, has.gpu_type) == (gpus, kind)


def test_options_left_open_are_reported() -> None:
    told = notes(script("-n8", "--exclusive"))
    assert {"one_node_taken", "whole_node", "no_memory"} <= told.keys()
    assert "range_taken" in notes(script("--nodes=2-4"))


def test_slurm_framework_is_set_for_several_nodes_or_slurm_commands() -> None:
    assert spec("-N2").framework is Framework.SLURM
    assert spec(body="srun python train.py").framework is Framework.SLURM
    assert spec(body="# srun is not used\npython train.py").framework is None
    assert notes(script(body="srun echo $SLURM_JOB_ID"))["needs_slurm"]["names"] == "srun, $SLURM_JOB_ID"
    assert "script_runs_once" in notes(script("-N2"))


def test_heterogeneous_job_components_become_roles() -> None:
    first = "#SBATCH -n1 -p gpu\n#SBATCH hetjob\n"
    text = f"#!/bin/sh\n{first}#SBATCH -N3 -C a100&ib --image=x\n#SBATCH packjob\nrun\n"
    parsed = SBATCH.parse(Document(text))
    roles = parsed.spec.roles
    assert [(role.name, role.replicas, role.command) for role in roles] == [
        ("main", 1, "run"),
        ("hetjob-1", 3, "run"),
        ("hetjob-2", 1, "run"),
    ]
    assert roles[1].nodes.labels == {"a100": "true", "ib": "true"}
    assert parsed.spec.framework is Framework.SLURM
    assert parsed.extras["/hetjob/1/image"] == "x"
    assert SBATCH.locate(Document(text), "/hetjob/1/constraint") == (4, 16)


@pytest.mark.parametrize(
    ("said", "signal", "seconds"),
    [
        ("USR1", "USR1", 60),
        ("B:SIGUSR2@300", "USR2", 300),
        ("15@5", "TERM", 5),
        ("R:INT@9", "INT", 9),
    ],
)
def test_signal_option_becomes_end_signal(said: str, signal: str, seconds: int) -> None:
    assert spec(f"--signal={said}").end_signal == EndSignal(signal=signal, seconds_before=seconds)


def test_slurm_only_options_are_stored_and_reported() -> None:
    text = script(
        "--begin=now+1hour", "--signal=KILL", "-C a|b", "--qos high", "--dependency=singleton", "--foo=1"
    )
    parsed = SBATCH.parse(Document(text))
    kept = {name: value for name, value in parsed.extras.items() if name.startswith("/")}
    assert kept == {
        "/begin": "now+1hour",
        "/signal": "KILL",
        "/constraint": "a|b",
        "/qos": "high",
        "/dependency": "singleton",
        "/foo": "1",
    }
    told = {note.pointer: note.code for note in parsed.notes}
    assert {told[pointer] for pointer in kept} == {"kept_unused", "unknown_key"}
    assert parsed.spec.not_before == ""


def test_mistyped_option_is_reported_with_suggestion() -> None:
    assert notes(script("--cpu-per-task=4"))["unknown_key"]["meant"] == "cpus-per-task"


def test_remaining_job_options_are_read() -> None:
    job = spec(
        "-p gpu,long",
        "-H --no-requeue",
        "--begin=uts1796112000",
        "-x n[1-2]",
        "--container-image='nvcr.io#nvidia/pytorch:24.01'",
        "--container-mounts=/a:/b:ro,/c",
        "--export=\"ALL,STAGE=train,LIST='1,2'\"",
    )
    assert (job.quota, job.hold, job.retry.fancy) == ("gpu,long", True, False)
    assert job.not_before == "2026-12-01T08:00:00Z"
    assert job.roles[0].nodes.never == ("n1", "n2")
    assert job.roles[0].image == "nvcr.io/nvidia/pytorch:24.01"
    assert [(each.uri, each.path, each.read_only) for each in job.mounts] == [
        ("/a", "/b", True),
        ("/c", "/c", False),
    ]
    assert job.env == {"STAGE": "train", "LIST": "1,2"}


def test_value_cut_off_by_comment_is_reported() -> None:
    told = notes(script("--container-image=nvcr.io#nvidia/pytorch:24.01"))
    assert told["value_cut"] == {"value": "--container-image=nvcr.io"}
    assert "value_cut" not in notes(script("-N2 # two"))


def test_secrets_leave_the_text() -> None:
    text = script("--export=ALL,WANDB_API_KEY=abc123,STAGE=x", body="export HF_TOKEN=hf_1\nrun")
    parsed = SBATCH.parse(Document(text))
    assert parsed.secrets == {"WANDB_API_KEY": "abc123"}
    assert "abc123" not in parsed.text
    assert SBATCH.with_secrets(Document(parsed.text), parsed.secrets) == text
    assert {note.code: note.params for note in parsed.notes}["secret_in_script"] == {"name": "HF_TOKEN"}


def test_script_of_other_interpreter_becomes_command_starting_it() -> None:
    text = "#!/usr/bin/env -S python3 -u\n#SBATCH -c2\n\nprint('a')\n"
    parsed = SBATCH.parse(Document(text))
    command = parsed.spec.roles[0].command
    assert "print('a')" in command
    assert command.endswith("exec /usr/bin/env '-S python3 -u' \"$script\"")
    assert SBATCH.render(parsed.spec, parsed.extras).text.startswith("#!/usr/bin/env -S python3 -u\n")


@pytest.mark.parametrize(
    ("text", "code", "place", "fixed"),
    [
        ("echo hi\n", "no_interpreter", (1, 1), "#!/bin/bash\necho hi\n"),
        (script("--mem=1.5G"), "option_value", (2, 15), script("--mem=1536M")),
        (script("-c 4.0"), "option_value", (2, 12), script("-c 4")),
        (script("--time=24h"), "option_value", (2, 16), script("--time=1-00:00:00")),
        (script("--nodes=some"), "option_value", (2, 17), None),
        (script("--gres=gpu:a100:x"), "option_value", (2, 16), None),
        (script("--signal=@60"), "option_value", (2, 18), None),
        (script("--nodes=1" + "0" * 399), "number_too_big", (2, 17), None),
        (script("--nodes=900000000"), "too_great", (2, 17), None),
        (script("-N2 now"), "not_an_option", (2, 13), None),
        (script("--nodes"), "value_missing", (2, 9), None),
        (script("--hold=yes"), "value_not_allowed", (2, 9), None),
        (script("-N2 -Z"), "unknown_letter", (2, 14), None),
        (script("--ntasks-per=1"), "ambiguous_option", (2, 9), None),
        (script('--comment="a'), "unmatched_quote", (2, 19), None),
        (script("--no\u200bdes=1"), "invisible_key", (2, 9), None),
        ("#!/bin/sh\n#SBATCH -N1\n\n", "no_commands", (2, 12), None),
        ("#!/bin/sh\nrun\0\n", "null_character", (2, 4), None),
    ],
)
def test_script_problem_has_place_source_and_possible_fix(
    text: str, code: str, place: tuple[int, int], fixed: str | None
) -> None:
    found = problems(text)
    assert [(each.code, (each.line, each.column)) for each in found] == [(code, place)]
    assert found[0].source
    if found[0].fix is None:
        assert fixed is None
    else:
        assert SBATCH.apply_fixes(Document(text), [found[0].fix]) == fixed
        assert SBATCH.parse(Document(str(fixed))).spec.roles


def test_problems_are_reported_at_once() -> None:
    text = script("--mem=x", "--array=1-", "--time=soon")
    assert [each.code for each in problems(text)] == ["option_value", "array_part", "option_value"]


def test_windows_line_ends_are_read_and_fixable() -> None:
    text = script("-N1", body="one\ntwo").replace("\n", "\r\n")
    parsed = SBATCH.parse(Document(text))
    assert parsed.spec.roles[0].command == "one\ntwo"
    note = next(note for note in parsed.notes if note.code == "dos_line_ends")
    assert note.fix
    assert "\r" not in SBATCH.apply_fixes(Document(text), [note.fix])


def test_numbered_listing_is_read_with_its_indents() -> None:
    lines = ["#!/bin/bash", "#SBATCH -N1 --mem=4G", "if true; then", "  run", "fi"]
    text = "".join(f"{number:2} {line}\n" for number, line in enumerate(lines, 1))
    parsed = SBATCH.parse(Document(text))
    assert parsed.spec.roles[0].command == "if true; then\n  run\nfi"
    assert Document(text).dialect == "sbatch"
    assert SBATCH.locate(Document(text), "/mem") == (2, 22)


def test_text_with_directives_or_shebang_is_recognised() -> None:
    assert Document(script("-N1")).candidates[0].why == "sbatch_lines"
    assert Document("#!/bin/sh\nrun\n").candidates[0].why == "shebang"
    assert Document("#SBATCH -N1\nrun\n").dialect == "sbatch"
    assert SBATCH.sniff(Document("echo")) is None


@pytest.mark.parametrize(
    ("value", "after"),
    [
        ("afterok:a1", (After(job="a1"),)),
        ("afterok:a1:b2", (After(job="a1"), After(job="b2"))),
        (
            "afterany:a1,afternotok:ada~b",
            (After(job="a1", when=When.ENDED), After(job="ada~b", when=When.FAILED)),
        ),
    ],
)
def test_dependency_option_becomes_jobs_to_wait_for(value: str, after: tuple[After, ...]) -> None:
    text = script(f"--dependency={value}")
    parsed = SBATCH.parse(Document(text))
    assert parsed.spec.after == after
    assert SBATCH.render(parsed.spec, parsed.extras, base=Document(text)).text == text
    assert SBATCH.parse(Document(SBATCH.render(parsed.spec, {}).text)).spec.after == after


def test_dependency_on_any_of_several_jobs_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        SBATCH.parse(Document(script("--dependency=afterok:1?afterany:2")))
    [problem] = caught.value.problems
    assert (problem.code, problem.pointer) == ("any_dependency", "/dependency")
    assert problem.fix is None


def test_note_about_slurm_points_at_its_line() -> None:
    text = "#!/bin/bash\n#SBATCH -n2\nmodule load cuda # not srun\n\ncd x\nsrun python train.py\n"
    (told,) = [
        note
        for note in Document(text, "sbatch").locate_notes(SBATCH.parse(Document(text)).notes)
        if "slurm" in note.code
    ]
    assert (told.line, told.column) == (6, 1)
    text = "#!/bin/bash\ncd x\nexport HF_TOKEN=abc\n"
    (told,) = [
        note
        for note in Document(text, "sbatch").locate_notes(SBATCH.parse(Document(text)).notes)
        if note.code == "secret_in_script"
    ]
    assert (told.line, told.column) == (3, 8)
