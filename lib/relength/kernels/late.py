"""The loops that Numba compiles, in modules that are loaded when the first loop is called; and
whether kernels of Triton are wanted.

To load Numba takes a third of a second, and nothing but training on a CPU needs it. Triton comes
with builds of PyTorch for a GPU, and its kernels are used only where they are asked for.
"""

import os
import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType

from relength.errors import RelengthError


def _when_used(name: str) -> ModuleType:
    spec = find_spec(name)
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compiled = _when_used("relength.kernels.compiled")
dnc_steps = _when_used("relength.kernels.dnc_steps")
selective_steps = _when_used("relength.kernels.selective_steps")


def triton_asked() -> bool:
    """Tell whether ``RELENGTH_TRITON=1`` asks for Triton's kernels where there are some."""
    return os.environ.get("RELENGTH_TRITON") == "1"


def check_triton(kind: str) -> None:
    """Raise RelengthError if Triton is asked for and cannot be had on this kind of device."""
    if not triton_asked():
        return
    if find_spec("triton") is None:
        raise RelengthError(
            "RELENGTH_TRITON=1 asks for Triton, which is not installed: run `pip install triton`, "
            "or unset it."
        )
    if kind != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        raise RelengthError(
            f"RELENGTH_TRITON=1 asks for Triton, which needs a GPU, and this run is to be trained "
            f"on {kind}: choose --device cuda, set TRITON_INTERPRET=1 to have its interpreter try "
            "it slowly, or unset it."
        )
