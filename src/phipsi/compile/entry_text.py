"""The LLVM text of the native entry (entry.py)."""

from string import Template

# Two abbreviations: `%x = at T, %p + n` (or `%p[%k]`) loads a T at n bytes (k elements) from p;
# `if eq T %a, %b, %then, %else` compares and branches.
ENTRY = Template("""
; array (PyArrayObject), at bytes: type 8, data 16, nd 24, dims 32, descr 56, flags 64
; kernel, ours: PyMethodDef 0, inputs 32, outputs 40, descr 48, its kind 56, itemsize 64, single 72,
;     batch 80, workspace 88, limit 96, rows with the GIL held 104, bytes of the workspace 112, a
;     spec for each array from 120
%spec = type { i64, i64, [$max_core x i64] }            ; bytes of a row 0, core axes 8, lengths 16
%view = type { ptr, i64, i64 }                      ; data, bytes of a row 8, bytes of an element 16

@_Py_NoneStruct = external global i8
@PyArray_Type = external global i8
@phipsi_out = external global i8                    ; the interned name "out"
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)          ; takes over the reference
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyArray_Return(ptr)                    ; takes over the reference; 0-d becomes a scalar
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32 signext, ptr, ptr, ptr, i32 signext, ptr)

; Whether two shapes of n axes are equal.
define internal i1 @same(ptr %a, ptr %b, i64 %n) #1 {
start:
  br label %axis
axis:
  %k = phi i64 [ 0, %start ], [ %next, %compare ]
  %equal = icmp sge i64 %k, %n
  br i1 %equal, label %done, label %compare
compare:
  %one = at i64, %a[%k]
  %other = at i64, %b[%k]
  %next = add i64 %k, 1
  if eq i64 %one, %other, %axis, %done
done:
  ret i1 %equal
}

; Check that x is exactly an ndarray of the kernel's dtype, with these flags (of those in mask),
; core shape and batch, and write its view. A batch of -1 axes is any batch. Returns the number of
; batch axes, or -1 if x is not such an array.
define internal i64 @take(ptr %kernel, ptr %x, ptr %spec, ptr %view, i32 %mask, i32 %wanted,
                          i64 %axes, ptr %batch) #1 {
  %type = at ptr, %x + 8
  if eq ptr %type, @PyArray_Type, %array, %no
array:
  %descr = at ptr, %x + 56
  %kind.is = at i64, %descr + $kind                 ; (an unpickled array has a copy of the dtype)
  %kind.of = at i64, %kernel + 56
  %flags = at i32, %x + 64
  %masked = and i32 %flags, %mask
  %nd.int = at i32, %x + 24
  %nd = sext i32 %nd.int to i64
  %core = at i64, %spec + 8
  %lead = sub i64 %nd, %core
  %same.kind = icmp eq i64 %kind.is, %kind.of
  %same.flags = icmp eq i32 %masked, %wanted
  %few = icmp ule i64 %lead, $max_leading           ; and not negative
  %any = icmp slt i64 %axes, 0
  %as.many = icmp eq i64 %axes, %lead
  %same.axes = or i1 %any, %as.many
  %ok.1 = and i1 %same.kind, %same.flags
  %ok.2 = and i1 %few, %same.axes
  %ok = and i1 %ok.1, %ok.2
  br i1 %ok, label %shape, label %no
shape:
  %dims = at ptr, %x + 32
  %tail = getelementptr i64, ptr %dims, i64 %lead
  %lengths = getelementptr i8, ptr %spec, i64 16
  %same.core = call i1 @same(ptr %tail, ptr %lengths, i64 %core)
  %same.batch = call i1 @same(ptr %dims, ptr %batch, i64 %axes)
  %fits = and i1 %same.core, %same.batch
  br i1 %fits, label %yes, label %no
yes:
  %data = at ptr, %x + 16
  %row = load i64, ptr %spec
  %item = at i64, %kernel + 64
  %view.1 = insertvalue %view poison, ptr %data, 0
  %view.2 = insertvalue %view %view.1, i64 %row, 1
  %view.3 = insertvalue %view %view.2, i64 %item, 2
  store %view %view.3, ptr %view
  ret i64 %lead
no:
  ret i64 -1
}

; Create an array with the batch axes in dims and the core axes of spec, which are written behind
; them; null on failure.
define internal ptr @create(ptr %kernel, ptr %spec, ptr %view, i64 %lead, ptr %dims) #0 {
start:
  %core = at i64, %spec + 8
  %lengths = getelementptr i8, ptr %spec, i64 16
  %tail = getelementptr i64, ptr %dims, i64 %lead
  br label %axis
axis:
  %k = phi i64 [ 0, %start ], [ %next, %copy ]
  if slt i64 %k, %core, %copy, %allocate
copy:
  %length = at i64, %lengths[%k]
  %to = getelementptr i64, ptr %tail, i64 %k
  store i64 %length, ptr %to
  %next = add i64 %k, 1
  br label %axis
allocate:
  %nd = add i64 %lead, %core
  %nd.int = trunc i64 %nd to i32
  %descr = at ptr, %kernel + 48
  call void @Py_IncRef(ptr %descr)                  ; which the array takes over
  %made = call ptr @PyArray_NewFromDescr(ptr @PyArray_Type, ptr %descr, i32 signext %nd.int,
                                    ptr %dims, ptr null, ptr null, i32 signext 0, ptr null)
  if eq ptr %made, null, %done, %look
look:
  %looked = call i64 @take(ptr %kernel, ptr %made, ptr %spec, ptr %view, i32 0, i32 0, i64 %lead,
                           ptr %dims)
  br label %done
done:
  ret ptr %made
}

; Run the code; many rows without the GIL and in a workspace of their own.
define internal void @evaluate(ptr %kernel, ptr %run, ptr %views, i64 %n) #0 {
  %workspace = at ptr, %kernel + 88
  %held = at i64, %kernel + 104
  if sle i64 %n, %held, %short, %long
short:
  call void %run(ptr %views, i64 0, i64 %n, ptr %workspace)
  ret void
long:
  %size = at i64, %kernel + 112
  %enough = add i64 %size, 64
  %room = call ptr @PyMem_RawMalloc(i64 %enough)
  if eq ptr %room, null, %short, %own
own:
  %place = ptrtoint ptr %room to i64
  %beyond = add i64 %place, 63
  %aligned = and i64 %beyond, -64
  %mine = inttoptr i64 %aligned to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %mine, ptr %workspace, i64 64, i1 false)
  %state = call ptr @PyEval_SaveThread()
  call void %run(ptr %views, i64 0, i64 %n, ptr %mine)
  call void @PyEval_RestoreThread(ptr %state)
  call void @PyMem_RawFree(ptr %room)
  ret void
}

define ptr @phipsi_entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) #0 {
start:
  %views = alloca [$max_arrays x %view]
  %objects = alloca [$max_arrays x ptr]
  %dims = alloca [32 x i64]
  %described = at ptr, %self + $items
  %kernel = getelementptr i8, ptr %described, i64 $bytes
  %fallback = at ptr, %self + $fallback
  %pack = at ptr, %self + $pack
  %packs = icmp ne ptr %pack, @_Py_NoneStruct
  %inputs = at i64, %kernel + 32
  %outputs = at i64, %kernel + 40
  %specs = getelementptr i8, ptr %kernel, i64 120
  %out.specs = getelementptr %spec, ptr %specs, i64 %inputs
  %out.views = getelementptr %view, ptr %views, i64 %inputs
  if eq i64 %nargs, %inputs, %keywords, %slow

keywords:                                           ; none, or "out" alone
  if eq ptr %kwnames, null, %input, %count
count:
  %size = at i64, %kwnames + 16
  if eq i64 %size, 1, %name, %slow
name:
  %keyword = at ptr, %kwnames + $items
  %is.out = icmp eq ptr %keyword, @phipsi_out
  %value = at ptr, %args[%nargs]
  %is.none = icmp eq ptr %value, @_Py_NoneStruct
  %value.out = select i1 %is.none, ptr null, ptr %value
  br i1 %is.out, label %input, label %slow

input:                                              ; each input, with the batch of the first
  %out = phi ptr [ null, %keywords ], [ %value.out, %name ], [ %out, %next.input ]
  %i = phi i64 [ 0, %keywords ], [ 0, %name ], [ %i.next, %next.input ]
  %lead = phi i64 [ -1, %keywords ], [ -1, %name ], [ %lead.i, %next.input ]
  %batch = phi ptr [ null, %keywords ], [ null, %name ], [ %batch.i, %next.input ]
  if slt i64 %i, %inputs, %check, %axis
check:
  %x = at ptr, %args[%i]
  %spec.i = getelementptr %spec, ptr %specs, i64 %i
  %view.i = getelementptr %view, ptr %views, i64 %i
  %lead.i = call i64 @take(ptr %kernel, ptr %x, ptr %spec.i, ptr %view.i, i32 $readable,
                           i32 $readable, i64 %lead, ptr %batch)
  if sge i64 %lead.i, 0, %next.input, %slow
next.input:
  %batch.i = at ptr, %x + 32
  %i.next = add i64 %i, 1
  br label %input

axis:                                               ; rows: the product of the batch
  %k = phi i64 [ 0, %input ], [ %k.next, %length ]
  %n = phi i64 [ 1, %input ], [ %n.next, %length ]
  if slt i64 %k, %lead, %length, %code
length:
  %l = at i64, %batch[%k]
  %p.dim = getelementptr i64, ptr %dims, i64 %k
  store i64 %l, ptr %p.dim
  %k.next = add i64 %k, 1
  %n.next = mul i64 %n, %l                          ; NumPy has seen to it that this cannot overflow
  br label %axis
code:
  %is.single = icmp eq i64 %n, 1
  %single = at ptr, %kernel + 72
  %several = at ptr, %kernel + 80
  %run = select i1 %is.single, ptr %single, ptr %several
  %limit = at i64, %kernel + 96
  %last = sub i64 %n, 1
  %outside = icmp uge i64 %last, %limit             ; no rows, or too many
  %no.code = icmp eq ptr %run, null
  %cannot = or i1 %outside, %no.code
  br i1 %cannot, label %slow, label %where
where:
  if eq ptr %out, null, %fresh, %given

given:                                              ; out= is one array of the very shape,
  %out.lead = call i64 @take(ptr %kernel, ptr %out, ptr %out.specs, ptr %out.views, i32 $mask,
                             i32 $writeable, i64 %lead, ptr %dims)
  %out.bad = icmp slt i64 %out.lead, 0
  %refused = or i1 %out.bad, %packs
  br i1 %refused, label %slow, label %extent
extent:
  %out.begin = load i64, ptr %out.views
  %out.row = load i64, ptr %out.specs
  %out.bytes = mul i64 %out.row, %n
  %out.end = add i64 %out.begin, %out.bytes
  br label %other
other:                                              ; and shares no memory with any input
  %j = phi i64 [ 0, %extent ], [ %j.next, %apart ]
  if slt i64 %j, %inputs, %apart, %compute
apart:
  %view.j = getelementptr %view, ptr %views, i64 %j
  %begin = load i64, ptr %view.j
  %row.j = at i64, %view.j + 8
  %bytes.j = mul i64 %row.j, %n
  %end = add i64 %begin, %bytes.j
  %below = icmp ult i64 %begin, %out.end
  %above = icmp ult i64 %out.begin, %end
  %overlap = and i1 %below, %above
  %j.next = add i64 %j, 1
  br i1 %overlap, label %slow, label %other
compute:
  call void @evaluate(ptr %kernel, ptr %run, ptr %views, i64 %n)
  call void @Py_IncRef(ptr %out)
  ret ptr %out

fresh:
  br i1 %packs, label %list.new, label %alone
alone:                                              ; one new array
  %y = call ptr @create(ptr %kernel, ptr %out.specs, ptr %out.views, i64 %lead, ptr %dims)
  if eq ptr %y, null, %failed, %compute.one
compute.one:
  call void @evaluate(ptr %kernel, ptr %run, ptr %views, i64 %n)
  %y.returned = call ptr @PyArray_Return(ptr %y)
  ret ptr %y.returned

list.new:                                           ; or a list of them, for pack
  %list = call ptr @PyList_New(i64 %outputs)
  if eq ptr %list, null, %failed, %output
output:
  %m = phi i64 [ 0, %list.new ], [ %m.next, %append ]
  if slt i64 %m, %outputs, %add, %compute.all
add:
  %spec.m = getelementptr %spec, ptr %out.specs, i64 %m
  %view.m = getelementptr %view, ptr %out.views, i64 %m
  %y.m = call ptr @create(ptr %kernel, ptr %spec.m, ptr %view.m, i64 %lead, ptr %dims)
  if eq ptr %y.m, null, %drop, %append
append:
  %p.y = getelementptr ptr, ptr %objects, i64 %m
  store ptr %y.m, ptr %p.y
  %set = call i32 @PyList_SetItem(ptr %list, i64 %m, ptr %y.m)
  %m.next = add i64 %m, 1
  br label %output
compute.all:
  call void @evaluate(ptr %kernel, ptr %run, ptr %views, i64 %n)
  br label %result
result:
  %r = phi i64 [ 0, %compute.all ], [ %r.next, %replace ]
  if slt i64 %r, %outputs, %scalar, %call
scalar:
  %y.r = at ptr, %objects[%r]
  call void @Py_IncRef(ptr %y.r)
  %s = call ptr @PyArray_Return(ptr %y.r)
  if eq ptr %s, null, %drop, %replace
replace:
  %reset = call i32 @PyList_SetItem(ptr %list, i64 %r, ptr %s)
  %r.next = add i64 %r, 1
  br label %result
call:
  store ptr %list, ptr %objects
  %result.packed = call ptr @PyObject_Vectorcall(ptr %pack, ptr %objects, i64 1, ptr null)
  call void @Py_DecRef(ptr %list)
  ret ptr %result.packed
drop:
  call void @Py_DecRef(ptr %list)
  br label %failed
failed:                                             ; an exception is set
  ret ptr null

slow:
  %answer = tail call ptr @PyObject_Vectorcall(ptr %fallback, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %answer
}
attributes #0 = { nounwind }
attributes #1 = { nounwind alwaysinline }
""")
