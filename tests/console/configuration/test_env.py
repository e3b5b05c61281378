"""Typed variables, and the sentences for those that make no sense."""

from pathlib import Path

import pytest

from console.configuration.env import Env, EnvError


def test_env_absent_or_blank_variable_has_its_default() -> None:
    env = Env({"BLANK": "  "})
    assert env.text("ABSENT", "x", "") == "x"
    assert env.integer("BLANK", 7, "") == 7
    assert env.words("ABSENT", ("a", "b"), "") == ["a", "b"]


@pytest.mark.parametrize(
    ("raw", "value"), [("1", True), ("Yes", True), ("on", True), ("0", False), ("FALSE", False)]
)
def test_env_flag_words_ignore_case(raw: str, value: bool) -> None:
    assert Env({"X": raw}).flag("X", not value, "") is value


def test_env_words_are_split_at_commas() -> None:
    assert Env({"X": " a.example , b ,, "}).words("X", (), "") == ["a.example", "b"]


def test_env_networks_are_addresses_and_networks() -> None:
    assert Env({}).networks("X", "") == []
    assert Env({"X": "127.0.0.1, fd00::/8"}).networks("X", "") == ["127.0.0.1", "fd00::/8"]


@pytest.mark.parametrize("raw", ["*", "localhost", "10.0.0.1/8", "127.0.0.1,*"])
def test_env_networks_refuses_invalid_values(raw: str) -> None:
    with pytest.raises(EnvError, match=r"^X must be IP addresses and networks, separated by commas"):
        Env({"X": raw}).networks("X", "")


def test_env_numbers_within_bounds_are_accepted() -> None:
    env = Env({"PORT": "8001", "SECONDS": "0.5"})
    assert env.integer("PORT", 1, "", least=1, most=65535) == 8001
    assert env.seconds("SECONDS", 1, "") == 0.5


@pytest.mark.parametrize("raw", ["0", "65536", "-1", "8e3", "80 00", "eighty", "٣٠x"])
def test_env_number_out_of_bounds_error_names_variable_and_bounds(raw: str) -> None:
    with pytest.raises(
        EnvError, match=r"^PORT must be a whole number of at least 1 and at most 65535, not '.*'\.$"
    ):
        Env({"PORT": raw}).integer("PORT", 1, "", least=1, most=65535)


@pytest.mark.parametrize("raw", ["-1", "nan", "inf", "soon"])
def test_env_seconds_refuses_negative_and_infinite_values(raw: str) -> None:
    with pytest.raises(EnvError, match=r"^X must be a number of seconds, at least 0, not"):
        Env({"X": raw}).seconds("X", 1, "")


def test_env_flag_or_choice_error_lists_allowed_values() -> None:
    with pytest.raises(EnvError, match=r"^X must be 1 or 0, not 'maybe'\.$"):
        Env({"X": "maybe"}).flag("X", False, "")
    with pytest.raises(EnvError, match=r"^X must be one of json, console, not 'xml'\.$"):
        Env({"X": "xml"}).choice("X", "json", "", of=("json", "console"))


def test_env_path_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert Env({"X": "here/there"}).path("X", Path("/"), "") == tmp_path / "here" / "there"


def test_env_secret_is_read_from_variable_or_named_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    assert Env({"X": "plain"}).secret("X", "", "") == "plain"
    assert Env({"X_FILE": str(file)}).secret("X", "", "") == "s3cret"
    assert Env({}).secret("X", "", "") == ""


def test_env_secret_given_twice_or_in_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="X and X_FILE are both set"):
        Env({"X": "a", "X_FILE": "b"}).secret("X", "", "")
    with pytest.raises(EnvError, match=r"X_FILE names .*/absent, which cannot be read"):
        Env({"X_FILE": str(tmp_path / "absent")}).secret("X", "", "")


def test_env_variables_describe_themselves_without_their_values() -> None:
    env = Env({"TOKEN": "s3cret"})
    env.group("Doors")
    env.secret("TOKEN", "", "Opens the door.")
    env.integer("HEIGHT", 2, "Of the door.", unit="metres")
    assert [(v.name, v.kind, v.default, v.about, v.group) for v in env.variables.values()] == [
        ("TOKEN", "secret, or TOKEN_FILE", "", "Opens the door.", "Doors"),
        ("HEIGHT", "metres", "2", "Of the door.", "Doors"),
    ]


def test_env_mapping_is_a_json_object() -> None:
    assert Env({"M": '{"a": {"b": 1}}'}).mapping("M", "") == {"a": {"b": 1}}
    assert Env({}).mapping("M", "") == {}


@pytest.mark.parametrize("raw", ["[1]", "{", "3"])
def test_env_mapping_refuses_non_objects(raw: str) -> None:
    with pytest.raises(EnvError, match="M must be a JSON object"):
        Env({"M": raw}).mapping("M", "")
