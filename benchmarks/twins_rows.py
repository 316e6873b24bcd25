"""The grammar of `twins_programs`: what can be done with arrays and in kernels, a row of text each.

{x} is an array, {y} one that broadcasts with it, {n} a number, {other} either, {r} the result's name; the other words
are methods `fill_WORD` there.
"""

# ruff: noqa: E501

from __future__ import annotations

POOLS: dict[str, tuple[str, ...]] = {
    "b": ("1", "0"),
    "i": ("1", "0", "2", "-1", "3", "7", "-5", "max", "min"),
    "u": ("1", "0", "2", "3", "7", "200", "max"),
    "f": ("1", "0", "2", "-1", "0.5", "-2.75", "3", "-0.0", "nan", "inf", "-inf", "100.7", "tiny", "max", "smallest_subnormal"),
    "c": ("1", "0", "2-1j", "-1.5+0.5j", "3j", "-0.0", "nan"),
}  # fmt: skip
"""Values by the kind of a dtype; words stand for its figures."""
WORDS: dict[str, tuple[str, ...]] = {
    "n": ("2", "1", "0", "-1", "0.5", "-2.25", "True", "3", "np.float32(1.5)", "np.float64(0.1)", "np.int64(3)", "np.uint8(200)", "300", "2**40", "nan", "inf", "1j", "np.float16(2)"),
    "other": ("{y}", "{y}", "{y}", "{n}", "{n}"),
    "small": ("1", "0", "2", "-1", "3"),
    "reduce": ("", "", ", keepdims=True"),
    "key": ("...", "1:", "::2", "::-1", "None", "..., 0", "..., 1:", "0", "-1", ":0", "5"),
}  # fmt: skip
"""What stands for a word: any of these."""

CLOSE: dict[str, float] = {"bits": 0, "zeros": 0, "ulps": 8, "sum": 4, "root": 4}
"""Units in the last place by which results may differ. zeros: -0.0 is 0.0. sum, root: of what is added up, see `Apart`."""

_UNARY = """negative positive absolute abs conjugate conj fabs sign square sqrt reciprocal floor ceil trunc rint modf
    frexp signbit logical_not bitwise_not invert isfinite isinf isnan"""
_CURVES = """cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh
    deg2rad rad2deg radians degrees"""
_OPERATORS = "+ - * / // % & | ^ == != < <= > >="
_BINARY = """add subtract multiply divide true_divide floor_divide remainder mod fmod divmod copysign nextafter heaviside
    greater greater_equal less less_equal equal not_equal logical_and logical_or logical_xor bitwise_and bitwise_or
    bitwise_xor left_shift right_shift gcd lcm"""
_ADDING = "sum mean nansum nanmean"
_SPREADS = "var std nanvar nanstd"
_PRODUCTS = "prod nanprod cumprod"
_CHOOSING = "max min amax amin nanmax nanmin ptp"
_COUNTING = "any all count_nonzero argmax argmin"
_TYPED = (
    "cp.{op}({x}, axis={axis})",
    "cp.{op}({x})",
    "cp.{op}({x}, {axis}, dtype={dtype})",
    "cp.{op}({x}, axis={axis}, dtype={dtype})",
)
_ALONG = ("cp.{op}({x}, axis={axes}{reduce})", "cp.{op}({x})", "cp.{op}({x}, axis={axis})")
_SPREAD = (*_ALONG, "cp.{op}({x}, axis={axis}, ddof=1)", "cp.{op}({x}, axis={axes}, dtype={dtype}{reduce})")
_TWO = (
    "cp.{op}({x}, {other})",
    "cp.{op}({x}, {y})",
    "cp.{op}({n}, {x})",
    "cp.{op}({x}, {y}, dtype={dtype})",
    "cp.{op}({x}, {y}, out=cp.zeros_like({x}))",
)
_ONE = (*("cp.{op}({x})",) * 4, "cp.{op}({x}, dtype={dtype})", "cp.{op}({x}, out=cp.zeros_like({x}))")

