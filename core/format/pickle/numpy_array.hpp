#pragma once
// numpy arrays in pickles. The same array can be written in several ways: in Fortran order or not,
// with `_reconstruct` or, from protocol 5 on, `_frombuffer`, in `numpy.core` or `numpy._core`. They
// are converted to one form, so that equal arrays are equal values:
//
//   numpy._core.multiarray._reconstruct(numpy.ndarray, (0,), b'b')
//   state (1, shape, dtype, False, elements in row-major order)

#include <string>

#include "reprise/value.hpp"

namespace reprise {

/// Rewrites an array in the form shown above. Leaves everything else unchanged, including arrays
/// that numpy would not have written.
void settle_numpy_array(Object& object);

/// Returns NumPy 2's name of a module: "numpy._core..." for "numpy.core...". NumPy knows both from
/// 1.26 on.
std::string settled_numpy_module(std::string module);

}  // namespace reprise
