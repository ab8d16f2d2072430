"""MJCFs of strangers that ask MuJoCo for more than it has, by what they must come to.

`python -m tests.model.mjcf_bombs` loads all of them and says what each took.
"""

from __future__ import annotations

import resource
import time
import warnings

import phipsi as pp

BOX = '<geom size="1" mass="1"/>'
ARM = f'<body name="a"><joint name="j"/>{BOX}</body>'
MOST = 2**31 - 1


def model(inside: str = "", *, bodies: str = ARM) -> str:
    """An MJCF with these bodies and these parts beside them."""
    return f"<mujoco>{inside}<worldbody>{bodies}</worldbody></mujoco>"


def asset(part: str, *, bodies: str = ARM) -> str:
    return model(f"<asset>{part}</asset>", bodies=bodies)


def size(**numbers: object) -> str:
    return model("<size " + " ".join(f'{k}="{v}"' for k, v in numbers.items()) + "/>")


def mesh(kind: str, params: str) -> str:
    return asset(f'<mesh name="m" builtin="{kind}" params="{params}"/>')


def texture(width: object, height: object) -> str:
    return asset(f'<texture name="t" type="2d" builtin="flat" width="{width}" height="{height}"/>')


def replicate(count: object, part: str = f"<body><joint/>{BOX}</body>") -> str:
    return model(bodies=f'<replicate count="{count}" offset="1 0 0">{part}</replicate>')


def grid(count: str, kind: str = "grid", dim: int = 2) -> str:
    attributes = f'name="f" type="{kind}" count="{count}" dim="{dim}" radius=".01" mass="1"'
    return model(bodies=f'<flexcomp {attributes} spacing=".1 .1 .1"/>')


def motor(attributes: str, kind: str = "motor") -> str:
    return model(f'<actuator><{kind} joint="j" {attributes}/></actuator>')


AT_ONCE = {
    "mesh: sphere": mesh("sphere", "100"),
    "mesh: supersphere": mesh("supersphere", "100000 1 1"),
    "mesh: supertorus": mesh("supertorus", "100000 1 1 1"),
    "mesh: wedge": mesh("wedge", "100000 100000 90 90 0"),
    "mesh: cone": mesh("cone", "100000000 1"),
    "mesh: plate": mesh("plate", "1e9 1e9"),
    "mesh: negative": mesh("plate", "-1 -1"),
    "mesh: no such vertex": asset(
        f'<mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 1 {MOST}"/>',
        bodies='<geom type="mesh" mesh="m"/>',
    ),
    "height field": asset('<hfield name="h" nrow="46340" ncol="46340" size="1 1 1 1"/>'),
    "height field: overflow": asset('<hfield name="h" nrow="65536" ncol="65536" size="1 1 1 1"/>'),
    "height field: plus": asset('<hfield name="h" nrow="+46340" ncol="+46340" size="1 1 1 1"/>'),
    "height field: negative": asset('<hfield name="h" nrow="-2" ncol="-2" size="1 1 1 1"/>'),
    "texture": texture(50_000, 50_000),
    "texture: plus": texture("+50000", "+50000"),
    "texture: overflow": texture(65_536, 65_536),
    "texture: negative": texture(-1, -5),
    "texture: size in the defaults": model(
        '<default><texture width="30000" height="30000"/></default>'
        '<asset><texture name="t" type="2d" builtin="flat"/></asset>'
    ),
    "texture: sky": asset('<texture type="skybox" builtin="gradient" width="20000" name="t"/>'),
    "replicate: too large": replicate("99999999999999999999"),
    "replicate: exponent": replicate("1e9"),
    "replicate: hexadecimal": replicate("0x7fffffff"),
    "replicate: other digits": replicate("\u0661\u0662"),
    "user data": size(nuserdata=MOST),
    "user data of bodies": size(nuser_body=f"+{MOST}"),
    "user data of joints": size(nuser_jnt=MOST),
    "user data of geoms": size(nuser_geom=MOST),
    "user data of sensors": size(nuser_sensor=MOST),
    "flexcomp: grid": grid("1000 1000 1000"),
    "flexcomp: negative": grid("-1 -1 -1"),
    "sensor": model(
        '<sensor><user name="u" dim="2000000000" needstage="pos" datatype="real"/></sensor>'
    ),
    "sensor: camera": model(
        '<sensor><rangefinder camera="c"/></sensor>',
        bodies=ARM + '<camera name="c" resolution="30000 30000"/>',
    ),
    "numbers": model('<custom><numeric name="n" size="2000000000" data="1"/></custom>'),
    "actuator: states": motor('dyntype="user" actdim="2000000000"', "general"),
    "actuator: history": motor('nsample="1000000000" delay="1" interp="linear"'),
    "flex: no such vertex": model(
        '<deformable><flex name="f" dim="2" body="a" vertex="0 0 0 1 0 0 0 1 0" '
        'element="-5 1 2"/></deformable>'
    ),
    "deep": model(bodies="<body>" * 900 + BOX + "</body>" * 900),
    "deep frames": model(bodies="<frame>" * 900 + ARM + "</frame>" * 900),
    "many joints of a body": model(bodies="<body>" + "<joint/>" * 9_000 + BOX + "</body>"),
    "long name": model(bodies=ARM.replace('"a"', f'"{"a" * 10**6}"')),
    "hidden name": model(bodies=ARM.replace('"a"', '"a\u202eb"')),
    "hidden name, twice": model(bodies=ARM.replace('"a"', '"a\u202eb"') * 2),
    "hidden name of a joint": model(bodies=ARM.replace('"j"', '"\u2066"')),
    "hidden name of a site": model(bodies=ARM + '<site name="\u202e"/>'),
    "long name, no effort": model(
        f'<actuator><general joint="{"j" * 10**6}" gainprm="0" ctrlrange="-inf inf"/></actuator>',
        bodies=ARM.replace('"j"', f'"{"j" * 10**6}"'),
    ),
    "quaternion: too long": model(bodies=ARM.replace("<body", '<body quat="1e200 1e200 1 1"')),
    "quaternion: too short": model(bodies=ARM.replace("<body", '<body quat="1e-200 0 0 0"')),
    "long element": f"<mujoco><{'x' * 10**6} y='nan'/></mujoco>",
    "long attribute": f"<mujoco {'y' * 10**6}='nan'/>",
    "long root": f"<{'m' * 10**6}/>",
    "plugin": model('<extension><plugin plugin="nowhere"/></extension>'),
    "a file": '<mujoco><include file="/dev/zero"/></mujoco>',
    "a hidden file": '<mujoco><include file="a\u202eb"/></mujoco>',
}
"""Refused in a moment."""

