"""Where the code of a job is, as the environment of CI tells it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from openlineage.client.facet_v2 import source_code_location_job

from spark_events_openlineage.producer import PRODUCER

_PULL_REQUEST = re.compile(r"refs/pull/(\d+)/")
_REMOTE = "origin/"


def source_code_location(
    environment: Mapping[str, str],
) -> source_code_location_job.SourceCodeLocationJobFacet | None:
    """Return repository, commit, branch, tag and pull request.

    Args:
        environment: the variables of GitHub Actions (``GITHUB_…``), GitLab CI (``CI_…``), or those that
            Jenkins and others set (``GIT_…``).

    Returns:
        The facet; None if the environment names no repository.
    """
    variables = {name: value for name, value in environment.items() if value}
    location = _of_github(variables) or _of_gitlab(variables) or _of_others(variables)
    if location is None:
        return None
    location.url, location.repoUrl = (
        without_user(location.url),
        without_user(location.repoUrl or location.url),
    )
    return location


def _of_github(variables: Mapping[str, str]) -> source_code_location_job.SourceCodeLocationJobFacet | None:
    if "GITHUB_REPOSITORY" not in variables:
        return None
    repository = (
        f"{variables.get('GITHUB_SERVER_URL', 'https://github.com')}/{variables['GITHUB_REPOSITORY']}"
    )
    commit, name = variables.get("GITHUB_SHA"), variables.get("GITHUB_REF_NAME")
    is_tag = variables.get("GITHUB_REF_TYPE") == "tag"
    request = _PULL_REQUEST.match(variables.get("GITHUB_REF", ""))
    branch = variables.get("GITHUB_HEAD_REF") or (None if is_tag or request else name)
    return _location(
        f"{repository}/tree/{commit}" if commit else repository,
        repository,
        commit,
        branch,
        name if is_tag else None,
        request[1] if request else None,
    )


def _of_gitlab(variables: Mapping[str, str]) -> source_code_location_job.SourceCodeLocationJobFacet | None:
    if "CI_PROJECT_URL" not in variables:
        return None
    repository, commit = variables["CI_PROJECT_URL"], variables.get("CI_COMMIT_SHA")
    return _location(
        f"{repository}/-/tree/{commit}" if commit else repository,
        repository,
        commit,
        variables.get("CI_COMMIT_BRANCH") or variables.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"),
        variables.get("CI_COMMIT_TAG"),
        variables.get("CI_MERGE_REQUEST_IID"),
    )


def _of_others(variables: Mapping[str, str]) -> source_code_location_job.SourceCodeLocationJobFacet | None:
    if "GIT_URL" not in variables:
        return None
    branch = variables.get("GIT_BRANCH")
    return _location(
        variables["GIT_URL"],
        variables["GIT_URL"],
        variables.get("GIT_COMMIT"),
        branch.removeprefix(_REMOTE) if branch else None,
        variables.get("TAG_NAME"),
        variables.get("CHANGE_ID"),
    )


def _location(
    url: str, repository: str, commit: str | None, branch: str | None, tag: str | None, request: str | None
) -> source_code_location_job.SourceCodeLocationJobFacet:
    return source_code_location_job.SourceCodeLocationJobFacet(
        type="git",
        url=url,
        repoUrl=repository,
        version=commit,
        branch=branch,
        tag=tag,
        pullRequestNumber=request,
        producer=PRODUCER,
    )


def without_user(url: str) -> str:
    """Return a URL without user and password: CI checks out with a token there."""
    parts = urlsplit(url)
    if not parts.scheme or "@" not in parts.netloc:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
