"""Write the schemas in tests/deploy/schemas that other projects publish; needs the network, the tests do not.

    python tools/vendor_schemas.py

kubernetes_pod.json: a pod's template, from the package kubernetes-validate. skypilot_task.json: a task, from
the package skypilot, which is installed in an environment of its own for that, removed afterwards.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "deploy" / "schemas"
KUBERNETES, KUBERNETES_VALIDATE = "1.33.0", "1.37.0"
SKYPILOT = "0.14.1"
POD = "io.k8s.api.core.v1.PodTemplateSpec"

# A task's schema leaves these to schemas of their own, which SkyPilot applies one after the other.
READ_SKYPILOT = """
import json
from sky.utils import schemas
task = schemas.get_task_schema()
task["properties"]["resources"] = schemas.get_resources_schema()
mount = {"anyOf": [{"type": "string"}, schemas.get_storage_schema()]}
task["properties"]["file_mounts"]["additionalProperties"] = mount
print(json.dumps(task))
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        write("kubernetes_pod", kubernetes_pod(Path(name)), f"Kubernetes {KUBERNETES}")
        write("skypilot_task", skypilot_task(Path(name)), f"SkyPilot {SKYPILOT}")


def write(name: str, schema: dict[str, Any], source: str) -> None:
    note = f"{source}, Apache License 2.0. Written by tools/vendor_schemas.py: descriptions are left out."
    text = json.dumps({"$comment": note, **schema}, indent=1, sort_keys=True)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def kubernetes_pod(folder: Path) -> dict[str, Any]:
    """The schema that refuses unknown fields, with what it refers to and nothing else."""
    package = f"kubernetes-validate=={KUBERNETES_VALIDATE}"
    run(sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, package)
    (wheel,) = folder.glob("kubernetes_validate-*.whl")
    file = f"kubernetes_validate/kubernetes-json-schema/v{KUBERNETES}-local-strict/_definitions.json"
    known = json.loads(zipfile.ZipFile(wheel).read(file))["$defs"]
    needed, waiting = {}, [POD]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = without_descriptions(known[name])
            waiting += [reference.rpartition("/")[2] for reference in references(needed[name])]
    return {"$ref": f"#/$defs/{POD}", "$defs": needed}


def skypilot_task(folder: Path) -> dict[str, Any]:
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", f"skypilot[kubernetes]=={SKYPILOT}")
    return dict(json.loads(run(python, "-c", READ_SKYPILOT)))


def run(*command: object) -> str:
    return subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE, text=True).stdout


def without_descriptions(tree: Any) -> Any:
    if isinstance(tree, dict):
        # A field may be called description; its schema is a mapping, a description is text.
        kept = {key: each for key, each in tree.items() if key != "description" or isinstance(each, dict)}
        return {key: without_descriptions(each) for key, each in kept.items()}
    return [without_descriptions(each) for each in tree] if isinstance(tree, list) else tree


def references(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        if isinstance(tree.get("$ref"), str):
            yield tree["$ref"]
        for each in tree.values():
            yield from references(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from references(each)


if __name__ == "__main__":
    main()
