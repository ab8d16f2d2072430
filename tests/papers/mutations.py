"""Does the table of the papers see what it says? Places of phipsi are broken, one at a time, in a
copy of the package that a process of its own imports; the rows that a mutation names must fail
there, and hold in a copy that is as it is. The interpreter runs the programs, for each is run once.

    python -m tests.papers.mutations [NUMBER ...]

A row is broken by a mutation if it is out of its tolerance or raises an error. What stands for what
is in the table MUTATIONS; a text that the source does not have exactly once is an error.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "phipsi"
MEASURE = "--measure"
"""The argument with which this module measures rows, in a process of its own."""


@dataclass(frozen=True)
class Mutation:
    """A place in the package, what it is changed to, and the rows that must notice."""

    what: str
    file: str
    """Below the package."""
    old: str
    new: str
    rows: tuple[str, ...]

    def applied(self, package: Path) -> None:
        """Change the file in a copy of the package."""
        text = (package / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            times = text.count(self.old)
            raise ValueError(f"{self.what}: {self.file} has {times} times {self.old!r}, needs one")
        (package / self.file).write_text(text.replace(self.old, self.new), encoding="utf-8")


STEPS = "operators/lowering/steps.py"
NEWTON = "algorithms/newton_euler.py"
KINEMATICS = "algorithms/kinematics.py"
SPLIT = "algorithms/under_actuated.py"
DIAGONAL = "algorithms/diagonalized.py"
FREE = "algorithms/base_invariant.py"

# fmt: off
MUTATIONS = (
    # ---- [SOA] ----------------------------------------------------------------------------------
    Mutation("a missing sibling: only the first child counts in a sum", "sweeps/forest.py",
        "for c in self._records:\n            start = start + message(c)",
        "for c in self._records[:1]:\n            start = start + message(c)",
        ("[SOA] (3.1)–(3.6)", "[SOA] (4.1)–(4.3)")),
    Mutation("gravity and external forces with the wrong sign", STEPS,
        "- k.M @ gravity - k.f_ext", "+ k.M @ gravity + k.f_ext",
        ("[UA] (6.9)", "[DL] Alg 8.1")),
    Mutation("a wrong frame: a Jacobian in world axes, about the world's origin", KINEMATICS,
        "            return at.aligned.inv.T", "            return at.inv.T",
        ("[SOA] (2.1)", "[SOA] 6: operational space control")),
    Mutation("a weight of a frame that is left in the axes of the frame", KINEMATICS,
        "bodies[i] = bodies[i] + frame.placement.congruence(W)", "bodies[i] = bodies[i] + W",
        ("[SOA] 2: (J*J)⁻¹",)),
    Mutation("no armature in 𝓜", "algorithms/mass_matrix.py",
        ' + np.diag(robot.joint_data("armature"))', "",
        ("[SOA] (3.1)–(3.6)", "[SOA] 3: Newton–Euler")),
    Mutation("a transposed operator: m in the place of m*", "algorithms/mass_matrix.py",
        "(m, m.T, l, l.T)", "(m, m, l, l.T)",
        ("[SOA] 6: decoupled equations",)),
    Mutation("the force of a tip on the robot, and not on its surroundings",
        "algorithms/operational_space.py",
        "compute(-(mass.inv @ J(*forces).T)", "compute((mass.inv @ J(*forces).T)",
        ("[SOA] 5, Application 1",)),
    Mutation("innovations that a hinge lets pass with the wrong sign", "algorithms/cut.py",
        '"z_plus": z - ForceBasis(', '"z_plus": z + ForceBasis(',
        ("[SOA] 5, Application 2", "[SOA] 5, Application 3", "[SOA] 6: grasps")),
    Mutation("a reversed squeeze of internal forces", "control/grasping.py",
        "force if g.kind.rolls else -force", "-force if g.kind.rolls else force",
        ("[SOA] 6: control of grasped objects",)),
    Mutation("a Coriolis product with the wrong sign", NEWTON,
        "parent.alpha - k.Delta.cross(W_plus)", "parent.alpha + k.Delta.cross(W_plus)",
        ("[SOA] 6: Lyapunov control",)),
    Mutation("a controller that damps the error of another reference", "control/joint_space.py",
        "- damping * (v - reference)", "- damping * (v - rate)",
        ("[SOA] 6: Lyapunov control",)),
    Mutation("the drift of a frame with the wrong sign", "control/task_space.py",
        "tip.force(now.acceleration[chosen] - tip.drift)",
        "tip.force(now.acceleration[chosen] + tip.drift)",
        ("[SOA] 6: operational space control",)),
    Mutation("a missing Coriolis part of the motion that is linearized", "algorithms/variations.py",
        " + V_plus.cross(Delta) + k.rate(k.v, k.v)", " + k.rate(k.v, k.v)",
        ("[SOA] 6: linearized models",)),
    Mutation("deviations that do not turn with the motion", "algorithms/derivatives.py",
        "[[-robot.bracket(v, np.eye(n)).T, np.eye(n)]", "[[np.zeros((n, n)), np.eye(n)]",
        ("[SOA] 6: linearized models",)),
    Mutation("a root in the place of its adjoint", "operators/algebra/symbols/bodies.py",
        "lambda k, y: k.D.root_transpose(y),", "lambda k, y: k.D.root(y),",
        ("[SOA] 6: decoupled equations", "[DL] (5.1)–(5.4)")),
    Mutation("forces of children that are added in the axes of the children",
        "operators/lowering/execute.py",
        "near.sum(lambda c: c.phi @ getattr(c, name), Force.zero())",
        "near.sum(lambda c: getattr(c, name), Force.zero())",
        ("[SOA] Lemma 5.1", "[SOA] Lemma A.1")),

    # ---- [BI] -----------------------------------------------------------------------------------
    Mutation("siblings that the dual inertia does not hear", STEPS,
        "parent.rest + k.siblings", "parent.rest",
        ("[BI] Alg 3.1", "[BI] 3.5")),
    Mutation("siblings after a body that send it no force", "sweeps/forest.py",
        "map(added, before(bodies), before(bodies[::-1]))",
        "map(added, before(bodies), before(bodies))",
        ("[BI] Lemma 4.1", "[BI] 3.5")),
    Mutation("an ignored base: no force on a free root", FREE,
        "eps = k.tau + k.H @ z_plus", "eps = k.tau * parent.inner + k.H @ z_plus",
        ("[BI] Alg 3.3", "[BI] Lemma 3.2")),
    Mutation("a missing Coriolis acceleration of links", FREE,
        "bias = k.phi.T @ parent.bias + k.a", "bias = k.phi.T @ parent.bias",
        ("[BI] Lemma 3.2", "[BI] Alg 3.4")),
    Mutation("one side of a hinge with the gain of the other", FREE,
        "* k.inside + k.minus_G_s.T @ k.lam", "* k.inside + k.G.T @ k.lam",
        ("[BI] (26)",)),
    Mutation("a compliance that hinges do not reduce", STEPS,
        '"Upsilon": plus.through(k.G, k.H)', '"Upsilon": plus.yielding(k.H)',
        ("[BI] (34)", "[SOA] 5, Application 2")),
    Mutation("an old base whose force is forgotten", "algorithms/rebasing.py",
        "return sum(map(base_force, model.uprooted(robot, other)), model.force(",
        "return sum(map(base_force, []), model.force(",
        ("[BI] Lemma A.1", "[BI] Lemma A.2")),

    # ---- [UA] -----------------------------------------------------------------------------------
    Mutation("active hinges that yield", STEPS,
        "G = P.gain(k.H, k.A, k.passive)", "G = P.gain(k.H, k.A)",
        ("[UA] (4.6)–(4.9)",)),
    Mutation("no armature at active joints", SPLIT,
        "held = w + k.D_p.others(yielded) + ", "held = w + k.D_p.others(yielded) + 0.0 * ",
        ("[UA] (5.4)", "[UA] Lemma 5.2")),
    Mutation("hinge maps that do not turn", SPLIT,
        "rate = k.H.T @ k.qdd + k.H_rate(k.v)", "rate = k.H.T @ k.qdd",
        ("[UA] (5.4)", "[UA] (6.9)", "[UA] (6.10)")),
    Mutation("passive joints that do not move the tip", SPLIT,
        "MotionBasis(tuple(m + k.H.T @ rate for m, rate in", "MotionBasis(tuple(m for m, rate in",
        ("[UA] Lemma 6.3, (6.11)", "[UA] (6.12)", "[UA] 6.2: tracking")),
    Mutation("the drift with the sign of the paper's (7.1)", "control/tasks.py",
        "weight * (wanted - drift.frame)[rows]", "weight * (wanted + drift.frame)[rows]",
        ("[UA] 6.2: tracking", "[UA] (7.1)")),
    Mutation("a stale gain: the base is held with the gains of the tip", "control/reaction.py",
        "home, None, None, base_stiffness, base_damping)", "home, None, None, stiffness, damping)",
        ("[UA] (7.1)",)),
    Mutation("momenta that are added in the axes of each body", "algorithms/energy_momentum.py",
        '{"h": k.pose @ (k.M @ k.V)}', '{"h": k.M @ k.V}', ("[UA] (7.2)–(7.3)",)),

    # ---- [DL] -----------------------------------------------------------------------------------
    Mutation("a cross product of motions on forces", "spatial/vectors.py",
        "cross(a, force.angular) + cross(b, force.linear), cross(a, force.linear))",
        "cross(a, force.angular), cross(b, force.angular) + cross(a, force.linear))",
        ("[DL] (5.5)", "[DL] Alg 6.1")),
    Mutation("Table 3 as printed: z⁺ = z + Gε", DIAGONAL,
        '"z_plus": z + k.G @ kappa}', '"z_plus": z + k.G @ k.eps}',
        ("[DL] (5.1)–(5.4)", "[DL] Control 8.1")),
    Mutation("inertias that do not turn with their hinge", STEPS,
        " + k.P_plus.turning(k.Delta)", "", ("[DL] Alg 6.1", "[DL] Table 4", "[DL] Lemma 7.1")),
    Mutation("a missing part of the Coriolis forces: the future", DIAGONAL,
        " - k.Delta.cross_force(f_plus)", "",
        ("[DL] (7.10)", "[DL] 7: past, present, future", "[DL] Lemma 3.1")),
    Mutation("a step of the wrong length on the way to flat coordinates", "algorithms/curvature.py",
        "k2 = (W + 0.5 * h * k1) @ A_middle", "k2 = (W + h * k1) @ A_middle",
        ("[DL] Lemma 2.1",)),
    Mutation("damping that does not see its gain", "control/diagonal.py",
        "damping * nu if matrix is None", "nu if matrix is None", ("[DL] Control 8.1",)),
    Mutation("a pose that pushes away, as printed in (8.6)", "control/diagonal.py",
        "tau = slow + jacobian(", "tau = slow - jacobian(", ("[DL] Control 8.2",)),
)
# fmt: on


def broken(rows: Iterable[str], mutation: Mutation | None = None) -> dict[str, str]:
    """What is wrong with rows, by their names: the empty text if they hold. They are measured in a
    process of its own, on a copy of the package with its own cache of compiled code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = folder / "src" / "phipsi"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        if mutation is not None:
            mutation.applied(copy)
        cache = folder / "cache"
        cache.mkdir(mode=0o700)
        paths = os.pathsep.join((str(copy.parent), str(ROOT)))
        own = {"PYTHONPATH": paths, "PHIPSI_CACHE_DIR": str(cache), "PHIPSI_BACKEND": "numpy"}
        command = [sys.executable, "-m", "tests.papers.mutations", MEASURE, *rows]
        done = subprocess.run(
            command, env={**os.environ, **own}, cwd=folder, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"the rows could not be measured:\n{done.stderr}")
        found = json.loads(done.stdout.splitlines()[-1])
        if Path(found.pop("package")) != copy:
            raise RuntimeError("the rows were not measured on the copy")
        return found