Row = tuple[str, tuple[str, ...]]
ROWS: dict[str, Row] = {
    **dict.fromkeys(_UNARY.split(), ("bits", _ONE)),
    **dict.fromkeys(_CURVES.split(), ("ulps", _ONE)),
    **dict.fromkeys(_BINARY.split(), ("bits", _TWO)),
    **dict.fromkeys(["power", "float_power", "arctan2", "hypot", "logaddexp", "logaddexp2"], ("ulps", _TWO)),
    **dict.fromkeys(["maximum", "minimum", "fmax", "fmin"], ("zeros", _TWO)),
    "ldexp": ("bits", ("cp.{op}({x}, cp.asarray(np.array([1, 0, -2], 'int32'))[{small}:][:1])", "cp.{op}({x}, {small})")),
    **dict.fromkeys(_ADDING.split(), ("sum", (*_ALONG, *_TYPED))),
    "cumsum": ("sum", _TYPED),
    "median": ("ulps", _ALONG),
    **dict.fromkeys(_SPREADS.split(), ("root", _SPREAD)),
    **dict.fromkeys(_PRODUCTS.split(), ("ulps", _TYPED)),
    **dict.fromkeys(_CHOOSING.split(), ("zeros", _ALONG)),
    **dict.fromkeys(_COUNTING.split(), ("bits", _ALONG)),
    "a reduction's method": ("sum", tuple(f"{{x}}.{name}({{axis}})" for name in ["sum", "mean", "cumsum"])),
    "a choosing method": ("zeros", tuple(f"{{x}}.{name}({{axis}})" for name in ["max", "min", "ptp", "any", "all", "argmax", "argmin"])),
    "a spreading method": ("root", tuple(f"{{x}}.{name}({{axis}})" for name in ["var", "std"])),
    "a product's method": ("ulps", tuple(f"{{x}}.{name}({{axis}})" for name in ["prod", "cumprod"])),
    "a reduction's out": ("zeros", ("{r} = cp.zeros({x}.shape[1:], {dtype}); cp.max({x}, axis=0, out={r})",)),
    **{f"x {op} y": ("bits", (f"{{x}} {op} {{other}}", f"{{n}} {op} {{x}}")) for op in _OPERATORS.split()},
    **{f"x {op}= y": ("bits", (f"{{r}} = {{x}}.copy(); {{r}} {op}= {{other}}",)) for op in _OPERATORS.split()[:9]},
    **{f"x {op} y": ("bits", (f"{{x}} {op} {{small}}", f"{{x}} {op} {{y}}", f"{{small}} {op} {{x}}")) for op in ("<<", ">>")},
    "one operand": ("bits", ("-{x}", "abs({x})", "~{x}", "+{x}")),
    "x ** y": ("ulps", ("{x} ** {small}", "{x} ** {n}", "{n} ** {x}", "{x} ** {y}")),
    "divmod()": ("bits", ("divmod({x}, {other})",)),
    "astype": ("bits", ("{x}.astype({dtype})", "{x}.astype({dtype}, order='F')", "{x}.astype({dtype}, copy=False)", "{x}.astype({dtype}, casting='same_kind')")),
    "view": ("bits", ("{x}.view({dtype})", "{x}.view()")),
    "real": ("bits", ("{x}.real", "{x}.real + 1")),
    "conj()": ("bits", ("{x}.conj()", "{x}.conjugate()")),
    "where": ("bits", ("cp.where({x} > 0, {x}, {other})", "cp.where({x}, {n}, {n})", "cp.where({x} == {x}, {n}, {y})", "cp.where({x})")),
    "clip": ("zeros", ("cp.clip({x}, {small}, 3)", "{x}.clip({n}, None)", "cp.clip({x}, None, {n})", "cp.clip({x}, {y}, {y})")),
    "round": ("ulps", ("cp.round({x})", "cp.around({x}, {small})", "{x}.round(1)")),
    "indexing": ("bits", ("{x}[{key}]", "{x}[{key}, {key}]")),
    "assignment": ("bits", ("{r} = {x}.copy(); {r}[{key}] = {n}", "{r} = {x}.copy(); {r}[{key}] += {n}", "{r} = {x}.copy(); {r}[...] = {y}", "{r} = cp.zeros({x}.shape, {dtype}); {r}[:] = {x}")),
    "overlap": ("bits", ("{r} = {x}.copy(); {r}[1:] = {r}[:-1]", "{r} = {x}.copy(); {r}[:-1] = {r}[1:]", "{r} = {x}.copy(); {r}[...] = {r}[::-1]", "{r} = {x}.copy(); {r}[1:] += {r}[:-1]", "{r} = {x}.copy(); cp.add({r}[1:], {r}[:-1], out={r}[1:])", "{r} = {x}.copy(); {r}[..., 1:] = {r}[..., :-1]")),
    "index arrays": ("bits", ("{x}[{index}]", "{x}[{index}, ..., None]", "{r} = {full}.copy(); {r}[cp.asarray([0])] = {n}", "{x}[[0, -1]]", "{x}[:, {index}]")),
    "masks": ("bits", ("{x}[{mask}]", "{r} = {x}.copy(); {r}[{r} > 0] = {n}", "{x}[{x} > 0].shape")),
    "take": ("bits", ("cp.take({x}, {index})", "{x}.take({index}, axis=0)", "cp.take({x}, {index}, 0)", "cp.take({x}, {index}, axis={axis}, out=cp.zeros(2))")),
    "take_along_axis": ("bits", ("cp.take_along_axis({x}, cp.argsort({x}, axis={axis}), {axis})",)),
    "put_along_axis": ("bits", ("{r} = {full}.copy(); cp.put_along_axis({r}, cp.zeros({r}.shape, 'int64')[:1], 3, 0)",)),
    "add.at": ("sum", ("{r} = {full}.copy(); cp.add.at({r}, {index}, {n})",)),
    "other .at": ("zeros", tuple(f"{{r}} = {{full}}.copy(); cp.{name}.at({{r}}, {{index}}, {{small}})" for name in ["subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"])),
    "nonzero": ("bits", ("cp.nonzero({x})", "{x}.nonzero()")),
    "sort": ("zeros", ("cp.sort({x}, axis={axis})", "cp.sort({x}, axis=None)", "{r} = {x}.copy(); {r}.sort()", "cp.sort({x}, kind='stable')", "cp.sort({x}, kind='quicksort')", "{r} = {x}.copy(); {r}.sort(axis=0)")),
    "argsort": ("bits", ("cp.argsort({x}, axis={axis})", "{x}.argsort()", "cp.argsort({x}, axis=None)")),
    "searchsorted": ("bits", ("cp.searchsorted(cp.sort({v}), {y})", "cp.searchsorted(cp.sort({v}), {y}, side='right')")),
    "matmul": ("sum", ("{m} @ {right}", "cp.matmul({m}, {right})", "{x} @ {right}", "cp.matmul({m}, {right}, out=cp.zeros((2, 2)))")),
    "dot": ("sum", ("cp.dot({m}, {right})", "{x}.dot({right})", "cp.dot({x}, {n})", "cp.inner({v}, {v})", "cp.vdot({v}, {v})")),
    "outer": ("bits", ("cp.outer({x}, {y})",)),
    "tensordot": ("sum", ("cp.tensordot({m}, {right}, axes=([-1], [0]))", "cp.tensordot({x}, {y}, {small})", "cp.tensordot({m}, {m}, axes=0)")),
    "einsum": ("sum", ("cp.einsum('ij,jk->ki', {m}, {right})", "cp.einsum('ij->ji', {m})", "cp.einsum('ij->j', {m})", "cp.einsum('ij,j->i', {m}, {right})", "cp.einsum('i,i', {v}, {v})", "cp.einsum('ii->i', {m})")),
    "norm": ("root", ("cp.linalg.norm({x})", "cp.linalg.norm({x}, axis={axis})", "cp.linalg.norm({v}, ord=1)", "cp.linalg.norm({m}, axis=0, keepdims=True)", "cp.linalg.norm({v}, ord=inf)")),
    "trace": ("sum", ("{m}.trace()", "cp.linalg.norm({m}, 'fro')")),
    "fft": ("sum", ("cp.fft.rfft2({m})", "cp.fft.fft2({m})", "cp.fft.irfft2({m})", "cp.fft.ifft2({m})", "cp.fft.rfft2({m}, (4, 3))", "cp.fft.irfft2(cp.fft.rfft2({m}), {m}.shape)")),
    **{name: ("bits", (f"cp.{name}({{dims}})", f"cp.{name}({{dims}}, {{dtype}})", f"cp.{name}_like({{x}})", f"cp.{name}_like({{x}}, dtype={{dtype}})")) for name in ("zeros", "ones")},
    "full": ("bits", ("cp.full({dims}, {n})", "cp.full(3, {n}, {dtype})", "cp.full_like({x}, {n})", "{r} = {x}.copy(); {r}.fill({n})")),
    "empty": ("bits", ("cp.empty({dims}, {dtype}).shape", "cp.empty_like({x}).dtype.name")),
    "arange": ("bits", ("cp.arange(5)", "cp.arange({small})", "cp.arange(2.5)", "cp.arange(np.float32(1.5))", "cp.arange(2, 9, {small})", "cp.arange(7, dtype={dtype})", "cp.arange(5, 0, -2)", "cp.arange(0.5, 3, 0.3)")),
    "linspace": ("ulps", ("cp.linspace(0, 1, 11)", "cp.linspace(3, {n}, 5, endpoint=False)", "cp.linspace(0, 9, 4, dtype={dtype})")),
    "eye": ("bits", ("cp.eye(3, 4, k={small})", "cp.identity(3, dtype={dtype})", "cp.eye(2, dtype={dtype})")),
    "tril": ("bits", ("cp.tril({m}, {small})", "cp.triu({m})", "cp.triu({x}, {small})", "cp.tril({x})")),
    "array": ("bits", ("cp.array({x})", "cp.array([[1, 2], [3, {n}]])", "cp.array({x}, dtype={dtype})", "cp.asarray({n})", "cp.ascontiguousarray({x})", "cp.array({x}, ndmin=3)", "cp.array([{x}, {x}])")),
    "copy": ("bits", ("cp.copy({x})", "{x}.copy(order='F')", "{r} = cp.zeros({x}.shape, {dtype}); cp.copyto({r}, {x})", "{r} = {x}.copy(); cp.copyto({r}, {y})")),
    "reshape": ("bits", ("{x}.reshape({shape})", "cp.reshape({x}, {shape}, order='F')", "{x}.ravel()", "cp.ravel({x}, 'F')", "{x}.flatten()", "{r} = {x}.copy(); {r}.shape = {shape}")),
    "transpose": ("bits", ("{x}.transpose({order})", "cp.transpose({x})", "{x}.swapaxes(0, {axis})", "cp.swapaxes({x}, 0, {axis})", "cp.moveaxis({x}, 0, {axis})", "cp.rollaxis({x}, {axis})")),
    "axes": ("bits", ("cp.expand_dims({x}, {axis})", "cp.squeeze({x})", "{x}.squeeze({axis})", "cp.squeeze({x}, {axis})", "cp.atleast_1d({x})", "cp.atleast_2d({x})", "cp.atleast_3d({x})")),
    "broadcast": ("bits", ("cp.broadcast_to({x}, {wide})", "cp.broadcast_arrays({x}, {y})", "cp.broadcast_shapes({x}.shape, (3, 1))")),
    "turned": ("bits", ("cp.flip({x}, {axis})", "cp.flip({x})", "cp.fliplr({x})", "cp.flipud({x})", "cp.rot90({m})", "cp.diagonal({m})", "{m}.diagonal({small})")),
    "split": ("bits", ("cp.split({x}, 2)", "cp.array_split({x}, 2)", "cp.hsplit({m}, [1])", "cp.vsplit({m}, [1])", "cp.split({x}, [1], {axis})")),
    "concatenate": ("bits", ("cp.concatenate([{x}, {y}], axis={axis})", "cp.concatenate([{x}, {y}], axis=None)", "cp.stack([{x}, {x}], axis={axis})", "cp.vstack([{x}, {y}])", "cp.hstack([{x}, {y}])")),
    "pad": ("bits", ("cp.pad({x}, {small})", "cp.pad({m}, ((1, 0), (0, 2)), constant_values={n})", "cp.pad({x}, 1, 'constant')")),
    "repeat": ("bits", ("cp.repeat({x}, {small})", "{x}.repeat(2, {axis})", "cp.tile({x}, (2, 1))", "cp.tile({x}, {small})")),
    "roll": ("bits", ("cp.roll({x}, {small})", "cp.roll({x}, 2, axis={axis})", "cp.roll({x}, -1)")),
    "windows": ("bits", ("cp.lib.stride_tricks.sliding_window_view({v}, 2)", "cp.lib.stride_tricks.sliding_window_view({m}, 1, {axis})", "cp.lib.stride_tricks.as_strided({v}, (2, 3), (0, 0))")),
    "random": ("bits", tuple(f"cp.random.{call}" for call in ("rand(2, 3) < 2", "randn(3) == 9", "normal(0, 1, (2, 2)) == 9", "uniform(-1, 1, 4) < 9", "randint(2, 3, 5)", "permutation(1)", "random((2, 2)) < 2", "standard_normal(3).dtype.name", "default_rng(0).integers(1, 2, 3)", "default_rng(0).random(3, dtype='float32') < 2"))),
    "to the host": ("bits", ("{x}.get()", "float({x})", "int({x})", "bool({x})", "{x}.item()", "{x}.tolist()", "len({x})", "cp.asnumpy({x})", "[float(v) for v in {v}]", "complex({x})", "{x}.tobytes()")),
    "refused": ("bits", ("np.asarray({x})", "{x} + np.ones(3)", "cp.exp(np.ones(2))", "{x}[1.5]", "{x} + 'a'", "{x}[99]", "{x} @ 2", "cp.zeros(-1)", "range(9)[{x}]", "cp.concatenate([])", "{x}.nothing", "cp.max({x}, axis=7)", "cp.array(['a'])", "hash({x})")),
    "facts": ("bits", ("{x}.shape", "{x}.dtype.name", "{x}.size + {x}.ndim + {x}.nbytes + {x}.itemsize", "cp.size({x})", "cp.result_type({x}, {y}).name", "cp.promote_types({dtype}, {dtype}).name", "cp.can_cast({dtype}, {dtype})", "cp.get_array_module({x}) is cp", "cp.ndim({x})", "cp.shape({x})", "cp.isscalar({n})", "cp.iinfo('int8').max", "cp.issubdtype({x}.dtype, cp.floating)", "cp.finfo('float32').eps", "cp.issubdtype({x}.dtype, cp.integer)", "cp.pi + cp.e")),
    "capture": ("bits", ("s = cp.cuda.Stream(non_blocking=True)\ncp.cuda.runtime.deviceSynchronize()\nwith s:\n    {r} = {call}\n    s.begin_capture(cp.cuda.runtime.streamCaptureModeRelaxed)\n    try:\n        {r} = {again}\n    finally:\n        g = s.end_capture()\n    g.launch()\ns.synchronize()",)),
    "streams": ("bits", ("s, t = (cp.cuda.Stream(non_blocking=True) for _ in range(2))\ncp.cuda.runtime.deviceSynchronize()\nwith s:\n    {r} = {call}\n    e = s.record()\nwith t:\n    t.wait_event(e)\n    {r} = {r} + 0\nt.synchronize()",)),
}  # fmt: skip

