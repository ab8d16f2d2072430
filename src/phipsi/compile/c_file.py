"""A graph as a file of C99 for one evaluation. It needs <math.h> alone and allocates nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap

from phipsi.compile.c_text import WIDTH, Text, sum_of
from phipsi.compile.graph import Graph
from phipsi.compile.loop_layout import filled, layouts
from phipsi.compile.schedule import Item, Room, fused_products, itemized, stores, with_stores
from phipsi.compile.to_c import Scope

STACK = 64 << 10
"""Most bytes of loop memory that are put on the stack; more than that the caller must provide."""

SPREAD = 8
"""The least number of adjacent elements of loop memory that are copied to an output by a loop."""

RESERVED = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof bool true false nullptr constexpr alignas alignof static_assert main
thread_local linux unix sin cos sqrt atan2 exp log tanh fabs floor fma sinf cosf sqrtf atan2f expf
logf tanhf fabsf floorf fmaf w work and and_eq bitand bitor catch class compl concept const_cast
decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq
operator or or_eq private protected public reinterpret_cast requires static_cast template this throw
try typeid typename using virtual wchar_t xor xor_eq co_await co_return co_yield consteval constinit
char8_t char16_t char32_t typeof_unqual
""".split()
"""Words that no name may be: keywords of C and C++, names used in the file, macros of compilers."""

_REAL = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2
expm1 fabs fdim finite floor fma fmax fmin fmod frexp gamma hypot ilogb isinf isnan j0 j1 jn ldexp
lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward
pow pow10 remainder remquo rint round roundeven scalb scalbln scalbn significand signbit sin sincos
sinh sqrt tan tanh tgamma trunc y0 y1 yn cabs cacos cacosh carg casin casinh catan catanh ccos ccosh
cexp cimag clog clog10 conj cpow cproj creal csin csinh csqrt ctan ctanh lgamma_r gamma_r
""".split()
FUNCTIONS = {f"{name}{kind}" for name in _REAL for kind in ("", "f", "l")} | set(
    """
abort abs alloca atexit bcmp bcopy bzero calloc dcgettext dgettext double_t execl execle
execlp execv execve execvp exit ffs ffsl ffsll float_t fork fpclassify fprintf fputc fputs free
fscanf fwrite gettext imaxabs index isalnum isalpha isascii isblank iscntrl isdigit isfinite
isgraph isgreater isgreaterequal isless islessequal islessgreater islower isnormal isprint ispunct
isspace isunordered isupper iswalnum iswalpha iswblank iswcntrl iswdigit iswgraph iswlower iswprint
iswpunct iswspace iswupper iswxdigit isxdigit labs lgammaf_r lgammal_r llabs malloc
math_errhandling memchr memcmp
memcpy memmove mempcpy memset posix_memalign printf putc putchar puts realloc rindex scanf setjmp
signgam snprintf sprintf sscanf stpcpy stpncpy strcasecmp strcat strchr strcmp strcpy strcspn strdup
strfmon strftime strlen strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strrchr strspn
strstr toascii tolower toupper towlower towupper vfprintf vfscanf vprintf vscanf vsnprintf vsprintf
vsscanf
""".split()
)
"""Further names that the function may not have: those of <math.h>, and builtins of compilers."""

_LEAST = """static inline {T} phipsi_{name}({T} a, {T} b) {{ /* NaN if either is */
  return a {sign} b || a != a ? a : b;
}}"""

_FUSED = """#ifdef FP_FAST_FMA{F}
#define PHIPSI_FMA(a, b, c) fma{f}(a, b, c)
#else
#define PHIPSI_FMA(a, b, c) ((a) * (b) + (c)) /* this machine has no quick fma */
#endif"""

_RESTRICT = """#ifdef __cplusplus
#define restrict __restrict
#endif"""


def is_taken(word: str) -> bool:
    """Whether a word has another meaning in a file: keyword, macro, or a name that the file
    defines."""
    own = re.fullmatch(r"[xijt]\d+|[A-Z0-9_]{2,}|phipsi_.*", word)
    return own is not None or word in RESERVED


def function_name(name: str) -> str:
    """A name as the name of a C function.

    >>> [function_name(name) for name in ("mass_matrix", "hypot", "<lambda>")]
    ['mass_matrix', 'hypot_', 'lambda']
    """
    (word,) = identifiers([name])
    return f"{word}_" if word in FUNCTIONS else word


def identifiers(names: Sequence[str]) -> list[str]:
    """Names as identifiers of C, all different.

    >>> identifiers(["q", "inertia:payload", "int", "x1", "inertia payload"])
    ['q', 'inertia_payload', 'int_', 'x1_', 'inertia_payload_2']
    """
    found: list[str] = []
    for name in names:
        word = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_") or "a"
        word = f"a_{word}" if word[0].isdigit() else word
        if is_taken(word):
            word += "_"
        same = 2
        unique = word
        while unique in found:
            unique, same = f"{word}_{same}", same + 1
        found.append(unique)
    return found


