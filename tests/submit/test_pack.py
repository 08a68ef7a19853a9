"""``spark-events pack``: an environment that runs elsewhere, and what cannot be one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.applications import cli


class Environment:
    """A virtual environment with packages of its own, whose commands see those of the tests."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
        subprocess.run(command, check=True)
        (self.packages,) = folder.glob("lib/python*/site-packages")
        self.add("mine", "ANSWER = 42\n")
        self.add("pyspark", "")
        script = folder / "bin" / "answer"
        script.write_text(f"#!{folder}/bin/python\nimport mine\nprint(mine.ANSWER)\n")
        script.chmod(0o755)

    def add(self, package: str, code: str) -> None:
        (self.packages / package).mkdir()
        (self.packages / package / "__init__.py").write_text(code)
        (self.packages / f"{package}-1.0.dist-info").mkdir()

    def pack(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command in it, in the folder beside it."""
        path = os.pathsep.join(filter(None, sys.path))
        return subprocess.run(
            [str(self.path / "bin" / "python"), "-m", "spark_events.cli.main", "pack", *words],
            cwd=self.path.parent,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    def unpack(self, archive: Path, folder: Path) -> None:
        """Unpack an archive, and remove the environment that it was made of."""
        shutil.rmtree(self.path)
        folder.mkdir()
        subprocess.run(["tar", "-xzf", str(archive), "-C", str(folder)], check=True)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "here")


def output(*words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout


def test_it_runs_where_it_is_unpacked(environment: Environment, tmp_path: Path) -> None:
    """Its Python has its packages, and its scripts run with its Python; the environment is gone meanwhile."""
    done = environment.pack()
    assert done.returncode == 0, done.stderr
    assert "--archives environment.tar.gz#env" in done.stdout
    assert "1 package, for nodes" in done.stderr
    there = tmp_path / "there"
    environment.unpack(tmp_path / "environment.tar.gz", there)

    prefix, answer = output(
        str(there / "bin" / "python"), "-c", "import sys, mine; print(sys.prefix, mine.ANSWER)"
    ).split()
    assert (prefix, answer) == (str(there), "42")
    assert output(str(there / "bin" / "answer")) == "42\n"


@pytest.mark.parametrize("words", [(), ("--with-pyspark",)])
def test_the_cluster_has_pyspark_already(
    environment: Environment, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert environment.pack(*words).returncode == 0
    environment.unpack(tmp_path / "environment.tar.gz", tmp_path / "there")
    found = sorted(path.name for path in tmp_path.glob("there/lib/python*/site-packages/pyspark*"))
    assert found == (["pyspark", "pyspark-1.0.dist-info"] if words else [])


def test_a_python_elsewhere(environment: Environment, tmp_path: Path) -> None:
    """Its version is the same, its place on the nodes is another."""
    elsewhere = tmp_path / "usr" / "python-of-the-nodes"
    elsewhere.parent.mkdir()
    done = environment.pack("--node-python", str(elsewhere))
    assert done.returncode == 0, done.stderr
    there = tmp_path / "there"
    environment.unpack(tmp_path / "environment.tar.gz", there)
    python = there / "bin" / "python"
    while python.is_symlink() and not python.is_relative_to(elsewhere.parent):
        python = python.parent / python.readlink()
    assert python == elsewhere
    assert f"home = {elsewhere.parent}\n" in (there / "pyvenv.cfg").read_text()


def test_code_outside_of_it(environment: Environment, tmp_path: Path) -> None:
    """It would be missing in the cluster."""
    editable = {"url": "file:///somewhere", "dir_info": {"editable": True}}
    (environment.packages / "mine-1.0.dist-info" / "direct_url.json").write_text(json.dumps(editable))
    (environment.packages / "old.pth").write_text("/somewhere/else\n")
    done = environment.pack()
    assert done.returncode == 3
    assert "the code of /somewhere/else, mine is outside of" in done.stderr
    assert not (tmp_path / "environment.tar.gz").exists()


def test_packages_of_the_system(environment: Environment) -> None:
    settings = environment.path / "pyvenv.cfg"
    settings.write_text(settings.read_text().replace("packages = false", "packages = true"))
    done = environment.pack()
    assert done.returncode == 3
    assert "make it without --system-site-packages" in done.stderr


def test_no_environment(tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [os.path.realpath(sys.executable), "-m", "spark_events.cli.main", "pack"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "is not in a virtual environment" in done.stderr


def test_an_archive_that_is_there(environment: Environment, tmp_path: Path) -> None:
    """It is replaced only if asked for; one inside of the environment does not contain itself."""
    archive = environment.path / "environment.tar.gz"
    archive.write_text("mine")
    done = environment.pack(str(archive))
    assert done.returncode == 2
    assert "exists already; --force replaces it" in done.stderr
    assert archive.read_text() == "mine"
    assert environment.pack(str(archive), "--force").returncode == 0
    packed = [output("tar", "-tzf", str(archive))]
    assert environment.pack(str(archive), "--force").returncode == 0
    packed.append(output("tar", "-tzf", str(archive)))
    assert packed[0] == packed[1]
    assert "environment.tar.gz" not in packed[0]


def test_a_package_within_a_package_is_no_further_one(environment: Environment) -> None:
    """Setuptools, for one, has the packages that it needs within itself."""
    (environment.packages / "mine" / "_vendor" / "theirs-2.0.dist-info").mkdir(parents=True)
    done = environment.pack()
    assert done.returncode == 0, done.stderr
    assert "1 package, for nodes" in done.stderr


@pytest.mark.parametrize("is_file", [True, False])
def test_packages_that_are_links_to_elsewhere(
    environment: Environment, tmp_path: Path, is_file: bool
) -> None:
    """They would lead nowhere in the cluster; those of PySpark are not packed."""
    elsewhere = tmp_path / "cache"
    for package in ("mine", "pyspark"):
        installed = environment.packages / package / ("__init__.py" if is_file else "")
        cached = elsewhere / package / installed.name
        cached.parent.mkdir(parents=True)
        installed.rename(cached)
        installed.symlink_to(cached)
    done = environment.pack()
    assert done.returncode == 3, done.stderr
    assert f"the code of mine is outside of {environment.path}" in done.stderr
    assert not (tmp_path / "environment.tar.gz").exists()


def test_a_file_that_cannot_be_read(environment: Environment) -> None:
    """It is named, and not the archive."""
    unreadable = environment.packages / "odd.pth"
    unreadable.mkdir()
    done = environment.pack()
    assert done.returncode == 3
    assert f"{unreadable}: cannot be read: Is a directory" in done.stderr.replace("\n", "")
    assert "cannot be written" not in done.stderr


def test_a_folder_that_is_not_there(environment: Environment) -> None:
    done = environment.pack("no/where.tar.gz")
    assert done.returncode == 3
    assert "no/where.tar.gz: cannot be written: No such file or directory" in done.stderr


def test_the_help_names_it() -> None:
    assert "pack" in output(*cli("--help"))


def test_two_at_once(environment: Environment, tmp_path: Path) -> None:
    """Each writes a file of its own until that is complete; neither packs what the other one writes."""
    (environment.packages / "mine" / "noise.bin").write_bytes(os.urandom(15_000_000))
    words = (str(environment.path / "env.tar.gz"), "--force")
    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(lambda _: environment.pack(*words), range(2)):
            assert done.returncode == 0, done.stderr
    names = output("tar", "-tzf", words[0]).splitlines()
    assert "./lib" in names or any(name.startswith("lib") for name in names)
    assert [name for name in names if "env.tar.gz" in name] == []
    assert sorted(path.name for path in environment.path.glob("env.tar.gz*")) == ["env.tar.gz"]
