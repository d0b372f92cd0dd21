#include "reprise/state.hpp"

#include <algorithm>
#include <memory>

#include "core/adapters/posix/host_device.hpp"
#include "core/api/calls.hpp"
#include "core/c/handles.hpp"
#include "core/c/last_error.hpp"
#include "core/c/tensors.hpp"

namespace reprise::c {
namespace {

/// Returns as many numbers of a caller's as the tensor has dimensions.
Numbers numbers_of(const std::int64_t* numbers, const rp_tensor& tensor, const char* what) {
  if (tensor.ndim < 0) throw Error(Code::kUsage, "ndim: it is negative", {.key = tensor.key});
  if (tensor.ndim != 0) require(numbers, what);
  return {numbers, static_cast<std::size_t>(tensor.ndim)};
}

GivenTensor given_tensor(const rp_tensor& tensor) {
  GivenTensor given{.key = required(tensor.key, "key"),
                    .dtype = tensor.dtype,
                    .replica = tensor.replica,
                    .shape = numbers_of(tensor.shape, tensor, "shape"),
                    .parts = {}};
  // The parts stand side by side at the size that the caller knows.
  const auto* at = reinterpret_cast<const std::byte*>(tensor.parts);
  if (tensor.part_count != 0) require(at, "parts");
  for (std::size_t i = 0; i < tensor.part_count; ++i) {
    const auto* next = reinterpret_cast<const rp_part*>(at);
    const rp_part part = taken(next, "part");
    given.parts.push_back({.memory = part.memory,
                           .data = part.data,
                           .offset = numbers_of(part.offset, tensor, "offset"),
                           .extent = numbers_of(part.extent, tensor, "extent"),
                           .strides = part.strides != nullptr
                                          ? numbers_of(part.strides, tensor, "strides")
                                          : Numbers()});
    at += next->struct_size;
  }
  return given;
}

Bytes bytes_of(const void* bytes, std::size_t size) {
  if (size != 0) require(bytes, "bytes");
  const auto* first = static_cast<const std::byte*>(bytes);
  return {first, first + size};
}

/// A buffer of a caller's. Either pointer may be null if its count is 0.
Packed packed_of(const std::int64_t* words, std::size_t word_count, const char* texts,
                 std::size_t text_bytes) {
  if (word_count != 0) require(words, "words");
  if (text_bytes != 0) require(texts, "texts");
  return {{words, word_count}, {texts, text_bytes}};
}

}  // namespace
}  // namespace reprise::c

std::int32_t rp_state_new(rp_state** state) {
  using namespace reprise;
  return c::guarded([&] {
    c::require(state, "state");
    *state = nullptr;
    auto made = std::make_unique<rp_state>();
    made->state.common() = NoneType{};
    *state = made.release();
  });
}

void rp_state_free(rp_state* state) { reprise::c::free_own(state); }

std::int32_t rp_dtype(const char* name, std::int32_t* dtype) {
  using namespace reprise;
  return c::guarded([&] {
    c::require(dtype, "dtype");
    const auto all = all_dtypes();
    const auto found = dtype_named(c::required(name, "name"));
    if (!found) throw Error(Code::kUnsupported, std::string("no type of elements: ") + name);
    *dtype = static_cast<std::int32_t>(std::ranges::find(all, *found) - all.begin());
  });
}

std::int32_t rp_state_add(rp_state* state, const rp_tensor* tensor) {
  using namespace reprise::c;
  return guarded([&] { add(own(state, "state").state, given_tensor(taken(tensor, "tensor"))); });
}

std::int32_t rp_state_add_packed(rp_state* state, const std::int64_t* words, size_t word_count,
                                 const char* keys, size_t key_bytes) {
  using namespace reprise::c;
  return guarded([&] {
    add_tensors(own(state, "state").state, packed_of(words, word_count, keys, key_bytes));
  });
}

std::int32_t rp_state_set_paths(rp_state* state, const std::int64_t* words, size_t word_count,
                                const char* texts, size_t text_bytes) {
  using namespace reprise::c;
  return guarded([&] {
    set_paths(own(state, "state").state, packed_of(words, word_count, texts, text_bytes));
  });
}

std::int32_t rp_state_add_bytes(rp_state* state, const char* key, const void* bytes, size_t size,
                                std::int32_t replica) {
  using namespace reprise;
  return c::guarded([&] {
    c::own(state, "state")
        .state.add_bytes(c::required(key, "key"), c::bytes_of(bytes, size), replica);
  });
}

std::int32_t rp_state_allow_other_shape(rp_state* state, const char* key) {
  using namespace reprise::c;
  return guarded([&] { own(state, "state").state.allow_other_shape(required(key, "key")); });
}

std::int32_t rp_state_set_common(rp_state* state, const void* bytes, size_t size) {
  using namespace reprise::c;
  return guarded([&] { own(state, "state").state.common() = bytes_of(bytes, size); });
}

std::int32_t rp_state_common(const rp_state* state, const void** bytes, size_t* size) {
  using namespace reprise;
  return c::guarded([&] {
    c::require(bytes, "bytes");
    c::require(size, "size");
    const Bytes* found = c::own(state, "state").state.common().as<Bytes>();
    *bytes = found != nullptr && !found->empty() ? found->data() : nullptr;
    *size = found != nullptr ? found->size() : 0;
  });
}

std::int32_t rp_state_bytes(const rp_state* state, const char* key, const void** bytes,
                            size_t* size) {
  using namespace reprise;
  return c::guarded([&] {
    c::require(bytes, "bytes");
    c::require(size, "size");
    const Bytes& found = c::own(state, "state").state.bytes(c::required(key, "key"));
    *bytes = found.data();
    *size = found.size();
  });
}

std::int32_t rp_state_digests(rp_job* job, const rp_state* state, void* stream,
                              std::uint64_t* digests, size_t count) {
  using namespace reprise;
  return c::guarded([&] {
    if (count != 0) c::require(digests, "digests");
    HostDevice host("host", 0);
    Device& device = job != nullptr ? c::own(job, "job").job.ports().device : host;
    const State& held = c::own(state, "state").state;
    device.use_stream(stream);
    digest(held, device, {digests, count});
  });
}
