#pragma once
// numpy arrays in pickles. One array has several spellings there: in Fortran order or not, by
// `_reconstruct` or, from protocol 5 on, `_frombuffer`, in `numpy.core` or `numpy._core`. They are
// brought into one, so that equal arrays are equal values:
//
//   numpy._core.multiarray._reconstruct(numpy.ndarray, (0,), b'b')
//   state (1, shape, dtype, False, elements in row-major order)

#include <string>

#include "reprise/value.hpp"

namespace reprise {

/// Rewrites an array as shown above. Leaves everything else as it is, and arrays that numpy would
/// not have written.
void settle_numpy_array(Object& object);

/// Returns the name that NumPy 2 has for a module: "numpy._core..." for "numpy.core...". NumPy from
/// 1.26 on knows both.
std::string settled_numpy_module(std::string module);

}  // namespace reprise
