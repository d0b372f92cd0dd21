#pragma once
// Converts numpy arrays in pickles to one form. The same array can be written in several ways: in
// Fortran order or not; with `_reconstruct` or, from protocol 5 on, with `_frombuffer`; in
// `numpy.core` or `numpy._core`. After the conversion, equal arrays are equal values:
//
//   numpy._core.multiarray._reconstruct(numpy.ndarray, (0,), b'b')
//   state (1, shape, dtype, False, elements in row-major order)

#include <string>

#include "reprise/value.hpp"

namespace reprise {

/// False if numpy refuses to make this array or scalar, because its bytes do not fit its element
/// type and shape. True for any other object.
bool numpy_accepts(const Object& object);

/// Rewrites an array in the form shown above. Leaves all other objects unchanged, including arrays
/// that numpy would not have written.
void normalize_numpy_array(Object& object);

/// Returns NumPy 2's name for a module: "numpy._core..." for "numpy.core...". NumPy has accepted
/// both names since version 1.26.
std::string normal_numpy_module(std::string module);

}  // namespace reprise
