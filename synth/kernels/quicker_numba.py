"""What numba is spared when it compiles: work whose result nothing uses, a quarter of its processor time.

None of it changes what a kernel computes. Changes that replace parts of numba's compiler are made in the releases in
which they were tested (:data:`TESTED`) alone; any other numba compiles as it does without us, in a third more time.
:func:`spare` is called once, before the first kernel is compiled.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from types import NoneType
from typing import Any

TESTED = ("0.68",)  # releases of numba
NO_COLOURS = "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"


def import_numba() -> Any:
    """Import numba, with plain messages: it would colour one for every line that it compiles, shown or not."""
    before = os.environ.get(NO_COLOURS)
    os.environ[NO_COLOURS] = "1"
    try:
        return import_module("numba")
    finally:
        if before is None:
            del os.environ[NO_COLOURS]
        else:
            os.environ[NO_COLOURS] = before


def spare() -> None:
    """Make the changes that suit this numba."""
    import numba

    inner = (
        _comparisons_of_flags,
        _events_of_locks,
        _searches_for_types,
        _wrappers_of_helpers,
        _machine_code_of_helpers,
        _searches_for_variables,
    )
    tested = ".".join(numba.__version__.split(".")[:2]) in TESTED
    for change in (_linear_algebra, _lengths_in_messages, *(inner if tested else ())):
        with suppress(AttributeError, ImportError):
            change()


def _linear_algebra() -> None:
    """Let numba take it that scipy has its BLAS. Before the first kernel it would import all of ``scipy.linalg`` to see
    that, 0.2 s, and whoever compiles a product of matrices imports it then."""
    from numba.np import linalg

    if "numba.np.arraymath" in sys.modules or not hasattr(linalg, "ensure_blas"):
        return
    ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        arraymath: Any = import_module("numba.np.arraymath")
        arraymath.ensure_blas = ensure_blas
    finally:
        linalg.ensure_blas = ensure_blas


def _lengths_in_messages() -> None:
    """Let ``a[:] = b`` of unlike lengths raise one constant text. The two lengths in it would make every process that
    compiles such a line compile numba's strings first, 2.5 s."""
    from numba.extending import overload as implement
    from numba.np import arrayobj

    def unlike(source: Any, index: Any) -> None: ...

    def raising(source: Any, index: Any) -> Any:
        def text(source: Any, index: Any) -> None:
            raise ValueError("cannot assign slice from input of different size")

        return text

    implement(unlike)(raising)
    if hasattr(arrayobj, "raise_with_shape_context"):
        arrayobj.raise_with_shape_context = unlike


def _comparisons_of_flags() -> None:
    """Compare a function's flags by those that are set. Numba asks for all two dozen, defaults included, at every look
    into a table of compiled helpers; its hash is that of their names, so it is the same for all."""
    from numba.core.targetconfig import TargetConfig

    whole = TargetConfig.__eq__

    def equal(self: Any, other: Any) -> Any:
        if self is other or (type(self) is type(other) and self._values == other._values):
            return True
        return whole(self, other)

    TargetConfig.__eq__ = equal
    TargetConfig.__hash__ = lambda self: hash(type(self))


def _events_of_locks() -> None:
    """Take numba's own two listeners off the lock around every call of LLVM, of which a kernel makes thousands."""
    ffi: Any = import_module("llvmlite.binding.ffi")
    callbacks = ffi.lib._lock._cblist
    callbacks[:] = [pair for pair in callbacks if pair[0].__module__ != "numba.core.base"]