AT_LENGTH = {
    "height fields": asset(
        "".join(f'<hfield name="{i}" nrow="3000" ncol="3000" size="1 1 1 1"/>' for i in range(200))
    ),
    "textures": asset(
        "".join(
            f'<texture name="{i}" type="2d" builtin="flat" width="3000" height="3000"/>'
            for i in range(300)
        )
    ),
    "replicate": replicate(MOST),
    "replicate: plus": replicate("+9999999"),
    "replicate: geoms": replicate(1_000_000, '<geom size="1"/>'),
    "replicate: nested": replicate(
        "+3000", '<replicate count="+3000"><geom size="1"/></replicate>'
    ),
    "keys": size(nkey=MOST),
    "keys in full": model("<keyframe>" + "<key/>" * 100_000 + "</keyframe>"),
    "flexcomp: circle": grid("100000000 1 1", "circle", 1),
    "flexcomp: box": grid("60 60 60", "box", 3),
    "flexcomp: ellipsoid": grid("70 70 70", "ellipsoid", 3),
    "flat": model(bodies=f"<body><joint/>{BOX}</body>" * 100_000),
    "flat and empty": model(bodies="<body/>" * 160_000),
    "geoms": model(bodies=ARM + '<geom size="1"/>' * 150_000),
    "sites": model(bodies=ARM + "<site/>" * 150_000),
    "defaults": model(
        "<default>" + "".join(f'<default class="{i}"/>' for i in range(100_000)) + "</default>"
    ),
    "user data of many bodies": model(
        '<size nuser_body="+100000"/>', bodies='<body user="1"/>' * 20_000
    ),
}
"""Refused at the limits of time or memory."""

HARMLESS = {
    "memory of simulations": size(memory="1000G"),
    "contacts": size(nconmax=MOST, njmax=MOST),
    "stack": size(nstack=MOST),
    "ranges of muscles, simulated": model(
        '<compiler><lengthrange mode="all" timestep="1e-9" inttotal="1e9" uselimit="false"/>'
        '</compiler><actuator><muscle joint="j"/></actuator>'
    ),
    "iterations": model(f'<option iterations="{MOST}" sdf_iterations="{MOST}"/>'),
    "no copy": replicate(-1),
    "shadows": model(f'<visual><quality shadowsize="{MOST}" numslices="{MOST}"/></visual>'),
}
"""Loaded, for what they ask for is not needed."""


def main() -> None:
    """Load all of them and print what they took; each is a robot, or a sentence."""
    warnings.simplefilter("ignore")
    for name, text in {**AT_ONCE, **AT_LENGTH, **HARMLESS}.items():
        start = time.perf_counter()
        try:
            said = repr(pp.load(text))
        except pp.ModelError as error:
            said = str(error)
            assert name not in HARMLESS, said
            assert said.isprintable() and len(said) < 450, said
        own, theirs = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        peak = f"{own.ru_maxrss >> 10:4} MB, MuJoCo {theirs.ru_maxrss >> 10:4} MB"
        print(f"{name:30} {time.perf_counter() - start:5.2f} s, {peak}: {said[:150]}", flush=True)


if __name__ == "__main__":
    main()
