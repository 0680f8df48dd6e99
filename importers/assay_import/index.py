"""Index arithmetic: integers as expressions over axes (extents) and loop variables.

Everything is a sympy expression. Axes are positive integers; a loop variable runs from 0 to its
extent. Divisions that reshapes bring in disappear wherever they provably can: (i * n + j) / n is i
where j runs below n. What stays is a FloorDiv or a Mod, and both are right for what is not negative.
"""

import sympy
from sympy.core.function import Function


class FloorDiv(Function):
    nargs = 2
    is_integer = True
    is_nonnegative = True


class Mod(Function):
    nargs = 2
    is_integer = True
    is_nonnegative = True


def axis(name):
    return sympy.Symbol(name, integer=True, positive=True)


_variables = {}


def variable(name, extent):
    """A loop variable, 0 <= variable < extent. Equal names with other extents are other variables."""
    found = sympy.Symbol(name, integer=True, nonnegative=True)
    _variables[found] = sympy.sympify(extent)
    return found


def is_variable(symbol):
    return symbol in _variables


def extent_of(symbol):
    return _variables[symbol]


def loaded(name):
    """An integer that a tensor holds: nothing is known of it but that it is not negative."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


def _terms(e):
    return sympy.Add.make_args(sympy.expand(e))


def nonnegative(e):
    """Is e >= 0 for all axes from 1 on? True is proven; False is not known."""
    e = sympy.expand(e)
    if e.is_number:
        return bool(e >= 0)
    shifted = {s: s + 1 for s in e.free_symbols if s.is_positive}
    e = sympy.expand(e.xreplace(shifted)) if shifted else e
    return all(not _is_negative(t) and all(_factor_nonnegative(f) for f in sympy.Mul.make_args(t)) for t in sympy.Add.make_args(e))


def _factor_nonnegative(factor):
    # A quotient is at least 0 where its numerator is: windows that do not fit have extents below 1.
    return nonnegative(factor.args[0]) if isinstance(factor, FloorDiv) else bool(factor.is_nonnegative)


def _is_negative(term):
    return bool(term.as_coeff_Mul()[0] < 0)


def largest(e):
    """An upper bound of e over its loop variables, as an expression over axes; None if unknown."""
    total = sympy.Integer(0)
    for term in _terms(e):
        negative = _is_negative(term)
        for factor in sympy.Mul.make_args(term):
            for s in factor.free_symbols:
                if not is_variable(s) and not s.is_positive:
                    return None
        if negative:
            if any(is_variable(s) for s in term.free_symbols):
                continue  # at least 0 is taken away
            total += term
            continue
        replaced = sympy.Integer(1)
        for factor in sympy.Mul.make_args(term):
            base, power = factor.as_base_exp()
            if is_variable(base):
                replaced *= (extent_of(base) - 1) ** power
            elif isinstance(base, Mod):
                replaced *= (base.args[1] - 1) ** power
            elif isinstance(base, FloorDiv):
                inner = largest(base.args[0])
                if inner is None:
                    return None
                replaced *= floordiv(inner, base.args[1]) ** power
            else:
                replaced *= factor
        total += replaced
    return sympy.expand(total)


def smallest_is_zero(e):
    return not any(_is_negative(t) for t in _terms(e))


def below(e, b):
    """Is 0 <= e < b proven?"""
    if not smallest_is_zero(e):
        return False
    top = largest(e)
    return top is not None and nonnegative(b - 1 - top)


def _split(e, b):
    """e = b * quotient + rest, with all of e in the quotient that b visibly divides."""
    quotient, rest = sympy.Integer(0), sympy.Integer(0)
    for term in _terms(e):
        ratio = sympy.cancel(term / b)
        denominator = sympy.fraction(sympy.together(ratio))[1]
        if denominator == 1:
            quotient += ratio
        elif b.is_Integer and term.as_coeff_Mul()[0].is_Integer:
            coefficient, other = term.as_coeff_Mul()
            whole = coefficient // b if other != 1 else sympy.Integer(0)
            quotient += whole * other
            rest += term - whole * b * other
        else:
            rest += term
    if rest != 0 and isinstance(sympy.expand(b), sympy.Add):
        # Axes first: the divisor's leading term is one of theirs.
        symbols = sorted(e.free_symbols | b.free_symbols, key=lambda s: (is_variable(s), s.name))
        try:
            q, r = sympy.div(sympy.expand(rest), sympy.expand(b), *symbols)
            if q != 0 and all(t.as_coeff_Mul()[0].is_Integer for t in _terms(q)) and smallest_is_zero(r):
                quotient, rest = quotient + q, sympy.expand(r)
        except sympy.PolynomialError:
            pass
    return quotient, sympy.expand(rest)


def floordiv(e, b):
    e, b = sympy.sympify(e), sympy.sympify(b)
    if b == 1:
        return e
    if e.is_Integer and b.is_Integer:
        return sympy.Integer(int(e) // int(b))
    quotient, rest = _split(e, b)
    if below(rest, b):
        return quotient
    if isinstance(rest, FloorDiv):
        return quotient + floordiv(rest.args[0], sympy.expand(rest.args[1] * b))
    if not smallest_is_zero(rest):
        return FloorDiv(sympy.expand(e), b)
    return quotient + FloorDiv(rest, b)


def mod(e, b):
    e, b = sympy.sympify(e), sympy.sympify(b)
    if b == 1:
        return sympy.Integer(0)
    if e.is_Integer and b.is_Integer:
        return sympy.Integer(int(e) % int(b))
    _, rest = _split(e, b)
    if below(rest, b):
        return rest
    if not smallest_is_zero(rest):
        return Mod(sympy.expand(e), b)
    return Mod(rest, b)


def product(extents):
    total = sympy.Integer(1)
    for extent in extents:
        total *= extent
    return total


def same(a, b):
    return sympy.expand(sympy.sympify(a) - sympy.sympify(b)) == 0


def flatten(indices, extents):
    """Row-major number of an element."""
    flat = sympy.Integer(0)
    for index, extent in zip(indices, extents):
        flat = flat * extent + index
    return sympy.expand(flat)


def unflatten(flat, extents):
    indices = []
    for position, extent in enumerate(extents):
        inner = product(extents[position + 1 :])
        index = floordiv(flat, inner)
        indices.append(index if position == 0 else mod(index, extent))
    return indices


def regroup(indices, old, new):
    """Indices into a tensor of extents `old` for an element of its view of extents `new`.

    Goes group by group where leading extents multiply to the same number, so that what is reshaped
    apart stays apart.
    """
    result, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        a, b = i, j
        left = old[a] if a < len(old) else sympy.Integer(1)
        right = new[b] if b < len(new) else sympy.Integer(1)
        a, b = min(a + 1, len(old)), min(b + 1, len(new))
        ends = None
        for x in range(a, len(old) + 1):
            for y in range(b, len(new) + 1):
                if same(product(old[i:x]), product(new[j:y])):
                    ends = (x, y)
                    break
            if ends:
                break
        del left, right
        x, y = ends if ends else (len(old), len(new))
        if x - i == 1 and y - j == 1:
            result.append(indices[j])
        else:
            result += unflatten(flatten(indices[j:y], new[j:y]), old[i:x])
        i, j = x, y
    return result


def address(indices, extents):
    """Row-major number of an element, as C++: factored, as people write it."""
    flat = flatten(indices, extents) if any(sympy.sympify(i).has(FloorDiv, Mod) for i in indices) else None
    if flat is None or flat.has(FloorDiv, Mod):
        text, plain = "", True
        for index, extent in zip(indices, extents):
            index, extent = sympy.sympify(index), sympy.sympify(extent)
            if text and extent != 1:
                text = (text if plain else f"({text})") + " * " + code(extent, 3)
                plain = True
            if index == 0:
                continue
            if text:
                negative = _is_negative(_terms(index)[0]) and len(_terms(index)) == 1
                text += " - " + code(-index, 2) if negative else " + " + code(index, 1)
                plain = False
            else:
                text = code(index, 0)
                plain = index.is_Symbol or index.is_Integer
        return text or "0"
    return code(flat)


def test(a, b):
    """C++ of a < b."""
    return f"{code(b, 2)} >= 0" if a == -1 else f"{code(a, 1)} < {code(b, 1)}"


def code(e, parent=0):
    """C++ (and op.json's expressions) for an index. `parent` is the precedence around it."""
    e = sympy.sympify(e)
    if e.is_Integer:
        return str(int(e)) if e >= 0 or parent == 0 else f"({int(e)})"
    if e.is_Symbol:
        return e.name
    if isinstance(e, sympy.Add):
        ordered = sorted(e.args, key=lambda t: (_is_negative(t), -len(t.free_symbols), str(t)))
        text = ""
        for term in ordered:
            if _is_negative(term) and text:
                text += " - " + code(-term, 2)
            else:
                text += (" + " if text else "") + code(term, 1 if not text else 2)
        return f"({text})" if parent > 1 else text
    if isinstance(e, sympy.Mul):
        coefficient, _ = e.as_coeff_Mul()
        if coefficient.is_Rational and not coefficient.is_Integer:
            numerator, denominator = sympy.fraction(e)
            text = code(numerator, 3) + " / " + code(denominator, 4)
            return f"({text})" if parent > 2 else text
        factors = sorted(e.args, key=lambda f: (not f.is_Number, not is_variable(f), str(f)))
        if factors[0] == -1:
            text = "-" + code(sympy.Mul(*factors[1:]), 3)
            return f"({text})" if parent > 1 else text
        text = " * ".join(code(f, 3) for f in factors)
        return f"({text})" if parent > 3 else text
    if isinstance(e, sympy.Pow) and e.exp.is_Integer and e.exp > 0:
        text = " * ".join([code(e.base, 3)] * int(e.exp))
        return f"({text})" if parent > 3 else text
    if isinstance(e, (FloorDiv, Mod)):
        sign = " / " if isinstance(e, FloorDiv) else " % "
        text = code(e.args[0], 3) + sign + code(e.args[1], 4)
        return f"({text})" if parent > 2 else text
    if isinstance(e, (sympy.Max, sympy.Min)):
        name = "max" if isinstance(e, sympy.Max) else "min"
        text = code(e.args[0])
        for other in e.args[1:]:
            text = f"{name}({text}, {code(other)})"
        return text
    raise ValueError(f"no code for the index {e}")


def below_or_less(a, b):
    """Is a < b proven, so that no test is needed?"""
    if a == -1:
        return smallest_is_zero(b)
    if sympy.sympify(a).is_Integer and not smallest_is_zero(b):
        return False
    top = largest(a)
    return top is not None and smallest_is_zero(b) and not any(is_variable(s) for s in sympy.sympify(b).free_symbols) and nonnegative(b - 1 - top)
