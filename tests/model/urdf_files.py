"""The real robots of example-robot-data, which installs its files beside the packages."""

import sysconfig
from pathlib import Path

ROBOTS = Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix/share/example-robot-data/robots"

SINGULAR = {
    "bluevolta_bravo7_gripper": "bravo_finger2_joint",
    "bravo7_gripper": "bravo_finger2_joint",
    "falcon_bravo7_gripper": "bravo_finger2_joint",
    "romeo": "RThumb3",
    "romeo_laas_small": "r_gripper_joint",
}
"""Files that are refused, and the hinge that moves a massless body in them."""

BROKEN = {
    "falcon": "no link has that name",
    "ur3": "has no <link>",
}
"""Files that no library reads, and why."""

URDFS: dict[str, Path] = {}
"""The URDF files by name, and by folder and name where two have the same."""
for _path in sorted(ROBOTS.glob("**/*.urdf")):
    _name = _path.stem if _path.stem not in URDFS else f"{_path.parents[1].name}/{_path.stem}"
    URDFS[_name] = _path

SOUND = {name: path for name, path in URDFS.items() if name not in SINGULAR | BROKEN}
"""Those that load."""
