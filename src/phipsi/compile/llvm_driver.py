"""The LLVM text around the code of one block of rows: the loop over the batch, its remainder, and
strided arrays."""

from __future__ import annotations

from collections.abc import Sequence

from phipsi.compile.llvm_text import LlvmText, Machine

ENTRY = "define void @run(ptr %arrays, i64 %start, i64 %stop, ptr %work)"

STREAM = 16 << 20
"""Bytes of outputs from which they are stored past the caches, in whole cache lines."""
AHEAD = 4 << 20
"""Bytes of all arrays from which the next rows are prefetched while a block is computed."""


def driver(machine: Machine, sizes: Sequence[int], inputs: int, scratch: int) -> str:
    """The function `run`, which computes the batch in blocks of as many rows as there are lanes.

    A full block of rows with adjacent elements is read and written in place, but large outputs go
    through scratch memory, which begins at byte `scratch` of the workspace. Rows of other strides
    and the last, incomplete block are copied to and from scratch memory; there the last row of the
    batch fills the missing rows.
    """
    m = machine
    text = LlvmText(m)
    arrays = range(len(sizes))
    text.begin("entry")
    text.line(f"%frame = alloca [{2 * len(sizes)} x i64], align 16")
    dense = "true"
    rooms: list[str] = []
    for k, size in enumerate(sizes):
        for j, name in enumerate(("data", "rows", "elements")):
            text.line(f"%{name}{k} = load i64, ptr {text.at('%arrays', 24 * k + 8 * j)}, align 8")
        fits = text.make(f"icmp eq i64 %elements{k}, {m.size}")
        dense = text.make(f"and i1 {dense}, {fits}")
        rooms.append(text.at("%work", scratch))
        text.line(f"%room{k} = ptrtoint ptr {rooms[k]} to i64")
        scratch += _padded(size * m.size) * m.lanes
    text.line("%all = sub i64 %stop, %start")
    for name, bound, some in (("stream", STREAM, sizes[inputs:]), ("ahead", AHEAD, sizes)):
        bytes_ = text.make(f"mul i64 %all, {sum(some) * m.size}")
        text.line(f"%{name} = icmp uge i64 {bytes_}, {bound}")
    text.line("br label %head")
    text.begin("head")
    text.line("%row = phi i64 [ %start, %entry ], [ %after, %next ]")
    text.line("%left = sub i64 %stop, %row")
    text.line("%more = icmp sgt i64 %left, 0")
    text.line("br i1 %more, label %choose, label %done")
    text.begin("choose")
    text.line(f"%full = icmp sge i64 %left, {m.lanes}")
    text.line(f"%there = and i1 %full, {dense}")
    text.line(f"%count = select i1 %full, i64 {m.lanes}, i64 %left")
    for k in arrays:
        offset = text.make(f"mul i64 %row, %rows{k}")
        text.line(f"%at{k} = add i64 %data{k}, {offset}")
        text.line(f"%to{k} = inttoptr i64 %at{k} to ptr")
    text.line("br i1 %there, label %inplace, label %packed")

    text.begin("inplace")
    for k, size in enumerate(sizes):
        base, stride = f"%at{k}", f"%rows{k}"
        if k >= inputs:
            base = text.make(f"select i1 %stream, i64 %room{k}, i64 {base}")
            stride = text.make(f"select i1 %stream, i64 {_padded(size * m.size)}, i64 {stride}")
        _frame(text, k, base, stride)
    text.line("br i1 %ahead, label %fetch, label %compute")
    text.begin("fetch")
    for k in arrays:
        skip = "%stream" if k >= inputs else "false"
        what = f"ptr %to{k}, i64 %rows{k}, i64 {sizes[k] * m.size}, i1 {skip}"
        text.line(f"call void @phipsi.fetch({what})")
    text.line("br label %compute")
    text.begin("compute")
    text.line("call void @block(ptr %frame, ptr %work)")
    text.line("br i1 %stream, label %past, label %next")
    text.begin("past")
    for k in arrays[inputs:]:
        bytes_ = sizes[k] * m.size
        text.line(f"call void @phipsi.past(ptr {rooms[k]}, ptr %to{k}, i64 %rows{k}, i64 {bytes_})")
    text.line("br label %next")

    text.begin("packed")
    copies: list[str] = []
    for k, size in enumerate(sizes):
        _frame(text, k, f"%room{k}", str(size * m.size))
        arguments = f"ptr %to{k}, i64 %rows{k}, i64 %elements{k}"
        copies.append(f"(ptr {rooms[k]}, {arguments}, i64 {size}, i64 %count)")
    for copy in copies[:inputs]:
        text.line(f"call void @phipsi.gather{copy}")
    text.line("call void @block(ptr %frame, ptr %work)")
    for copy in copies[inputs:]:
        text.line(f"call void @phipsi.scatter{copy}")
    text.line("br label %next")

    text.begin("next")
    text.line("%after = add i64 %row, %count")
    text.line("br label %head")
    text.begin("done")
    text.line("fence seq_cst")
    text.line("ret void")
    body = "\n".join(text.lines)
    return f"{_strided(m)}\n{_streaming(m)}\n{ENTRY} {{\n{body}\n}}\n!0 = !{{i32 1}}"


