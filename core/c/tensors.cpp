#include "core/c/tensors.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/c/structs.hpp"
#include "core/geometry/folded_shape.hpp"
#include "reprise/c.h"

namespace reprise::c {
namespace {

/// A tensor with too many dimensions keeps this many as they are.
constexpr std::size_t kBeforeFold = kMaxNdim - 1;

MemoryKind memory_of(std::int64_t number) {
  if (number == RP_DEVICE) return MemoryKind::kDevice;
  if (number == RP_HOST) return MemoryKind::kHost;
  refuse(Code::kUsage, "memory: " + std::to_string(number) + " is no kind of memory");
}

DType dtype_of_number(std::int64_t number) {
  const auto all = all_dtypes();
  if (number < 0 || static_cast<std::size_t>(number) >= all.size()) {
    refuse(Code::kUsage, "dtype: " + std::to_string(number) + " is no type of elements");
  }
  return all[static_cast<std::size_t>(number)];
}

std::int32_t replica_of(std::int64_t number) {
  if (number < RP_ANY_COPY || number > std::numeric_limits<std::int32_t>::max()) {
    refuse(Code::kUsage, "replica: " + std::to_string(number) + " is no number of a copy");
  }
  return static_cast<std::int32_t>(number);
}

/// Returns the extents that a state knows: the last ones as one, if there are too many.
Dims folded(Numbers extents) {
  if (extents.size() <= kMaxNdim) return Dims(extents);
  const auto last = checked_volume(extents.subspan(kBeforeFold));
  if (!last) refuse(Code::kUsage, "the extents " + shape_text(extents) + " are impossible");
  Dims dims(extents.first(kBeforeFold));
  dims.push_back(*last);
  return dims;
}

TensorPart part_of(const GivenPart& given, Numbers shape) {
  const auto fits = [&](Numbers numbers) { return numbers.size() == shape.size(); };
  if (!fits(given.offset) || !fits(given.extent) ||
      !(given.strides.empty() || fits(given.strides))) {
    refuse(Code::kUsage, "a part has another number of dimensions than the tensor");
  }
  TensorPart part;
  part.memory = memory_of(given.memory);
  part.data = given.data;
  if (shape.size() <= kMaxNdim) {
    part.offset = Dims(given.offset);
    part.extent = Dims(given.extent);
    part.strides = Dims(given.strides);
    return part;
  }
  const Numbers rest = shape.subspan(kBeforeFold);
  if (!std::ranges::equal(given.extent.subspan(kBeforeFold), rest) ||
      std::ranges::any_of(given.offset.subspan(kBeforeFold), [](auto at) { return at != 0; })) {
    refuse(Code::kUnsupported,
           "a part is cut along a dimension after the " + std::to_string(kBeforeFold) + "th");
  }
  part.offset = Dims(given.offset.first(kBeforeFold));
  part.offset.push_back(0);
  part.extent = folded(given.extent);
  if (!given.strides.empty()) {
    part.strides = Dims(given.strides.first(kBeforeFold));
    const auto stride = folded_stride(rest, given.strides.subspan(kBeforeFold));
    if (!stride) {
      refuse(Code::kUnsupported,
             "the dimensions from the " + std::to_string(kMaxNdim) +
                 "th on do not lie together in memory; make the tensor contiguous");
    }
    part.strides.push_back(*stride);
  }
  return part;
}

/// Takes words and texts off the front of a buffer.
class Reader {
 public:
  explicit Reader(Packed packed) : rest_(packed) {}

  bool done() const { return rest_.words.empty(); }
  /// Throws USAGE if texts are left.
  void end() const {
    if (!rest_.texts.empty()) fail("has bytes left that no word counts");
  }

  std::int64_t word() { return words(1)[0]; }

  Numbers words(std::int64_t count) {
    if (count < 0 || static_cast<std::size_t>(count) > rest_.words.size()) {
      fail("ends within an entry");
    }
    const Numbers taken = rest_.words.first(static_cast<std::size_t>(count));
    rest_.words = rest_.words.subspan(taken.size());
    return taken;
  }

  std::string text() {
    const std::int64_t bytes = word();
    if (bytes < 0 || static_cast<std::size_t>(bytes) > rest_.texts.size()) {
      fail("counts more bytes of texts than there are");
    }
    std::string taken(rest_.texts.substr(0, static_cast<std::size_t>(bytes)));
    rest_.texts.remove_prefix(taken.size());
    return taken;
  }

  /// A number of entries, each of which takes at least a word.
  std::size_t count() {
    const std::int64_t count = word();
    if (count < 0 || static_cast<std::size_t>(count) > rest_.words.size()) {
      fail("has an impossible count");
    }
    return static_cast<std::size_t>(count);
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    refuse(Code::kUsage, std::string("the packed buffer ") + what);
  }

  Packed rest_;
};

GivenPart given_part(Reader& reader, std::int64_t ndim) {
  GivenPart part;
  part.memory = reader.word();
  const bool strided = reader.word() != 0;
  part.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(reader.word()));
  part.offset = reader.words(ndim);
  part.extent = reader.words(ndim);
  if (strided) part.strides = reader.words(ndim);
  return part;
}

}  // namespace

void add(State& state, const GivenTensor& tensor) {
  try {
    std::vector<TensorPart> parts;
    parts.reserve(tensor.parts.size());
    for (const GivenPart& part : tensor.parts) parts.push_back(part_of(part, tensor.shape));
    state.add(tensor.key, dtype_of_number(tensor.dtype), folded(tensor.shape), parts,
              replica_of(tensor.replica));
    if (tensor.shape.size() <= kMaxNdim) return;
    const Numbers last = tensor.shape.subspan(kBeforeFold);
    state.set_folded(tensor.key, {last.begin(), last.end()});
  } catch (const Error& error) {
    throw error.within({.key = tensor.key});
  }
}

void add_tensors(State& state, Packed packed) {
  Reader reader(packed);
  GivenTensor tensor;
  while (!reader.done()) {
    tensor.key = reader.text();
    tensor.dtype = reader.word();
    tensor.replica = reader.word();
    const std::int64_t ndim = reader.word();
    const std::size_t count = reader.count();
    tensor.shape = reader.words(ndim);
    tensor.parts.clear();
    for (std::size_t i = 0; i < count; ++i) tensor.parts.push_back(given_part(reader, ndim));
    add(state, tensor);
  }
  reader.end();
}

void set_paths(State& state, Packed packed) {
  Reader reader(packed);
  while (!reader.done()) {
    const std::string key = reader.text();
    KeyPath path(reader.count());
    for (PathStep& step : path) {
      const bool position = reader.word() != 0;
      step = position ? PathStep(reader.word()) : PathStep(reader.text());
    }
    state.set_path(key, std::move(path));
  }
  reader.end();
}

}  // namespace reprise::c
