#include "core/c/packed.hpp"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "reprise/c.h"
#include "reprise/error.hpp"

namespace reprise::c {
namespace {

/// Takes words and texts off the front of a buffer.
class Reader {
 public:
  explicit Reader(Packed packed) : rest_(packed) {}

  bool done() const { return rest_.words.empty(); }
  /// Throws USAGE if texts are left.
  void end() const {
    if (!rest_.texts.empty()) refuse("has bytes left that no word counts");
  }

  std::int64_t word() { return words(1)[0]; }

  std::span<const std::int64_t> words(std::int64_t count) {
    if (count < 0 || static_cast<std::size_t>(count) > rest_.words.size()) {
      refuse("ends within an entry");
    }
    const auto taken = rest_.words.first(static_cast<std::size_t>(count));
    rest_.words = rest_.words.subspan(taken.size());
    return taken;
  }

  std::string text() {
    const std::int64_t bytes = word();
    if (bytes < 0 || static_cast<std::size_t>(bytes) > rest_.texts.size()) {
      refuse("counts more bytes of texts than there are");
    }
    std::string taken(rest_.texts.substr(0, static_cast<std::size_t>(bytes)));
    rest_.texts.remove_prefix(taken.size());
    return taken;
  }

  /// A number of entries, each of which takes at least a word.
  std::size_t count() {
    const std::int64_t count = word();
    if (count < 0 || static_cast<std::size_t>(count) > rest_.words.size()) {
      refuse("has an impossible count");
    }
    return static_cast<std::size_t>(count);
  }

  Dims dims(std::int64_t ndim) { return dims_of(words(ndim).data(), ndim); }

 private:
  [[noreturn]] static void refuse(const char* what) {
    throw Error(Code::kUsage, std::string("the packed buffer ") + what);
  }

  Packed rest_;
};

TensorPart part_of(Reader& reader, std::int64_t ndim) {
  TensorPart part;
  part.memory = memory_of(reader.word());
  const bool strided = reader.word() != 0;
  part.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(reader.word()));
  part.offset = reader.dims(ndim);
  part.extent = reader.dims(ndim);
  if (strided) part.strides = reader.dims(ndim);
  return part;
}

}  // namespace

Dims dims_of(const std::int64_t* numbers, std::int64_t count) {
  if (count < 0) throw Error(Code::kUsage, "a negative number of dimensions");
  if (static_cast<std::size_t>(count) > kMaxNdim) {
    throw Error(Code::kUnsupported, std::to_string(count) + " dimensions: a tensor may have " +
                                        std::to_string(kMaxNdim));
  }
  return Dims(std::span(numbers, static_cast<std::size_t>(count)));
}

MemoryKind memory_of(std::int64_t number) {
  if (number == RP_DEVICE) return MemoryKind::kDevice;
  if (number == RP_HOST) return MemoryKind::kHost;
  throw Error(Code::kUsage, "memory: " + std::to_string(number) + " is no kind of memory");
}

DType dtype_of_number(std::int64_t number) {
  const auto all = all_dtypes();
  if (number < 0 || static_cast<std::size_t>(number) >= all.size()) {
    throw Error(Code::kUsage, "dtype: " + std::to_string(number) + " is no type of elements");
  }
  return all[static_cast<std::size_t>(number)];
}

void add_tensors(State& state, Packed packed) {
  Reader reader(packed);
  std::vector<TensorPart> parts;
  while (!reader.done()) {
    const std::string key = reader.text();
    try {
      const DType dtype = dtype_of_number(reader.word());
      const auto replica = static_cast<std::int32_t>(reader.word());
      const std::int64_t ndim = reader.word();
      const std::size_t count = reader.count();
      const Dims shape = reader.dims(ndim);
      parts.clear();
      for (std::size_t i = 0; i < count; ++i) parts.push_back(part_of(reader, ndim));
      state.add(key, dtype, shape, parts, replica);
    } catch (const Error& error) {
      throw error.within({.key = key});
    }
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
