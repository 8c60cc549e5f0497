"""The environment beside transformers, in build/peers: `./test --peers` makes it, with the versions in setup.sh."""
import importlib.util
import os
import sys
from pathlib import Path

SKIPPED = 77  # SKIP_RETURN_CODE of these tests
PACKAGES = ("torch", "transformers", "tokenizers", "sentencepiece", "safetensors")
PYTHON = Path(__file__).resolve().parents[2] / "build/peers/bin/python"


def enter(program):
    """Goes on with `program`, the file of a test, in an interpreter that has the packages, or ends it as skipped."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if not missing: return
    if PYTHON.exists() and Path(sys.prefix) != PYTHON.parents[1]: os.execv(PYTHON, [str(PYTHON), program, *sys.argv[1:]])
    print(f"skipped: {Path(program).stem}: {', '.join(missing)} cannot be imported; `./test --peers` installs them")
    sys.exit(SKIPPED)