KERNEL: dict[str, tuple[str, ...]] = {
    "whole": ("({whole} + {whole})", "({whole} - {whole})", "({whole} * {whole})", "({whole} // {whole})", "({whole} % {whole})", "({whole} & {whole})", "({whole} | {whole})", "({whole} ^ {whole})", "({whole} << {shift})", "({whole} >> {shift})", "~{whole}", "-{whole}", "min({whole}, {whole})", "max({whole}, {whole}, 2)", "({whole} if {test} else {whole})", "cp.{type}({whole})", "cp.absolute({whole})", "cp.sign({whole})", "cp.invert({whole})", "cp.left_shift({whole}, {shift})", "cp.right_shift({whole}, {shift})", "{whole} ** 2", "len(x)"),
    "real": ("({real} + {real})", "({real} - {real})", "({real} * {real})", "-{real}", "min({real}, {real})", "max({real}, 0.5)", "({real} if {test} else {real})", "cp.{type}({real})", "cp.maximum({real}, {real})", "cp.floor({real})", "cp.absolute({real})", "float({whole})", "cp.float32({whole})"),
    "test": ("{whole} > {whole}", "{real} <= {real}", "i % 2 == 0", "{whole} != 3", "({whole} > 1 and {real} > 0)", "not {whole} < 5", "(i < 9 or {real} == 1)", "cp.isnan({real})"),
    "last": ("{number}", "{number}", "{real} / {real}", "{whole} / 3", "cp.{function}({real})", "cp.sqrt({whole})", "{real} // {real}", "{real} % {real}", "{real} ** 2", "cp.{pair}({real}, {real})", "cp.{pair}({real}, {real})", "cp.{bits}({whole}, {whole})", "{test}"),
    "function": ("sqrt", "exp", "log", "sin", "cos", "tanh", "exp2", "expm1", "log2", "log10", "log1p", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "cbrt", "rint", "ceil", "trunc", "fabs", "square", "isfinite", "isinf", "signbit", "deg2rad", "rad2deg", "negative", "logical_not", "abs"),
    "pair": ("add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "remainder", "mod", "power", "maximum", "minimum", "fmax", "fmin", "greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "logical_and", "logical_or", "arctan2", "hypot", "copysign", "nextafter"),
    "bits": ("bitwise_and", "bitwise_or", "bitwise_xor"),
    "statements": (
        "{new} = {whole}", "{float} = {real}", "{old} = {whole}", "{new} = 0\n{old} += {whole}", "{old} -= {whole}", "{old} *= 2", "{float} = cp.float32({real})\n{it} += {real}", "{float} = cp.{type}({number})",
        "{new} = 1\nif {test}:\n    {it} = {whole}\nelif {test}:\n    {old} += 2\nelse:\n    pass",
        "{new} = 0\nfor k in range({shift}):\n    if k == {whole}:\n        continue\n    {it} += k",
        "{new} = 0\nfor k in range({whole} % 5, -3, -1):\n    {it} += k", "{float} = cp.float32(0)\nfor k in range(i % 7):\n    {it} += x[k]",
        "{new} = cp.int32(i)\nwhile {it} > 3:\n    {it} -= 7\n    if {it} == {whole}:\n        break",
        "p = ({whole}, {real})\n{new} = p[0]", "{new}, {float} = {whole}, {number}", "for k in jit.range(3, unroll=True):\n    y[i] = k",
        "s = jit.shared_memory(cp.{kind}, 64)\ns[i] = cp.{kind}({number})\njit.syncthreads()\n{float} = s[(i + {shift}) % 64]\njit.syncthreads()",
        "jit.atomic_add(z, i % 4, {whole})", "jit.atomic_sub(z, 1, 2)", "jit.atomic_max(z, 4, {whole})", "jit.atomic_min(z, 5, {whole})", "jit.atomic_xor(z, 6, {whole})", "jit.atomic_and(z, 7, {whole})", "jit.atomic_or(z, 8, {whole})", "jit.atomic_cas(z, 9, 0, 5)", "jit.atomic_exch(z, 10, 3)",
        "{float} = jit.shfl_xor_sync(0xffffffff, cp.float32({number}), {shift})", "{float} = jit.shfl_down_sync(0xffffffff, {number}, 1, width=8)", "{float} = jit.shfl_up_sync(0xffffffff, cp.{type}({real}), 1)", "{new} = jit.shfl_sync(0xffffffff, {whole}, {shift})",
        "{float} = twice({number}, i)", "jit.syncwarp()", "{new} = jit.laneid() + jit.warpsize + jit.gridsize(1)", "a, = x.shape\n{new} = a + x.ndim + x.size", "y[i] = cp.{kind}({number})", "y[i] += cp.{kind}({whole})",
    ),
    "ends": (*("y[i] = cp.{kind}({last})",) * 4, "y[i] = {last}", "y[i] = cp.{kind}({number})", "if {test}:\n    return\ny[i] = cp.{kind}({last})", "y[i] = cp.{kind}({old})", "y[i] = cp.{kind}({real} * 1e6)", "if {test}:\n    y[i] = cp.{kind}({whole})\nelse:\n    y[i] = cp.{kind}({number})"),
    "number": ("{whole}", "{real}"),
    "shift": ("0", "1", "2", "3", "4", "5", "6"),
    "numbers": ("4", "-1", "4", "-1", "4", "np.int64(3)", "np.uint8(200)", "True", "0.5"),
    "index": (*("i = cp.int32(jit.threadIdx.x)",) * 9, "i = jit.threadIdx.x", "i = jit.grid(1)"),
    "f": ("1", "0", "0.5", "-2.75", "3", "nan", "-0.0"),
    "i": ("1", "0", "-3", "7", "100"),
    "device": ("@jit.rawkernel(device=True)\ndef twice(v, n):\n    if n > 5:\n        return v * 2\n    return v\n\n",),
}  # fmt: skip
"""Parts of kernels: those of one name may stand for each other; f and i: values of x. An index that is not cast is unsigned."""
