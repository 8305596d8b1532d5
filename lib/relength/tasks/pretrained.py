"""Pretrained models on this machine: whether one is here, and its tokenizer.

Nothing is downloaded. A model is a folder, or a name that Hugging Face's cache has; transformers is
imported only where a tokenizer is asked for.
"""

import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from relength.errors import RelengthError

EXTRA = "pip install 'relength[language]'"
LIBRARIES = ("transformers", "sacrebleu", "peft")


def folder(name: str) -> Path | None:
    """Find a pretrained model: the folder of that name, or in the cache; None if nowhere."""
    if (Path(name) / "config.json").is_file():
        return Path(name)
    home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")
    kept = cache / f"models--{name.replace('/', '--')}"
    found = {path.parent.name: path.parent for path in kept.glob("snapshots/*/config.json")}
    main = kept / "refs" / "main"  # names the snapshot of the branch main, the usual one
    try:
        usual = main.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        usual = ""
    return found.get(usual) or (found[max(found)] if found else None)


def lacks_libraries() -> str:
    """Name a library of the extra ``language`` that is not installed; empty if all are."""
    for library in LIBRARIES:
        if find_spec(library) is None:
            return f"the library {library} is not installed ({EXTRA})"
    return ""


def lacks(name: str) -> str:
    """Say why a pretrained model cannot be used here; empty if it can."""
    if folder(name) is None:
        return f"weights: {name} is neither a folder nor in Hugging Face's cache"
    return ""


def place(name: str) -> Path:
    """The folder of a pretrained model. Raises RelengthError where there is none."""
    found = folder(name)
    if found is None:
        raise RelengthError(
            f"The pretrained model {name} is not on this machine: fetch it with `hf download "
            f"{name}`, or name the folder that has it."
        )
    return found


def transformers() -> Any:
    """The library, imported when it is needed. Raises RelengthError where it is not installed."""
    try:
        import transformers as library
    except ImportError as error:
        raise RelengthError(
            f"Language models need the library {error.name or 'transformers'}: {EXTRA}."
        ) from None
    return library


@lru_cache(maxsize=4)
def tokenizer(name: str) -> Any:
    """The tokenizer of a pretrained model."""
    library = transformers()
    try:
        return library.AutoTokenizer.from_pretrained(place(name), local_files_only=True)
    except (OSError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise RelengthError(
            f"The folder of {name} has no tokenizer that can be read ({said}): fetch it again."
        ) from None


def size(name: str) -> int:
    """The number of tokens."""
    return len(tokenizer(name))


def end(name: str) -> int:
    """The token that ends a text. Raises RelengthError where a tokenizer has none."""
    found = tokenizer(name).eos_token_id
    if found is None:
        raise RelengthError(f"The tokenizer of {name} has no end token: choose another model.")
    return found