def _streaming(m: Machine) -> str:
    """The functions `past`, which copies rows from scratch memory to an output by stores of whole
    cache lines past the caches, and `fetch`, which prefetches the rows of the next block."""
    line = f"<{64 // m.size} x {m.scalar}>"
    s, size = m.scalar, m.size
    rows = "i64 %stride, i64 %bytes"
    return f"""define internal void @phipsi.past(ptr %from, ptr %to, {rows}) noinline {{
entry:
  %up = add i64 %bytes, 63
  %padded = and i64 %up, -64
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %row.end ]
  %d = phi ptr [ %to, %entry ], [ %d.next, %row.end ]
  %f = phi ptr [ %from, %entry ], [ %f.next, %row.end ]
  br label %move
move:
  %i = phi i64 [ 0, %row ], [ %i.one, %one ], [ %i.line, %line ]
  %left = sub i64 %bytes, %i
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %which, label %row.end
which:
  %p = getelementptr i8, ptr %d, i64 %i
  %x = getelementptr i8, ptr %f, i64 %i
  %address = ptrtoint ptr %p to i64
  %off = and i64 %address, 63
  %even = icmp eq i64 %off, 0
  %enough = icmp sge i64 %left, 64
  %fits = and i1 %even, %enough
  br i1 %fits, label %line, label %one
one:
  %v = load {s}, ptr %x, align {size}
  store {s} %v, ptr %p, align {size}
  %i.one = add i64 %i, {size}
  br label %move
line:
  %vs = load {line}, ptr %x, align {size}
  store {line} %vs, ptr %p, align 64, !nontemporal !0
  %i.line = add i64 %i, 64
  br label %move
row.end:
  %r.next = add i64 %r, 1
  %d.next = getelementptr i8, ptr %d, i64 %stride
  %f.next = getelementptr i8, ptr %f, i64 %padded
  %again = icmp slt i64 %r.next, {m.lanes}
  br i1 %again, label %row, label %end
end:
  ret void
}}
define internal void @phipsi.fetch(ptr %rows, {rows}, i1 %skip) noinline {{
entry:
  %whole = mul i64 %stride, {m.lanes}
  %next = getelementptr i8, ptr %rows, i64 %whole
  %broadcast = icmp eq i64 %stride, 0
  %none = or i1 %skip, %broadcast
  br i1 %none, label %end, label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %row.end ]
  %first = mul i64 %r, %stride
  br label %line
line:
  %i = phi i64 [ 0, %row ], [ %i.next, %line ]
  %at = add i64 %first, %i
  %p = getelementptr i8, ptr %next, i64 %at
  call void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)
  %i.next = add i64 %i, 64
  %more = icmp slt i64 %i.next, %bytes
  br i1 %more, label %line, label %row.end
row.end:
  %r.next = add i64 %r, 1
  %again = icmp slt i64 %r.next, {m.lanes}
  br i1 %again, label %row, label %end
end:
  ret void
}}"""


def _padded(size: int) -> int:
    """A number of bytes rounded up to whole cache lines."""
    return size + -size % 64


def _frame(text: LlvmText, k: int, base: str, stride: str) -> None:
    """Store the address and the row stride of array k, as the code of a block reads them."""
    text.line(f"store i64 {base}, ptr {text.at('%frame', 16 * k)}, align 8")
    text.line(f"store i64 {stride}, ptr {text.at('%frame', 16 * k + 8)}, align 8")