def as_comment(lines: Sequence[str]) -> str:
    """Lines as one C comment, which no text in them can end."""
    out: list[str] = []
    for line in lines:
        plain = "".join(c if c.isprintable() else "?" for c in line)
        plain = plain.replace("*/", "* /").replace("/*", "/ *").replace("??/", "? ?/")
        out.extend(wrap(plain, WIDTH - 3, subsequent_indent="    ") or [""])
    return "/* " + "\n * ".join(out).replace("\n * \n", "\n *\n") + "\n */"


class CText(Text):
    """C99 under construction; products are fused into sums if the machine has a fast fma."""

    def fused(self, a: str, b: str, c: str) -> str:
        """The expression a·b + c, with one rounding if the machine has a fast fma."""
        self.used.add("fma")
        return f"PHIPSI_FMA({a}, {b}, {c})"


class Function(Scope):
    """The statements of a whole graph; inputs and outputs are arrays with names."""

    def __init__(self, graph: Graph, text: Text, names: Sequence[str]) -> None:
        super().__init__(graph, text, Room())
        self.names = names
        self.layouts = layouts(graph)

    def ordered(self) -> list[Item]:
        """The items in trace order, each output element stored as soon as it is computed."""
        items = list(itemized(self.graph, fused_products(self.graph)))
        done = filled(self.layouts)
        ends = [end for end in stores(self.graph, 1, SPREAD) if end.place[0] not in done]
        for k, elements in done.items():
            for i, node in enumerate(self.graph.outputs[k][1]):
                if i not in elements:
                    ends.append(Item("store", (), (node,), (k, i)))
        return with_stores(self.graph, items, ends)

    def entered(self, node: int) -> str:
        """The expression of an element of an input."""
        k, element = self.graph.nodes[node].value
        return self.element(k, str(element))

    def element(self, k: int, at: str) -> str:
        """The expression of element `at` of input k."""
        return f"{self.names[k]}[{at}]"

    def result(self, k: int, at: str) -> str:
        """The expression of element `at` of output k."""
        return self.element(len(self.graph.inputs) + k, at)

    def store(self, item: Item) -> None:
        """Store elements of an output."""
        k, first = item.place
        for i, x in enumerate(item.operands):
            self.text.line(f"{self.result(k, str(first + i))} = {self.value(x)};")

    def spread(self, item: Item) -> None:
        """Store an output whose elements are array elements and constants; runs of adjacent array
        elements are copied by a loop."""
        k, text = item.place[0], self.text
        nodes = [self.graph.nodes[n] for n in self.graph.outputs[k][1]]
        first = 0
        while first < len(nodes):
            op, args, value = nodes[first]
            end = first + 1
            while end < len(nodes) and nodes[end] == (op, args, value + end - first):
                end += 1
            if op == "const" or end - first < SPREAD:
                for at in range(first, end):
                    node = self.graph.outputs[k][1][at]
                    text.line(f"{self.result(k, str(at))} = {self.value(node)};")
            else:
                with text.rounds(end - first) as i:
                    source = self._element_of(args[0], value, i)
                    text.line(f"{self.result(k, sum_of(first, i))} = {source};")
            first = end


def c_file(
    graph: Graph, dtype: str, name: str, about: Sequence[str], results: Sequence[str]
) -> str:
    """The text of the file, which defines `void NAME(const T *input, ..., T *result, ...)`. `about`
    is its first comment, `results` are the names of the outputs."""
    names = identifiers([*(n for n, _ in graph.inputs), *results])
    text = CText(dtype)
    function = Function(graph, text, names)
    function.emit()
    size, T = function.room.size, text.T
    given = size * (8 if dtype == "float64" else 4) > STACK
    inputs, outputs = names[: len(graph.inputs)], names[len(graph.inputs) :]
    arguments = [f"const {T} *restrict {n}" for n in inputs]
    arguments += [f"{T} *restrict {n}" for n in outputs]
    about = list(about)
    if given:
        arguments.append(f"{T} *restrict w")
        about += ["", f"w: room for {size} numbers to work in, one for each thread."]
    parts = [as_comment(about), "#include <math.h>", _RESTRICT]
    if "fma" in text.used:
        parts.append(_FUSED.format(f=text.f, F=text.f.upper()))
    for op, sign in (("min", "<"), ("max", ">")):
        if op in text.used:
            parts.append(_LEAST.format(T=T, name=op, sign=sign))
    if text.tables:
        parts.append("\n".join(text.tables))
    head = f"void {name}({', '.join(arguments)})"
    if len(head) > WIDTH - 2:
        head = f"void {name}(\n    " + ",\n    ".join(arguments) + ")"
    body = [] if given or not size else [f"  {T} w[{size}] = {{0}};"]
    empty = [n for n, (_, nodes) in zip(outputs, graph.outputs, strict=True) if not nodes]
    unused = [n for k, n in enumerate(inputs) if not _used(graph, k)] + empty
    body += [f"  (void){n};" for n in unused]
    parts.append("\n".join([f"{head};\n\n{head} {{", *body, *text.lines, "}"]))
    return "\n\n".join(parts) + "\n"


def _used(graph: Graph, k: int) -> bool:
    return any(
        (n.op == "input" and n.value[0] == k) or (n.op == "array" and n.value == k)
        for n in graph.nodes
    )
