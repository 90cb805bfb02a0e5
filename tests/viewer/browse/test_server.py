"""What is served, to whom: paths, the token, other hosts' names, headers, images that are none."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import httpx2
import pytest
from PIL import Image
from served_view import served

from vlrl.errors import ResourceError
from vlrl.viewer.browse.answers import ViewAnswers
from vlrl.viewer.browse.media import media_file, thumbnail
from vlrl.viewer.browse.server import ViewServer


def first_image(run_dir: Path) -> Path:
    return sorted((run_dir / "media").glob("*.png"))[0]


def test_the_page_and_its_policy(server: ViewServer) -> None:
    answer = httpx2.get(server.url)
    assert answer.status_code == 200 and "vlrl view" in answer.text and server.token == ""
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in answer.text and "http://" not in answer.text and "https://" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "../server.py",
        "%2e%2e/server.py",
        "..%2fserver.py",
        "page/app.js",
        "server.py",
        "rollouts/../../server.py",
        "media/grpo_s0/../config.yaml",
        "media/grpo_s0/%2e%2e%2fconfig.yaml",
        "media/grpo_s0/config.yaml",
        "media/nope/a.png",
        "thumb/grpo_s0/..%2f..%2fx.webp",
        "data/../../../etc/passwd",
        "data/grpo_s0/%2e%2e/%2e%2e",
        "data/grpo_s0/rollout/0/0/0.json",
    ],
)
def test_nothing_else_is_served(server: ViewServer, path: str) -> None:
    assert httpx2.get(server.url + path).status_code == 404


def test_another_sites_name_is_refused_on_loopback(server: ViewServer) -> None:
    for host, status in (
        ("evil.example", 404),
        (f"localhost:{server.port}", 200),
        (f"127.0.0.1:{server.port}", 200),
        ("127.0.0.1.evil.example", 404),
    ):
        assert httpx2.get(server.url, headers={"Host": host}).status_code == status, host


def test_other_addresses_need_the_token(run_dirs: list[Path]) -> None:
    with served(run_dirs[:1], host="0.0.0.0") as running:
        root = f"http://127.0.0.1:{running.port}/"
        assert len(running.token) > 24 and running.url.endswith(f":{running.port}/{running.token}/")
        for path in ("", "data/manifest.json", f"{running.token[:-1]}/", "x/data/manifest.json"):
            assert httpx2.get(root + path).status_code == 404
        assert httpx2.get(f"{root}{running.token}/data/manifest.json").json()["runs"]


def test_a_port_in_use_is_told(server: ViewServer, run_dirs: list[Path]) -> None:
    with pytest.raises(ResourceError, match=r"--port 0"):
        ViewServer(ViewAnswers(run_dirs), port=server.port)


def test_an_image_and_its_thumbnail(server: ViewServer, run_dirs: list[Path]) -> None:
    name = first_image(run_dirs[0]).stem
    whole = httpx2.get(f"{server.url}media/grpo_s0/{name}.png")
    assert (
        whole.headers["content-type"] == "image/png"
        and whole.content == first_image(run_dirs[0]).read_bytes()
    )
    small = httpx2.get(f"{server.url}thumb/grpo_s0/{name}.webp?frames=1")
    assert (
        small.headers["content-type"] == "image/webp" and Image.open(io.BytesIO(small.content)).width <= 128
    )


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "media" / f"{'a' * 64}.png").symlink_to(tmp_path / "secret.png")
    assert media_file(tmp_path, "a" * 64) is None
    assert media_file(tmp_path, "../secret") is None and media_file(tmp_path, "A" * 64) is None


def test_what_is_no_image_has_no_thumbnail(tmp_path: Path) -> None:
    page = tmp_path / "page.png"
    page.write_text("<svg onload=alert(1)>")
    assert thumbnail(page) is None
    huge = tmp_path / "huge.png"
    Image.new("1", (30_000, 30_000)).save(huge)
    assert thumbnail(huge) is None
    cut = tmp_path / "cut.png"
    buffer = io.BytesIO()
    Image.new("RGB", (300, 300), "red").save(buffer, "PNG")
    cut.write_bytes(buffer.getvalue()[:80])
    assert thumbnail(cut) is None
    gif = tmp_path / "other.png"
    Image.new("RGB", (4, 4)).save(gif, "GIF")
    assert thumbnail(gif) is None


def test_a_damaged_file_is_an_answer_and_not_the_end(run_dirs: list[Path], tmp_path: Path) -> None:
    shutil.copytree(run_dirs[2], tmp_path / "run")
    with served([tmp_path / "run"]) as running:
        file = tmp_path / "run" / "rollouts" / "train" / "000003.parquet"
        data = file.read_bytes()
        file.write_bytes(data[:200] + bytes(len(data) - 400) + data[-200:])
        answer = httpx2.get(f"{running.url}data/run/rollout/3/0.json")
        assert answer.status_code == 404 and "cannot be read" in answer.json()["error"]
        assert httpx2.get(f"{running.url}data/run/rollout/4/0.json").status_code == 200
