#include "core/format/pickle/numpy_array.hpp"

#include <algorithm>
#include <charconv>
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
void normalize_buffer(Object& object) {
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

/// The code of an element type of numpy: a letter and a number of bytes, or of characters.
struct ElementCode {
  char kind = 0;
  std::uint64_t bytes = 0;
};
std::optional<ElementCode> element_code(const Value& dtype) {
  constexpr std::size_t kLongest = 10;
  constexpr std::uint64_t kCharacterBytes = 4;
  const auto* object = dtype.as<Object>();
  if (object == nullptr || !is(*object, "numpy", "dtype") || object->args.empty()) {
    return std::nullopt;
  }
  const auto* code = object->args[0].as<std::string>();
  if (code == nullptr || code->size() < 2 || code->size() > kLongest) return std::nullopt;
  ElementCode found{.kind = (*code)[0]};
  const char* end = code->data() + code->size();
  const auto [last, error] = std::from_chars(code->data() + 1, end, found.bytes);
  if (error != std::errc{} || last != end) return std::nullopt;
  if (found.kind == 'U') found.bytes *= kCharacterBytes;
  return found;
}

/// True if numpy can make this array: its elements fill its shape.
bool array_fits(const Tuple& state) {
  const auto code = element_code(state.items[2]);
  const auto* shape = state.items[1].as<Tuple>();
  if (!code || shape == nullptr) return true;
  if (state.items[4].as<List>() != nullptr) return code->kind == 'O' || code->kind == 'V';
  const auto* elements = state.items[4].as<Bytes>();
  if (elements == nullptr) return false;
  std::uint64_t bytes = code->bytes;
  for (const Value& extent : shape->items) {
    const auto* count = extent.as<std::int64_t>();
    if (count == nullptr) return true;
    if (*count < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(*count), &bytes)) {
      return false;
    }
  }
  return code->kind != 'O' && bytes == elements->size();
}

}  // namespace

bool numpy_accepts(const Object& object) {
  if (is(object, "numpy._core.multiarray", "scalar") && object.args.size() == 2) {
    const auto code = element_code(object.args[0]);
    const auto* bytes = object.args[1].as<Bytes>();
    if (!code || code->kind == 'O') return !code || bytes == nullptr;
    return bytes != nullptr && bytes->size() >= code->bytes;
  }
  if (!is(object, "numpy._core.multiarray", "_reconstruct") || object.state.size() != 1)
    return true;
  const auto* state = object.state[0].as<Tuple>();
  return state == nullptr || state->items.size() != kStateParts || array_fits(*state);
}

std::string normal_numpy_module(std::string module) {
  constexpr std::string_view kOld = "numpy.core.";
  if (module.starts_with(kOld)) module.replace(0, kOld.size(), "numpy._core.");
  return module;
}

void normalize_numpy_array(Object& object) {
  normalize_buffer(object);
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