def measure(rows: Iterable[str]) -> dict[str, str]:
    """What is wrong with rows, on the package that is imported; and the folder of that."""
    import phipsi
    from tests.papers.page import ITEMS

    items = {item.id: item for item in ITEMS}
    found = {"package": str(Path(phipsi.__file__).parent)}
    for name in rows:
        try:
            error = items[name].measured()
            found[name] = "" if items[name].holds(error) else f"{error:.0e}"
        except Exception as raised:
            found[name] = f"{type(raised).__name__}: {raised}"
    return found


def run(mutations: Sequence[Mutation], tell: Callable[[str], None]) -> list[str]:
    """Break the places one after the other and tell what came of it; the sentences that are
    returned say which rows fail without a mutation, or do not notice theirs."""
    rows = dict.fromkeys(row for m in mutations for row in m.rows)
    wrong = [f"{row} fails as it is: {why}" for row, why in broken(rows).items() if why]
    tell(f"as it is: {len(rows)} rows, {len(wrong)} fail")
    for m in mutations:
        found = broken(m.rows, m)
        tell(f"{m.what}: {'; '.join(f'{row} {found[row] or None}' for row in m.rows)}")
        wrong += [f"{row} does not notice: {m.what}" for row in m.rows if not found[row]]
    return wrong


def main(arguments: Sequence[str]) -> int:
    """Break the places with these numbers, or all; 0 if every row notices."""
    if arguments[:1] == [MEASURE]:
        print(json.dumps(measure(arguments[1:])))
        return 0
    chosen = [MUTATIONS[int(number) - 1] for number in arguments] or MUTATIONS
    wrong = run(chosen, lambda line: print(line, flush=True))
    print("\n".join(wrong) or f"{len(chosen)} places broken, and the rows of each fail")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