def _searches_for_types() -> None:
    """Try that template of a function first which had the answer for these argument types before. ``+`` and ``a[i]``
    have dozens, of strings, sets and lists, which numba asks one after the other at every place in a kernel."""
    from numba.core import errors, targetconfig, utils
    from numba.core.target_extension import get_local_target

    functions: Any = import_module("numba.core.types.functions")
    whole = functions.BaseFunction.get_call_type
    known: dict[Any, tuple[Any, bool] | None] = {}

    def applied(each: Any, context: Any, args: Any, literally: bool) -> tuple[Any, Any]:
        template = each(context)
        return template, template.apply(args if literally else tuple(map(functions._unlit_non_poison, args)), {})

    def search(function: Any, context: Any, args: Any) -> tuple[Any, bool] | None:
        """The template that answers, and whether it takes literal types; None: numba has to say what is wrong."""
        for each in utils.order_by_target_specificity(
            get_local_target(context), function.templates, fnkey=function.key[0]
        ):
            for literally in (True, False) if each.prefer_literal else (False, True):
                if applied(each, context, args, literally)[1] is not None:
                    return each, literally
        return None

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return whole(self, context, args, kws)
        self._depth += 1
        try:
            key = self, context, tuple(args), targetconfig.ConfigStack.top_or_none()
            if key not in known:
                known[key] = search(self, context, args)
            if (answer := known[key]) is not None:
                each, literally = answer
                template, found = applied(each, context, args, literally)
                if found is not None:
                    self._impl_keys[found.args] = template.get_impl_key(found)
                    return found
        except (errors.NumbaError, TypeError):  # TypeError: of a type without a hash
            pass
        finally:
            self._depth -= 1
        return whole(self, context, args, kws)

    functions.BaseFunction.get_call_type = get_call_type


def _wrappers_of_helpers() -> None:
    """Compile numba's helpers (``np.zeros``, ``sorted``), which only kernels call, without what C would call."""
    from numba.core.typing.templates import _OverloadFunctionTemplate as Template

    whole = Template._build_impl

    def build(self: Any, key: Any, args: Any, kws: Any) -> Any:
        if self._jit_options.get("no_cpython_wrapper"):
            type(self)._jit_options = {**self._jit_options, "no_cfunc_wrapper": True}
        return whole(self, key, args, kws)

    Template._build_impl = build


def _machine_code_of_helpers() -> None:
    """Make machine code of a helper that has no wrapper only where somebody asks for its address: what calls it has
    it linked in."""
    from numba import _dynfunc
    from numba.core.codegen import JITCodeLibrary as Library
    from numba.core.cpu import CPUContext
    from numba.core.targetconfig import ConfigStack

    finalize, whole = Library._finalize_final_module, Library._optimize_final_module
    address, code = Library.get_pointer_to_function, Library._get_compiled_object
    executable = CPUContext.get_executable

    def finalize_unless_linked(self: Any) -> None:
        if vars(self).get("_only_linked"):
            self._verify_declare_only_symbols()
            self._finalized = True
        else:
            finalize(self)

    def optimize(self: Any) -> None:
        if not vars(self).get("_only_linked"):  # else it is optimized as part of what calls it
            whole(self)

    def compiled(self: Any) -> None:
        if vars(self).pop("_only_linked", False):
            finalize(self)

    def get_pointer_to_function(self: Any, name: str) -> Any:
        compiled(self)
        return address(self, name)

    def get_compiled_object(self: Any) -> Any:
        compiled(self)
        return code(self)

    def get_executable(self: Any, library: Any, fndesc: Any, env: Any) -> Any:
        flags = ConfigStack.top_or_none()
        bare = flags is not None and flags.no_cpython_wrapper and flags.no_cfunc_wrapper
        if not bare or type(library) is not Library or library._finalized:
            return executable(self, library, fndesc, env)
        library._only_linked = True
        library._ensure_finalized()
        name = fndesc.qualname.split(".")[-1]
        return _dynfunc.make_function(fndesc.lookup_module(), name, "linked where it is called", 0, env, (library,))

    Library._finalize_final_module, Library.get_pointer_to_function = finalize_unless_linked, get_pointer_to_function
    Library._get_compiled_object, CPUContext.get_executable = get_compiled_object, get_executable
    Library._optimize_final_module = optimize


def _searches_for_variables() -> None:
    """List the variables of a statement without asking for each of its places, names and texts what it is."""
    from numba.core import ir

    whole, without = ir.Inst._rec_list_vars, {ir.Loc, str, int, bool, NoneType}

    def variables(self: Any, value: Any) -> Any:
        if type(value) is not dict:
            return whole(self, value)
        found: list[Any] = []
        for each in value.values():
            if type(each) is ir.Var:
                found.append(each)
            elif type(each) not in without:
                found.extend(whole(self, each))
        return found

    ir.Inst._rec_list_vars = variables
