"""Where the code of a job is: what CI's environment says, without the token that it checks out with."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.openlineage_schema import problems_of
from tests.support.told_jobs import Told

GITHUB = {
    "GITHUB_SERVER_URL": "https://github.example",
    "GITHUB_REPOSITORY": "shop/jobs",
    "GITHUB_SHA": "c0ffee",
}
GITLAB = {"CI_PROJECT_URL": "https://gitlab.example/shop/jobs", "CI_COMMIT_SHA": "c0ffee"}
JENKINS = {"GIT_URL": "https://me:s3cr3t@git.example/jobs.git", "GIT_COMMIT": "c0ffee"}


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever CI runs these tests, and outside of a repository."""
    monkeypatch.chdir(tmp_path)
    names = ["REPOSITORY", "SHA", "REF", "REF_NAME", "REF_TYPE", "HEAD_REF", "SERVER_URL"]
    gitlab = ["PROJECT_URL", "COMMIT_SHA", "COMMIT_BRANCH", "COMMIT_TAG", "MERGE_REQUEST_IID"]
    others = ["GIT_URL", "GIT_COMMIT", "GIT_BRANCH", "TAG_NAME", "CHANGE_ID"]
    for name in [*(f"GITHUB_{name}" for name in names), *(f"CI_{name}" for name in gitlab), *others]:
        monkeypatch.delenv(name, raising=False)


def location(**options: str) -> dict[str, Any]:
    """Return what the events of an application say of it."""
    file = Path("lineage.jsonl")
    told = Told(
        __ol__factory__class="openlineage",
        __ol__transport__type="file",
        __ol__transport__path=str(file.absolute()),
        **{f"__ol__{key}": value for key, value in options.items()},
    )
    told.close()
    events = [json.loads(line) for line in file.read_text().splitlines()]
    file.unlink()
    assert [problem for event in events for problem in problems_of(event)] == []
    facet: dict[str, Any] = events[0]["job"]["facets"].get("sourceCodeLocation", {})
    return {name: value for name, value in facet.items() if not name.startswith("_") and value is not None}


AT_GITHUB = {
    "type": "git",
    "url": "https://github.example/shop/jobs/tree/c0ffee",
    "repoUrl": "https://github.example/shop/jobs",
    "version": "c0ffee",
}
AT_GITLAB = {
    "type": "git",
    "url": "https://gitlab.example/shop/jobs/-/tree/c0ffee",
    "repoUrl": "https://gitlab.example/shop/jobs",
    "version": "c0ffee",
}
ELSEWHERE = {
    "type": "git",
    "url": "https://git.example/jobs.git",
    "repoUrl": "https://git.example/jobs.git",
    "version": "c0ffee",
}


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, {}),
        ({**GITHUB, "GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "main"}, {**AT_GITHUB, "branch": "main"}),
        ({**GITHUB, "GITHUB_REF_TYPE": "tag", "GITHUB_REF_NAME": "v1"}, {**AT_GITHUB, "tag": "v1"}),
        (
            {
                **GITHUB,
                "GITHUB_REF": "refs/pull/42/merge",
                "GITHUB_REF_TYPE": "branch",
                "GITHUB_REF_NAME": "42/merge",
                "GITHUB_HEAD_REF": "fix",
            },
            {**AT_GITHUB, "branch": "fix", "pullRequestNumber": "42"},
        ),
        ({**GITLAB, "CI_COMMIT_BRANCH": "main"}, {**AT_GITLAB, "branch": "main"}),
        ({**GITLAB, "CI_COMMIT_TAG": "v1"}, {**AT_GITLAB, "tag": "v1"}),
        ({**GITLAB, "CI_MERGE_REQUEST_IID": "42"}, {**AT_GITLAB, "pullRequestNumber": "42"}),
        (
            {**JENKINS, "GIT_BRANCH": "origin/main", "CHANGE_ID": "42"},
            {**ELSEWHERE, "branch": "main", "pullRequestNumber": "42"},
        ),
        (
            {**JENKINS, "GIT_URL": "git@git.example:jobs.git"},
            {**ELSEWHERE, "url": "git@git.example:jobs.git", "repoUrl": "git@git.example:jobs.git"},
        ),
    ],
)
def test_what_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], told: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert location() == told


@pytest.fixture
def told_by_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE__FACETS__SOURCE_CODE_LOCATION__DISABLED", "false")


@pytest.mark.usefixtures("told_by_client")
def test_a_token_of_the_checkout_is_not_shown(tmp_path: Path) -> None:
    """The client reads .git/config, where GitLab's runner leaves one."""
    subprocess.run(["git", "init", "-q", "-b", "main"], check=True, cwd=tmp_path)
    origin = "https://gitlab-ci-token:s3cr3t@gitlab.example/shop/jobs.git"
    subprocess.run(["git", "remote", "add", "origin", origin], check=True, cwd=tmp_path)
    found = location()
    assert (found["url"], found["branch"]) == ("https://gitlab.example/shop/jobs.git", "main")
    assert "s3cr3t" not in str(found)


@pytest.mark.usefixtures("told_by_client")
def test_the_clients_own_settings_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GITHUB.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENLINEAGE__FACETS__SOURCE_CODE_LOCATION__REPO_URL", "https://own.example")
    assert location()["repoUrl"] == "https://own.example"


def test_it_is_not_told_where_that_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GITHUB.items():
        monkeypatch.setenv(name, value)
    assert location(include_source_code="false") == {}
