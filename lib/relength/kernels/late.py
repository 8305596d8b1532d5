"""The loops that Numba compiles, in modules that are loaded when the first loop is called.

To load Numba takes a third of a second, and nothing but training on a CPU needs it.
"""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType


def _when_used(name: str) -> ModuleType:
    spec = find_spec(name)
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


compiled = _when_used("relength.kernels.compiled")
dnc_steps = _when_used("relength.kernels.dnc_steps")
selective_steps = _when_used("relength.kernels.selective_steps")
