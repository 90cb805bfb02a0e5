"""Repair `import torchvision` in an environment whose torch is a CPU build.

PyPI's torchvision is linked against CUDA libraries. On a CPU build of torch its C++ library does not load,
the operators ``nms`` and ``qnms`` stay undeclared, and ``import torchvision`` dies with "operator
torchvision::nms does not exist", although its transforms are plain torch. The set-up copies this file into
the environment next to a .pth file that calls `install` at every interpreter start, so that subprocesses are
repaired too. It costs one entry in ``sys.meta_path`` and imports nothing until torchvision is imported.

A torchvision whose library loads (PyTorch's own CPU build, or CUDA) is left as it is.
"""

import sys
from importlib.machinery import PathFinder, SourceFileLoader

SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
_library = None  # torch.library removes what a Library declared when the object dies


def declare_missing_operators(folder):
    """Declare the two schemas, unless torch has CUDA or torchvision's own library can declare them."""
    global _library
    import os

    import torch

    if torch.version.cuda is not None or _library is not None:
        return
    for name in os.listdir(folder):
        if name.startswith("_C") and name.endswith(".so"):
            try:
                torch.ops.load_library(os.path.join(folder, name))
            except OSError:
                continue
    missing = [schema for name, schema in SCHEMAS.items() if not hasattr(torch.ops.torchvision, name)]
    if missing:
        _library = torch.library.Library("torchvision", "FRAGMENT")
        for schema in missing:
            _library.define(schema)


class Loader(SourceFileLoader):
    """torchvision's own loader, with the repair just before its first line runs."""

    def exec_module(self, module):
        import os

        if Finder in sys.meta_path:
            sys.meta_path.remove(Finder)
        declare_missing_operators(os.path.dirname(self.path))
        super().exec_module(module)


class Finder:
    """Finds only the top-level torchvision; every other name falls through."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "torchvision":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def install():
    """Put the finder first; called by the .pth file."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
