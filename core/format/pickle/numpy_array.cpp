#include "core/format/pickle/numpy_array.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/bytes.hpp"
#include "core/geometry/piece.hpp"

namespace reprise {
namespace {

constexpr std::size_t kStateParts = 5;  // version, shape, dtype, is_fortran, elements

bool is(const Object& object, std::string_view module, std::string_view name) {
  return object.how == Object::How::kCall && object.type.module == module &&
         object.type.name == name;
}

/// Returns the shape; nothing if the array has no elements or more than kMaxNdim dimensions.
std::optional<Dims> shape_of(const Value& value) {
  const auto* tuple = value.as<Tuple>();
  if (tuple == nullptr || tuple->items.size() > kMaxNdim) return std::nullopt;
  Dims shape;
  std::int64_t elements = 1;
  for (const Value& item : tuple->items) {
    const auto* extent = item.as<std::int64_t>();
    if (extent == nullptr || *extent <= 0) return std::nullopt;
    if (__builtin_mul_overflow(elements, *extent, &elements)) return std::nullopt;
    shape.push_back(*extent);
  }
  return shape;
}

/// Returns the strides, in elements, of an array in which the first dimension varies fastest.
Dims fortran_strides(const Dims& shape) {
  Dims strides;
  std::int64_t step = 1;
  for (const std::int64_t extent : shape) {
    strides.push_back(step);
    step *= extent;
  }
  return strides;
}

/// Puts the elements into row-major order. False if their number does not match the shape.
bool make_row_major(const Dims& shape, Bytes& elements) {
  const auto count = static_cast<std::size_t>(volume(shape));
  if (elements.empty() || elements.size() % count != 0) return false;
  Bytes turned(elements.size());
  copy_strided({elements.data(), fortran_strides(shape)},
               {turned.data(), contiguous_strides(shape)}, shape, elements.size() / count);
  elements = std::move(turned);
  return true;
}

/// Rewrites a call `_frombuffer(buffer, dtype, shape, order)` as a call of `_reconstruct`.
void settle_buffer(Object& object) {
  if (!is(object, "numpy._core.numeric", "_frombuffer") || object.args.size() != 4) return;
  Value* buffer = &object.args[0];
  if (auto* array = buffer->as<Object>()) {  // only a bytearray is accepted, not other objects
    if (!is(*array, "builtins", "bytearray") || array->args.size() != 1) return;
    buffer = &array->args[0];
  }
  const auto* order = object.args[3].as<std::string>();
  if (buffer->as<Bytes>() == nullptr || order == nullptr) return;
  Value state = Tuple{
      {1, std::move(object.args[2]), std::move(object.args[1]), *order == "F", std::move(*buffer)}};
  object = Object{{"numpy._core.multiarray", "_reconstruct"},
                  Object::How::kCall,
                  {Name{"numpy", "ndarray"}, Tuple{{0}}, to_bytes("b")},
                  {std::move(state)}};
}

}  // namespace

std::string settled_numpy_module(std::string module) {
  constexpr std::string_view kOld = "numpy.core.";
  if (module.starts_with(kOld)) module.replace(0, kOld.size(), "numpy._core.");
  return module;
}

void settle_numpy_array(Object& object) {
  settle_buffer(object);
  if (!is(object, "numpy._core.multiarray", "_reconstruct") || object.state.size() != 1) return;
  auto* state = object.state[0].as<Tuple>();
  if (state == nullptr || state->items.size() != kStateParts) return;
  auto* fortran = state->items[3].as<bool>();
  if (fortran == nullptr || !*fortran) return;
  if (auto* elements = state->items[4].as<Bytes>()) {
    const auto shape = shape_of(state->items[1]);
    if (!shape || !make_row_major(*shape, *elements)) return;
  } else if (state->items[4].as<List>() == nullptr) {  // a list of Python objects is row-major
    return;
  }
  *fortran = false;
}

}  // namespace reprise