def _strided(m: Machine) -> str:
    """The functions `gather` and `scatter`, which copy `count` rows of any strides to and from
    scratch memory; gather fills the missing rows with the last one."""

    def copy(name: str, rows: str, row: str, move: str) -> str:
        parameters = "ptr %dense, ptr %there, i64 %rows, i64 %elements, i64 %size, i64 %count"
        return f"""define internal void @phipsi.{name}({parameters}) noinline {{
entry:
  %last = sub i64 %count, 1
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %done, label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r1, %end ]
  %over = icmp sgt i64 %r, %last
  %real = select i1 %over, i64 %last, i64 %r
  %far = mul i64 {row}, %rows
  %from = getelementptr i8, ptr %there, i64 %far
  %near = mul i64 %r, %size
  %to = getelementptr {m.scalar}, ptr %dense, i64 %near
  br label %element
element:
  %e = phi i64 [ 0, %row ], [ %e1, %element ]
  %step = mul i64 %e, %elements
  %a = getelementptr i8, ptr %from, i64 %step
  %b = getelementptr {m.scalar}, ptr %to, i64 %e
  {move}
  %e1 = add i64 %e, 1
  %last.e = icmp eq i64 %e1, %size
  br i1 %last.e, label %end, label %element
end:
  %r1 = add i64 %r, 1
  %last.r = icmp eq i64 %r1, {rows}
  br i1 %last.r, label %done, label %row
done:
  ret void
}}"""

    s, align = m.scalar, f"align {m.size}"
    read = f"%x = load {s}, ptr %a, {align}\n  store {s} %x, ptr %b, {align}"
    write = f"%x = load {s}, ptr %b, {align}\n  store {s} %x, ptr %a, {align}"
    return "\n".join(
        (copy("gather", str(m.lanes), "%real", read), copy("scatter", "%count", "%r", write))
    )


def transposers(m: Machine) -> str:
    """The functions `rows.in` and `rows.out`, which transpose whole arrays between rows and values
    of the workspace (one vector for each element), and `arranged`, which copies values of the
    workspace to adjacent slots in the order of a table."""
    parameters = "ptr %to, ptr %from, ptr %table, i64 %n"
    arranged = f"""define internal void @phipsi.arranged({parameters}) noinline {{
entry:
  br label %one
one:
  %i = phi i64 [ 0, %entry ], [ %next, %one ]
  %entry.i = getelementptr i64, ptr %table, i64 %i
  %slot = load i64, ptr %entry.i, align 8
  %a = getelementptr {m.T}, ptr %from, i64 %slot
  %x = load {m.T}, ptr %a, align {m.width}
  %b = getelementptr {m.T}, ptr %to, i64 %i
  store {m.T} %x, ptr %b, align {m.width}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %one, label %done
done:
  ret void
}}"""
    return "\n".join((_transposer(m, "in"), _transposer(m, "out"), arranged))


def _transposer(m: Machine, way: str) -> str:
    """The function `rows.in` or `rows.out`."""
    text = LlvmText(m)
    text.begin("entry")
    text.line(f"%chunks = sdiv i64 %size, {m.lanes}")
    text.line(f"%whole = mul i64 %chunks, {m.lanes}")
    for label, step, end in (("chunk", m.lanes, "%whole"), ("one", 1, "%size")):
        before = "entry" if label == "chunk" else "rest"
        first = "0" if label == "chunk" else "%whole"
        text.line(f"%{label}.any = icmp slt i64 {first}, {end}")
        after = "rest" if label == "chunk" else "done"
        text.line(f"br i1 %{label}.any, label %{label}, label %{after}")
        text.begin(label)
        text.line(f"%{label}.i = phi i64 [ {first}, %{before} ], [ %{label}.n, %{label} ]")
        near = text.make(f"getelementptr {m.T}, ptr %work, i64 %{label}.i")
        far = text.make(f"getelementptr {m.scalar}, ptr %base, i64 %{label}.i")
        if way == "in":
            for j, value in enumerate(text.load_rows(far, "%stride", 0, step)):
                text.store(value, near, j * m.width)
        else:
            values = [text.load(near, j * m.width) for j in range(step)]
            text.store_rows(values, far, "%stride", 0)
        text.line(f"%{label}.n = add i64 %{label}.i, {step}")
        text.line(f"%{label}.more = icmp slt i64 %{label}.n, {end}")
        text.line(f"br i1 %{label}.more, label %{label}, label %{after}")
        text.begin(after)
    text.line("ret void")
    body = "\n".join(text.lines)
    parameters = "ptr %work, ptr %base, i64 %stride, i64 %size"
    return f"define internal void @phipsi.rows.{way}({parameters}) noinline {{\n{body}\n}}"
