"""The choices of options of the command line.

They repeat types of the library, which a test compares with them, so that `phipsi --help` stays
quick: the library is not imported for it.
"""

from typing import Literal

Base = Literal["fixed", "free"]
"""As in `phipsi.model.urdf`."""
Stage = Literal["operators", "sweeps", "graph", "llvm", "cuda"]
"""As in `phipsi.programs.program`."""
Language = Literal["dynamics", "estimation"]
"""As in `phipsi.operators.writing.explain`."""
Format = Literal["text", "markdown", "latex"]
"""Properties of `phipsi.operators.writing.explain.Explanation`."""
