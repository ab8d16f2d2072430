"""The LLVM text around a block of rows: the loop over the batch, its tail, strided arrays."""

from __future__ import annotations

from collections.abc import Sequence

from phipsi.compile.llvm_text import Machine, Text

ENTRY = "define void @run(ptr %arrays, i64 %start, i64 %stop, ptr %work)"


def driver(machine: Machine, sizes: Sequence[int], inputs: int, scratch: int) -> str:
    """`run`: blocks of as many rows as there are lanes.

    A full block of rows whose elements lie side by side is read and written where it is. The tail
    of the batch (its last row stands in for those that are missing) and strided rows go through
    scratch memory, which begins at byte `scratch` of the workspace.
    """
    m = machine
    text = Text(m)
    text.begin("entry")
    text.line(f"%frame = alloca [{2 * len(sizes)} x i64], align 16")
    dense = "true"
    for k in range(len(sizes)):
        for j, name in enumerate(("data", "rows", "elements")):
            text.line(f"%{name}{k} = load i64, ptr {text.at('%arrays', 24 * k + 8 * j)}, align 8")
        fits = text.make(f"icmp eq i64 %elements{k}, {m.size}")
        dense = text.make(f"and i1 {dense}, {fits}")
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
    for k in range(len(sizes)):
        offset = text.make(f"mul i64 %row, %rows{k}")
        text.line(f"%at{k} = add i64 %data{k}, {offset}")
    text.line("br i1 %there, label %inplace, label %packed")

    text.begin("inplace")
    for k in range(len(sizes)):
        _frame(text, k, f"%at{k}", f"%rows{k}")
    text.line("call void @block(ptr %frame, ptr %work)")
    text.line("br label %next")

    text.begin("packed")
    start, copies = scratch, []
    for k, size in enumerate(sizes):
        address = text.at("%work", start)
        number = text.make(f"ptrtoint ptr {address} to i64")
        _frame(text, k, number, str(size * m.size))
        there = text.make(f"inttoptr i64 %at{k} to ptr")
        arguments = f"ptr {there}, i64 %rows{k}, i64 %elements{k}"
        copies.append(f"(ptr {address}, {arguments}, i64 {size}, i64 %count)")
        start += size * m.width + -(size * m.width) % 64
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
    text.line("ret void")
    body = "\n".join(text.lines)
    return f"{_strided(m)}\n{ENTRY} {{\n{body}\n}}"


def _frame(text: Text, k: int, base: str, stride: str) -> None:
    text.line(f"store i64 {base}, ptr {text.at('%frame', 16 * k)}, align 8")
    text.line(f"store i64 {stride}, ptr {text.at('%frame', 16 * k + 8)}, align 8")


def _strided(m: Machine) -> str:
    """`gather` and `scatter`: rows of strided elements to and from scratch rows, `count` of them;
    gather fills the missing rows with the last."""

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
    """`rows.in` and `rows.out`: whole rows to and from the workspace, one value per element;
    `arranged`: values of the workspace side by side, in the order of a table."""
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
    text = Text(m)
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
