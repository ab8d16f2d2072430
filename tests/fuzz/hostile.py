"""Numbers, names and bytes that programs are known to stumble over."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

NUMBERS = (
    "nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e308", "-1e308", "1.7976931348623157e308",
    "1e309", "1e400", "5e-324", "-5e-324", "1e-310", "2.2250738585072014e-308", "-0", "-0.0", "0",
    "1", "-1", "2", "0.5", "1e-9", "1e-16", "1e16", "1e100", "-1e100", "1e150", "1e-150", "1e200",
    "+1", "++1", "0x10", "0b1", "1_0", "01", "1.", ".5", "1e", "1e+", "1,5", "1 2", "", " ", "--1",
    "10000000000", "-2147483649", "9223372036854775808", "18446744073709551616", "1" + "0" * 400,
    "1" * 5000, "0." + "0" * 400 + "1", "\u0661\u0662", "\uff11", "1\u00a0", "\u22121", "1d0", "1f",
    "true", "None", "null", "1e3000000", "0.1e1e1", "1j", "3.141592653589793", "1e-5", "1e5",
)  # fmt: skip
NAMES = (
    "", " ", "world", "base", "root_joint", "\x00", "\x01", "\x1b[31m", "a\nb", "a\tb", "\r",
    "\u202e", "\u2066x\u2069", "\ufeff", "\ud800", "\U0001f916", "é", "e\u0301", "\u00ad", "\u2028",
    "x" * 999, "x" * 1001, "x" * 100_000, "../../etc/passwd", "/", "..", ".", "%s%n", "{0}", "{}",
    "$HOME", "'", '"', "\\", "a/b", "a.b", "a:b", "a b", "*", "[", "]", "<", "&amp;", "None", "nan",
    "0", "-1", "__proto__", "__class__", "self", "signal.x", "frame.x", "robot", "about",
)  # fmt: skip


def number(rng: Random) -> str:
    """A hostile number, or what looks like one."""
    return rng.choice(NUMBERS)


def changed_number(rng: Random, word: str) -> str:
    """A number near this one, or of another size or sign, or a hostile one."""
    try:
        x = float(word)
    except ValueError:
        return number(rng)
    match rng.randrange(8):
        case 0:
            return repr(-x)
        case 1:
            return repr(x * 10.0 ** rng.randint(-20, 20))
        case 2:
            return repr(x + rng.gauss(0, 1))
        case 3:
            return str(rng.randint(-3, 40))
        case _:
            return number(rng)


def name(rng: Random) -> str:
    """A hostile name."""
    return rng.choice(NAMES)


def text(rng: Random) -> str:
    """A hostile text of any kind."""
    kind = rng.randrange(3)
    if kind == 0:
        return number(rng)
    if kind == 1:
        return name(rng) + name(rng)
    return "".join(chr(rng.choice((rng.randrange(128), rng.randrange(0xD7FF)))) for _ in range(5))


BYTES = (
    *(bytes([x]) for x in b"\0\xff\x80\n\r\"'<>&{}[],=#"), b"\xef\xbb\xbf", b"\xff\xfe", b"]]>",
    b"<!--", b"<![CDATA[", b"<?x?>", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\0" * 4, b"PK\x03\x04",
    b"PK\x01\x02",
)  # fmt: skip


def havoc(rng: Random, content: bytes, seeds: Sequence[bytes]) -> bytes:
    """The bytes with some flipped, cut out, repeated, overwritten, or spliced with another file."""
    data = bytearray(content)
    for _ in range(1 + int(rng.expovariate(0.6))):
        n = len(data)
        at, size = rng.randint(0, n), min(1 + int(rng.expovariate(0.05)), 2_000)
        match rng.randrange(8):
            case 0 if n:
                data[at % n] ^= 1 << rng.randrange(8)
            case 1 if n:
                data[at % n] = rng.randrange(256)
            case 2:
                del data[at : at + size]
            case 3:
                data[at:at] = data[at : at + size] * rng.choice((1, 2, 50))
            case 4:
                data[at:at] = rng.choice(BYTES)
            case 5:
                chunk = rng.choice(BYTES)
                data[at : at + len(chunk)] = chunk
            case 6 if rng.random() < 0.3:
                del data[at:]
            case _:
                other = rng.choice(seeds)
                start = rng.randint(0, len(other))
                data[at : at + size] = other[start : start + size]
    return bytes(data)
