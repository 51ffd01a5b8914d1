"""What a missing extra is called: the package to install, never a bare failure to import."""

import subprocess
import sys

import pytest

WITHOUT = "import runpy, sys\nfor name in {names!r}:\n    sys.modules[name] = None\n"


def run_without(names, code):
    """Python with packages that cannot be imported."""
    text = WITHOUT.format(names=names) + code
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)


def test_the_cluster_names_its_extra():
    done = run_without(["distributed"], "import onemodel_graph.cluster")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: onemodel_graph.cluster: expected the package")
    assert last.endswith("pip install 'onemodel-graph[dask]'")


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_line_names_its_extra(missing):
    code = "runpy.run_module('onemodel_graph', run_name='__main__')"
    done = run_without([missing], code)
    assert done.returncode == 2
    assert done.stderr == (
        "the command line needs typer and rich: pip install 'onemodel-graph[cli]'\n"
    )
