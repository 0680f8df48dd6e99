"""One row an ATen operator: how it is lowered, what error is charged, what holds of rows; or why it is refused.

`code` is the C++ of a pointwise operator on numbers, `whole` that on integers and `truth` that on
booleans; {0}, {1} are its operands. `lower` names a function of lower.py for the others. `exact` marks
operators whose result is one of their operands, or exact in every format: no rounding follows them.
docs/torch-ops.md is made of this table (docs.py), which needs no torch.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Op:
    name: str
    lower: str = "pointwise"
    code: str = ""
    whole: str = ""
    truth: str = ""
    how: str = ""
    charge: str = ""
    rows: str = "each element"
    exact: bool = False
    cost: int = 1
    refused: str = ""
    cure: str = ""


def _point(name, code, charge, whole="", truth="", exact=False, cost=1, how=""):
    return Op(name, code=code, whole=whole, truth=truth, charge=charge, exact=exact, cost=cost, how=how)


def _view(name, how, lower=None):
    short = name.split(".")[1]
    return Op(name, lower=lower or short, how=how, charge="none", rows="moves elements", exact=True, cost=0)


def _no(name, why, cure):
    return Op(name, lower="", refused=why, cure=cure)


_SUM = "a sum"
_RANDOM = "draws random numbers"
_RANDOM_CURE = "give the random numbers to the function as an input"
_SIZES = "its result's size depends on values"
_SIZES_CURE = "use a form of fixed size: a mask, or padding to the largest size"
_SELECTS = "none; where the operands are closer than their errors, both results are right"

POINTWISE = [
    _point("aten.add.Tensor", "", "a term of a sum", how="x + alpha y", cost=1),
    _point("aten.add.Scalar", "", "a term of a sum", how="x + alpha y"),
    _point("aten.sub.Tensor", "", "a term of a sum", how="x - alpha y"),
    _point("aten.sub.Scalar", "", "a term of a sum", how="x - alpha y"),
    _point("aten.rsub.Scalar", "", "a term of a sum", how="alpha y - x"),
    _point("aten.mul.Tensor", "{0} * {1}", "2 u", whole="{0} * {1}", truth="{0} && {1}"),
    _point("aten.mul.Scalar", "{0} * {1}", "2 u", whole="{0} * {1}", truth="{0} && {1}"),
    _point("aten.div.Tensor", "{0} / {1}", "4 u", cost=2),
    _point("aten.div.Scalar", "{0} / {1}", "4 u", cost=2),
    _point("aten.div.Tensor_mode", "", "4 u, then floor or trunc", how="quotient, rounded to an integer as `rounding_mode` says", cost=4),
    _point("aten.div.Scalar_mode", "", "4 u, then floor or trunc", how="as div.Tensor_mode", cost=4),
    _point("aten.floor_divide.default", "floor({0} / {1})", "4 u, then floor", whole="floor_div({0}, {1})", cost=4),
    _point("aten.remainder.Scalar", "{0} - floor({0} / {1}) * {1}", "floor's", whole="floor_mod({0}, {1})", cost=4),
    _point("aten.remainder.Tensor", "{0} - floor({0} / {1}) * {1}", "floor's", whole="floor_mod({0}, {1})", cost=4),
    _point("aten.fmod.Scalar", "{0} - trunc({0} / {1}) * {1}", "trunc's", whole="{0} % {1}", cost=4),
    _point("aten.fmod.Tensor", "{0} - trunc({0} / {1}) * {1}", "trunc's", whole="{0} % {1}", cost=4),
    _point("aten.neg.default", "-{0}", "none", whole="-{0}", exact=True, cost=0),
    _point("aten.abs.default", "abs({0})", "none", whole="({0} < 0 ? -{0} : {0})", exact=True),
    _point("aten.sign.default", "sign({0})", _SELECTS, whole="int64({0} > 0) - int64({0} < 0)", exact=True),
    _point("aten.sgn.default", "sign({0})", _SELECTS, whole="int64({0} > 0) - int64({0} < 0)", exact=True),
    _point("aten.relu.default", "max({0}, Real(0))", "none", whole="({0} < 0 ? 0 : {0})", exact=True),
    _point("aten.maximum.default", "max({0}, {1})", "none", whole="({0} < {1} ? {1} : {0})", exact=True),
    _point("aten.minimum.default", "min({0}, {1})", "none", whole="({0} < {1} ? {0} : {1})", exact=True),
    _point("aten.fmax.default", "max({0}, {1})", "none", whole="({0} < {1} ? {1} : {0})", exact=True, how="without NaN, as maximum"),
    _point("aten.fmin.default", "min({0}, {1})", "none", whole="({0} < {1} ? {0} : {1})", exact=True, how="without NaN, as minimum"),
    _point("aten.clamp.default", "", "none", how="min(max(x, low), high)", exact=True),
    _point("aten.clamp.Tensor", "", "none", how="min(max(x, low), high)", exact=True),
    _point("aten.clamp_min.default", "max({0}, {1})", "none", whole="({0} < {1} ? {1} : {0})", exact=True),
    _point("aten.clamp_max.default", "min({0}, {1})", "none", whole="({0} < {1} ? {0} : {1})", exact=True),
    _point("aten.hardtanh.default", "", "none", how="min(max(x, low), high)", exact=True),
    _point("aten.reciprocal.default", "Real(1) / {0}", "4 u", cost=2),
    _point("aten.sqrt.default", "sqrt({0})", "2 ulp", cost=4),
    _point("aten.rsqrt.default", "rsqrt({0})", "2 ulp", cost=4),
    _point("aten.exp.default", "exp({0})", "2 + 1.173 abs(x) ulp", cost=8),
    _point("aten.exp2.default", "exp2({0})", "2 ulp", cost=8),
    _point("aten.expm1.default", "expm1({0})", "2 ulp", cost=8),
    _point("aten.log.default", "log({0})", "max(3.6e-7, 3 ulp)", cost=8),
    _point("aten.log2.default", "log2({0})", "max(2^-22, 2 ulp)", cost=8),
    _point("aten.log10.default", "log10({0})", "max(1.1e-7, 3 ulp)", cost=8),
    _point("aten.log1p.default", "log1p({0})", "2 ulp", cost=8),
    _point("aten.sin.default", "sin({0})", "2 ulp; 2^-21.4 within pi", cost=8),
    _point("aten.cos.default", "cos({0})", "2 ulp; 2^-21.2 within pi", cost=8),
    _point("aten.tan.default", "sin({0}) / cos({0})", "of the quotient", cost=8),
    _point("aten.atan.default", "atan({0})", "2 ulp", cost=8),
    _point("aten.asin.default", "asin({0})", "2 ulp", cost=8),
    _point("aten.acos.default", "acos({0})", "2 ulp", cost=8),
    _point("aten.atan2.default", "atan2({0}, {1})", "3 ulp; a turn, where the sign of y is in doubt and x is negative", cost=12),
    _point("aten.asinh.default", "asinh({0})", "3 ulp", cost=8),
    _point("aten.acosh.default", "acosh({0})", "4 ulp", cost=8),
    _point("aten.atanh.default", "atanh({0})", "3 ulp", cost=8),
    _point("aten.sinh.default", "(exp({0}) - exp(-{0})) * Real(0.5)", "of the formula", cost=8),
    _point("aten.cosh.default", "(exp({0}) + exp(-{0})) * Real(0.5)", "of the formula", cost=8),
    _point("aten.tanh.default", "tanh({0})", "2 ulp", cost=8),
    _point("aten.sigmoid.default", "sigmoid({0})", "exp's and a quotient's", cost=8),
    _point("aten.erf.default", "erf({0})", "2 ulp", cost=8),
    _point("aten.erfc.default", "Real(1) - erf({0})", "of the formula", cost=8),
    _point("aten.erfinv.default", "erfinv({0})", "2 ulp", cost=16),
    _point("aten.pow.Tensor_Scalar", "", "products, sqrt, or pow's", how="products for small integers, sqrt and rsqrt for halves, else pow", cost=4),
    _point("aten.pow.Tensor_Tensor", "pow({0}, {1})", "2 + 1.173 abs(y ln x) ulp, and log's times y", cost=12),
    _point("aten.pow.Scalar", "pow({0}, {1})", "2 + 1.173 abs(y ln x) ulp, and log's times y", cost=12),
    _point("aten.hypot.default", "sqrt({0} * {0} + {1} * {1})", "of the formula", cost=6),
    _point("aten.square.default", "{0} * {0}", "2 u", whole="{0} * {0}"),
    _point("aten.floor.default", "floor({0})", "one, where x is closer to an integer than its error", whole="{0}", exact=True),
    _point("aten.ceil.default", "ceil({0})", "one, where x is closer to an integer than its error", whole="{0}", exact=True),
    _point("aten.round.default", "round({0})", "one, where x is closer to a tie than its error", whole="{0}", exact=True, how="ties to even"),
    _point("aten.trunc.default", "trunc({0})", "one, where x is closer to an integer than its error", whole="{0}", exact=True),
    _point("aten.gelu.default", "", "of the formula", how="x / 2 (1 + erf(x / sqrt 2)), or its tanh form", cost=10),
    _point("aten.silu.default", "{0} * sigmoid({0})", "sigmoid's and a product's", cost=9),
    _point("aten.softplus.default", "", "of the formula", how="max(x, 0) + log1p(exp(-abs x))", cost=16),
    _point("aten.elu.default", "", "expm1's and products'", how="x where x > 0, else alpha expm1(x)", cost=10),
    _point("aten.leaky_relu.default", "", "2 u", how="x where x > 0, else slope x"),
    _point("aten.hardsigmoid.default", "min(max({0} + Real(3), Real(0)), Real(6)) / Real(6)", "4 u", cost=3),
    _point("aten.hardswish.default", "{0} * min(max({0} + Real(3), Real(0)), Real(6)) / Real(6)", "6 u", cost=4),
    _point("aten.eq.Scalar", "equal({0}, {1})", _SELECTS, whole="{0} == {1}", truth="!({0} ^ {1})"),
    _point("aten.eq.Tensor", "equal({0}, {1})", _SELECTS, whole="{0} == {1}", truth="!({0} ^ {1})"),
    _point("aten.ne.Scalar", "!equal({0}, {1})", _SELECTS, whole="{0} != {1}", truth="{0} ^ {1}"),
    _point("aten.ne.Tensor", "!equal({0}, {1})", _SELECTS, whole="{0} != {1}", truth="{0} ^ {1}"),
    _point("aten.lt.Scalar", "less({0}, {1})", _SELECTS, whole="{0} < {1}"),
    _point("aten.lt.Tensor", "less({0}, {1})", _SELECTS, whole="{0} < {1}"),
    _point("aten.le.Scalar", "less_equal({0}, {1})", _SELECTS, whole="{0} <= {1}"),
    _point("aten.le.Tensor", "less_equal({0}, {1})", _SELECTS, whole="{0} <= {1}"),
    _point("aten.gt.Scalar", "less({1}, {0})", _SELECTS, whole="{0} > {1}"),
    _point("aten.gt.Tensor", "less({1}, {0})", _SELECTS, whole="{0} > {1}"),
    _point("aten.ge.Scalar", "less_equal({1}, {0})", _SELECTS, whole="{0} >= {1}"),
    _point("aten.ge.Tensor", "less_equal({1}, {0})", _SELECTS, whole="{0} >= {1}"),
    _point("aten.isnan.default", "!equal({0}, {0})", "none", whole="false"),
    _point("aten.isinf.default", "equal(abs({0}), Real(assay::infinity()))", "none", whole="false"),
    _point("aten.logical_and.default", "!equal({0}, Real(0)) && !equal({1}, Real(0))", "none", whole="{0} != 0 && {1} != 0", truth="{0} && {1}"),
    _point("aten.logical_or.default", "!equal({0}, Real(0)) || !equal({1}, Real(0))", "none", whole="{0} != 0 || {1} != 0", truth="{0} || {1}"),
    _point("aten.logical_xor.default", "!equal({0}, Real(0)) ^ !equal({1}, Real(0))", "none", whole="({0} != 0) != ({1} != 0)", truth="{0} ^ {1}"),
    _point("aten.logical_not.default", "equal({0}, Real(0))", "none", whole="{0} == 0", truth="!{0}"),
    _point("aten.bitwise_and.Tensor", "", "none", whole="{0} & {1}", truth="{0} && {1}", exact=True),
    _point("aten.bitwise_and.Scalar", "", "none", whole="{0} & {1}", truth="{0} && {1}", exact=True),
    _point("aten.bitwise_or.Tensor", "", "none", whole="{0} | {1}", truth="{0} || {1}", exact=True),
    _point("aten.bitwise_or.Scalar", "", "none", whole="{0} | {1}", truth="{0} || {1}", exact=True),
    _point("aten.bitwise_xor.Tensor", "", "none", whole="{0} ^ {1}", truth="{0} ^ {1}", exact=True),
    _point("aten.bitwise_xor.Scalar", "", "none", whole="{0} ^ {1}", truth="{0} ^ {1}", exact=True),
    _point("aten.bitwise_not.default", "", "none", whole="~{0}", truth="!{0}", exact=True),
    _point("aten.bitwise_left_shift.Tensor", "", "none", whole="{0} << {1}", exact=True),
    _point("aten.bitwise_right_shift.Tensor", "", "none", whole="{0} >> {1}", exact=True),
    _point("aten.__lshift__.Scalar", "", "none", whole="{0} << {1}", exact=True),
    _point("aten.__rshift__.Scalar", "", "none", whole="{0} >> {1}", exact=True),
    _point("aten.where.self", "", _SELECTS, how="select(condition, x, y)", exact=True),
    _point("aten.lerp.Scalar", "{0} + ({1} - {0}) * {2}", "of the formula", cost=3),
    _point("aten.lerp.Tensor", "{0} + ({1} - {0}) * {2}", "of the formula", cost=3),
    _point("aten.addcmul.default", "", "of the formula", how="x + value y z", cost=3),
    _point("aten.addcdiv.default", "", "of the formula", how="x + value y / z", cost=3),
    _point("aten._to_copy.default", "", "half an ulp where the type is narrower", how="may_round_to<T>; round_to<T> with --strict and for 8-bit floats; trunc to integers", cost=0),
]

MAKES = [
    Op("aten._local_scalar_dense.default", "item", how="the one element as a number (.item()): in arithmetic, or as the place of an element or of a slice of known length", charge="none", exact=True, cost=0),
    Op("aten.full.default", "full", how="a constant", charge="none", exact=True, cost=0),
    Op("aten.full_like.default", "full", how="a constant", charge="none", exact=True, cost=0),
    Op("aten.zeros_like.default", "full", how="a constant", charge="none", exact=True, cost=0),
    Op("aten.ones_like.default", "full", how="a constant", charge="none", exact=True, cost=0),
    Op("aten.scalar_tensor.default", "full", how="a constant", charge="none", exact=True, cost=0),
    Op("aten.empty.memory_format", "full", how="zeros, where all of it is written later", charge="none", exact=True, cost=0),
    Op("aten.empty_permuted.default", "full", how="zeros, where all of it is written later", charge="none", exact=True, cost=0),
    Op("aten.arange.start_step", "arange", how="start + i step", charge="none", exact=True, cost=0),
    Op("aten.tril.default", "tril", how="x where j <= i + diagonal, else 0", charge="none", exact=True),
    Op("aten.triu.default", "tril", how="x where j >= i + diagonal, else 0", charge="none", exact=True),
]

VIEWS = [
    _view("aten.permute.default", "other order of axes"),
    _view("aten.transpose.int", "two axes exchanged", "transpose"),
    _view("aten.t.default", "two axes exchanged", "transpose"),
    _view("aten.view.default", "regrouped axes", "view"),
    _view("aten.reshape.default", "regrouped axes", "view"),
    _view("aten._unsafe_view.default", "regrouped axes", "view"),
    _view("aten.unsqueeze.default", "an axis of one"),
    _view("aten.squeeze.dims", "without axes of one", "view"),
    _view("aten.squeeze.dim", "without an axis of one", "view"),
    _view("aten.expand.default", "repeated along new axes"),
    _view("aten.slice.Tensor", "start + i step", "slice_"),
    _view("aten.select.int", "one index of an axis"),
    _view("aten.split_with_sizes.default", "slices", "split"),
    _view("aten.unfold.default", "windows along an axis"),
    _view("aten.flip.default", "n - 1 - i"),
    _view("aten.repeat.default", "i mod n"),
    _view("aten.alias.default", "itself", "itself"),
    _view("aten.clone.default", "itself", "itself"),
    _view("aten.detach.default", "itself", "itself"),
    _view("aten.lift_fresh_copy.default", "itself", "itself"),
    _view("aten.copy.default", "the source, cast and repeated", "copy"),
    _view("aten.cat.default", "one of the parts, by index", "cat"),
    _view("aten.constant_pad_nd.default", "the value outside", "pad"),
    _view("aten.slice_scatter.default", "the source inside of the slice", "slice_scatter"),
    _view("aten.select_scatter.default", "the source at the index", "slice_scatter"),
    _view("aten.diagonal.default", "both indices alike", "diagonal"),
    _view("aten._conj.default", "the imaginary part negated", "itself"),
    _view("aten.view_as_real.default", "real and imaginary parts along a last axis", "view_as_real"),
    Op("aten.complex.default", "complex_of", how="real and imaginary parts", charge="none", exact=True, cost=0),
    Op("aten.polar.default", "polar", how="abs cos(angle), abs sin(angle)", charge="those of cos and sin, and 2 u", cost=9),
    _view("aten.view_as_complex.default", "pairs as complex numbers", "view_as_complex"),
]

GATHERS = [
    Op("aten.index.Tensor", "index", how="elements at indices that tensors hold; negative ones count from the end", charge="none", rows="by index", exact=True),
    Op("aten.index_select.default", "index_select", how="rows at indices", charge="none", rows="by index", exact=True),
    Op("aten.embedding.default", "embedding", how="rows at indices", charge="none", rows="by index", exact=True),
    Op("aten.gather.default", "gather", how="elements at indices along an axis", charge="none", rows="by index", exact=True),
    Op("aten.scatter.value", "scatter", how="the value where an index points, else self", charge="none", rows="by index", exact=True),
    Op("aten.scatter.src", "scatter", how="the last element of the source whose index points here, else self", charge="none", rows="by index", exact=True),
    Op("aten.scatter_add.default", "scatter", how="self and all elements of the source whose index points here", charge=_SUM, rows="linear"),
    Op("aten.index_add.default", "index_add", how="self and alpha times all rows of the source whose index points here", charge=_SUM, rows="linear"),
    Op("aten.index_put.default", "index_put", how="the last of the values whose indices point here (all, with accumulate), else self", charge="none, or a sum", rows="by index", exact=True),
    Op("aten.scatter_reduce.two", "scatter_reduce", how="self and all elements of the source whose index points here: their sum, product, mean, largest or smallest", charge="a sum, 2 u a factor, or none", rows="by index"),
    Op("aten.index_reduce.default", "scatter_reduce", how="as scatter_reduce, whole rows at a time", charge="a sum, 2 u a factor, or none", rows="by index"),
    Op("aten.searchsorted.Tensor", "search", how="how many of the sorted numbers are smaller (or not larger)", charge="none", rows="each element"),
    Op("aten.bucketize.Tensor", "search", how="how many of the boundaries are smaller (or not larger)", charge="none", rows="each element"),
    Op("aten.bincount.default", "bincount", how="how many elements have each value below `minlength`, which no value exceeds, or the sum of their weights", charge=_SUM, rows="linear"),
    Op("aten.one_hot.default", "one_hot", how="1 where the index is the class", charge="none", exact=True),
]

REDUCTIONS = [
    Op("aten.sum.dim_IntList", "sum", how="a loop", charge=_SUM, rows="linear"),
    Op("aten.sum.default", "sum", how="a loop", charge=_SUM, rows="linear"),
    Op("aten.mean.dim", "mean", how="average(sum, count)", charge="a running mean", rows="linear"),
    Op("aten.mean.default", "mean", how="average(sum, count)", charge="a running mean", rows="linear"),
    Op("aten.var.correction", "variance", how="two passes: squares of deviations from average(...)", charge="of the formula", rows="shift invariant"),
    Op("aten.var.dim", "variance", how="as var.correction", charge="of the formula", rows="shift invariant"),
    Op("aten.var_mean.correction", "variance", how="as var and mean", charge="of the formula", rows="shift invariant"),
    Op("aten.prod.dim_int", "prod", how="a loop", charge="2 u a factor", rows="each row"),
    Op("aten.prod.default", "prod", how="a loop", charge="2 u a factor", rows="each row"),
    Op("aten.amax.default", "amax", how="max, NaN wins", charge="none", rows="each row", exact=True),
    Op("aten.amin.default", "amax", how="min, NaN wins", charge="none", rows="each row", exact=True),
    Op("aten.max.default", "amax", how="max, NaN wins", charge="none", rows="each row", exact=True),
    Op("aten.min.default", "amax", how="min, NaN wins", charge="none", rows="each row", exact=True),
    Op("aten.max.dim", "max_dim", how="the largest and the first index that has it", charge="none", rows="each row", exact=True),
    Op("aten.min.dim", "max_dim", how="the smallest and the first index that has it", charge="none", rows="each row", exact=True),
    Op("aten.argmax.default", "argmax", how="the first index of the largest", charge="none", rows="each row", exact=True),
    Op("aten.argmin.default", "argmax", how="the first index of the smallest", charge="none", rows="each row", exact=True),
    Op("aten.any.dim", "any", how="a loop", charge="none", rows="each row", exact=True),
    Op("aten.any.dims", "any", how="a loop", charge="none", rows="each row", exact=True),
    Op("aten.any.default", "any", how="a loop", charge="none", rows="each row", exact=True),
    Op("aten.all.dim", "any", how="a loop", charge="none", rows="each row", exact=True),
    Op("aten.all.default", "any", how="a loop", charge="none", rows="each row", exact=True),
    Op("aten.logsumexp.default", "logsumexp", how="log(sum(exp(x - max))) + max", charge="of the formula", rows="shift equivariant"),
    Op("aten._softmax.default", "softmax", how="exp(x - max) / sum(exp(x - max))", charge="of the formula", rows="shift invariant"),
    Op("aten._log_softmax.default", "log_softmax", how="x - max - log(sum(exp(x - max)))", charge="of the formula", rows="shift invariant"),
    Op("aten.linalg_vector_norm.default", "vector_norm", how="sqrt(sum of squares), sum of magnitudes, or the largest", charge="of the formula", rows="each row"),
    Op("aten.cumsum.default", "cumsum", how="a thread a row, terms in order", charge=_SUM, rows="linear"),
    Op("aten.cumprod.default", "cumsum", how="a thread a row, factors in order", charge="2 u a factor", rows="each row"),
    Op("aten.cummax.default", "cummax", how="a thread a row; the last index that has the maximum so far", charge="none", rows="each row", exact=True),
    Op("aten.cummin.default", "cummax", how="a thread a row; the last index that has the minimum so far", charge="none", rows="each row", exact=True),
    Op("aten.sort.default", "sort", how="the rank of each element: how many come before it", charge="none", rows="each row", exact=True),
    Op("aten.sort.stable", "sort", how="the rank of each element: how many come before it", charge="none", rows="each row", exact=True),
    Op("aten.logcumsumexp.default", "logcumsumexp", how="a thread a row: largest so far, and the sum of exp(x - it)", charge="of the formula", rows="each row"),
    Op("aten.median.dim", "kth", how="the element of rank (n - 1) / 2; not its index", charge="none", rows="each row", exact=True),
    Op("aten.median.default", "kth", how="the element of rank (n - 1) / 2", charge="none", rows="each row", exact=True),
    Op("aten.kthvalue.default", "kth", how="the element of rank k - 1; not its index", charge="none", rows="each row", exact=True),
    Op("aten.topk.default", "sort", how="the first k of the sorted row", charge="none", rows="each row", exact=True),
]

PRODUCTS = [
    Op("aten.mm.default", "mm", how="a loop over the inner axis", charge=_SUM, rows="linear in each operand", cost=100),
    Op("aten.bmm.default", "mm", how="a loop over the inner axis", charge=_SUM, rows="linear in each operand", cost=100),
    Op("aten.addmm.default", "addmm", how="the product and the bias, one sum", charge=_SUM, rows="linear in each operand", cost=100),
    Op("aten.baddbmm.default", "addmm", how="the product and the bias, one sum", charge=_SUM, rows="linear in each operand", cost=100),
    Op("aten.mv.default", "mm", how="a loop over the inner axis", charge=_SUM, rows="linear in each operand", cost=100),
    Op("aten.dot.default", "mm", how="a loop", charge=_SUM, rows="linear in each operand", cost=100),
    Op("aten._int_mm.default", "mm", how="a loop, in whole numbers", charge="none", rows="linear in each operand", cost=100),
    Op("aten.convolution.default", "convolution", how="loops over channels and window, bias in the same sum; strides, padding, dilation, groups, transposed", charge=_SUM, rows="linear in each operand", cost=100),
    Op("aten.convolution_backward.default", "convolution_backward", how="gradients of input, weight and bias, each a sum", charge=_SUM, rows="linear in each operand", cost=100),
    Op("aten.scaled_dot_product_attention.default", "attention", how="scores, mask, softmax, product; probabilities may be rounded before or after they are normalised", charge="of the formula", rows="each query", cost=100),
    Op("aten._cdist_forward.default", "cdist", how="differences of each pair, their norm", charge="of the formula", rows="each pair", cost=100),
    Op("aten._fft_r2c.default", "fft", how="sums with cos and sin of exact angles", charge="a sum, and 2 ulp of 1 for each cos and sin", rows="linear", cost=100),
    Op("aten._fft_c2r.default", "fft", how="sums with cos and sin of exact angles", charge="a sum, and 2 ulp of 1 for each cos and sin", rows="linear", cost=100),
    Op("aten._fft_c2c.default", "fft", how="sums with cos and sin of exact angles", charge="a sum, and 2 ulp of 1 for each cos and sin", rows="linear", cost=100),
]

LAYERS = [
    Op("aten.native_layer_norm.default", "layer_norm", how="affine(x, mean, rstd weight, bias); mean by average, variance in a second pass", charge="of the formula", rows="shift invariant"),
    Op("aten.native_group_norm.default", "group_norm", how="as layer norm, over channels of a group", charge="of the formula", rows="each group"),
    Op("aten._native_batch_norm_legit_no_training.default", "batch_norm", how="affine(x, running mean, factor, bias)", charge="of the formula", rows="each channel"),
    Op("aten._native_batch_norm_legit.no_stats", "batch_norm", how="as layer norm, over batch and positions", charge="of the formula", rows="each channel"),
    Op("aten._native_batch_norm_legit_functional.default", "batch_norm", how="as layer norm, over batch and positions; running statistics as outputs", charge="of the formula", rows="each channel"),
    Op("aten._fused_rms_norm.default", "rms_norm", how="x rsqrt(mean of squares + eps) weight", charge="of the formula", rows="each row"),
    Op("aten.rms_norm.default", "rms_norm", how="x rsqrt(mean of squares + eps) weight", charge="of the formula", rows="each row"),
    Op("aten.max_pool2d_with_indices.default", "max_pool", how="the largest of a window", charge="none", rows="each window", exact=True),
    Op("aten.max_pool3d_with_indices.default", "max_pool", how="the largest of a window", charge="none", rows="each window", exact=True),
    Op("aten.avg_pool1d.default", "avg_pool", how="the sum of a window by its count", charge="a sum", rows="linear"),
    Op("aten.avg_pool2d.default", "avg_pool", how="the sum of a window by its count", charge="a sum", rows="linear"),
    Op("aten.avg_pool3d.default", "avg_pool", how="the sum of a window by its count", charge="a sum", rows="linear"),
    Op("aten.max_pool2d_with_indices_backward.default", "max_pool_backward", how="gradients of the windows whose largest element is here", charge=_SUM, rows="linear"),
    Op("aten.avg_pool2d_backward.default", "avg_pool_backward", how="gradients of the windows that hold the element, each by its count", charge="a sum", rows="linear"),
    Op("aten.adaptive_avg_pool1d.default", "adaptive_pool", how="means of windows from floor(i n / m) to ceil((i + 1) n / m)", charge="a sum", rows="linear"),
    Op("aten._adaptive_avg_pool2d.default", "adaptive_pool", how="means of windows from floor(i n / m) to ceil((i + 1) n / m)", charge="a sum", rows="linear"),
    Op("aten._adaptive_avg_pool3d.default", "adaptive_pool", how="means of windows from floor(i n / m) to ceil((i + 1) n / m)", charge="a sum", rows="linear"),
    Op("aten._adaptive_avg_pool2d_backward.default", "adaptive_pool_backward", how="gradients of the windows that hold the element, each by its count", charge="a sum", rows="linear"),
    Op("aten.upsample_bilinear2d.vec", "upsample", how="weights of the position, four neighbours", charge="of the formula", rows="linear"),
    Op("aten.upsample_nearest2d.vec", "upsample", how="the neighbour at floor(i scale)", charge="none", rows="linear"),
]

IGNORED = [
    Op("aten.sym_storage_offset.default", "nothing", how="where a tensor begins, which no result hangs on", charge="none", rows="-"),
    Op("aten.sym_size.int", "nothing", how="an extent", charge="none", rows="-"),
    Op("aten._assert_tensor_metadata.default", "nothing", how="holds for all shapes that are imported", charge="none", rows="-"),
    Op("aten._assert_scalar.default", "nothing", how="a constraint of the op", charge="none", rows="-"),
    Op("aten.sym_constrain_range_for_size.default", "nothing", how="a constraint of the op", charge="none", rows="-"),
]

REFUSED = [
    _no("aten._embedding_bag.default", "adds rows between offsets", "give each row its bag, and add with index_add"),
    _no("aten.nonzero.default", _SIZES, _SIZES_CURE),
    _no("aten.masked_select.default", _SIZES, _SIZES_CURE),
    _no("aten._unique2.default", _SIZES, _SIZES_CURE),
    _no("aten.unique_dim.default", _SIZES, _SIZES_CURE),
    _no("aten.unique_consecutive.default", _SIZES, _SIZES_CURE),
    _no("aten.repeat_interleave.Tensor", _SIZES, _SIZES_CURE),
    _no("aten.masked_scatter.default", "takes elements by how many of a mask came before", "gather them: source[mask.flatten().cumsum(0) - 1] under torch.where"),
    _no("aten.as_strided.default", "reads memory by strides", "use unfold, transpose or slices"),
    _no("aten._pdist_forward.default", "numbers pairs by a triangle", "torch.cdist has a row and a column for each"),
    _no("aten.resize_.default", "changes a tensor's memory", "make a new tensor"),
    _no("aten.empty_strided.default", "gives memory by strides", "use torch.zeros"),
    _no("aten.rand.default", _RANDOM, _RANDOM_CURE),
    _no("aten.randn.default", _RANDOM, _RANDOM_CURE),
    _no("aten.rand_like.default", _RANDOM, _RANDOM_CURE),
    _no("aten.randn_like.default", _RANDOM, _RANDOM_CURE),
    _no("aten.randint.low", _RANDOM, _RANDOM_CURE),
    _no("aten.randperm.default", _RANDOM, _RANDOM_CURE),
    _no("aten.bernoulli.default", _RANDOM, _RANDOM_CURE),
    _no("aten.bernoulli.p", _RANDOM, _RANDOM_CURE),
    _no("aten.native_dropout.default", _RANDOM, "call .eval(), or give the mask as an input"),
    _no("aten.multinomial.default", _RANDOM, _RANDOM_CURE),
    _no("aten.normal_functional.default", _RANDOM, _RANDOM_CURE),
    _no("aten.exponential.default", _RANDOM, _RANDOM_CURE),
]

GROUPS = [
    ("Element by element", POINTWISE),
    ("Constants and ramps", MAKES),
    ("Views and moves", VIEWS),
    ("By index", GATHERS),
    ("Reductions, scans, orders", REDUCTIONS),
    ("Products", PRODUCTS),
    ("Layers", LAYERS),
    ("Without a kernel", IGNORED),
    ("Refused", REFUSED),
]

OPERATORS = {row.name: row for _, rows in GROUPS for row in rows}
