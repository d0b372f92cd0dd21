#pragma once
// Jobs and states of the C interface whose tensors are in the memory of a modelled device.

#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "reprise/c.h"
#include "tests/models/cuda/cuda_model.hpp"
#include "tests/models/cuda/vendor/cuda_runtime_api.h"

namespace reprise::models {

/// Frees what a handle stands for.
template <class Handle, void (*free)(Handle*)>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Owned() { free(handle_); }
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle* get() const { return handle_; }
  /// Returns the address for a call that makes a handle. Only once.
  Handle** out() { return &handle_; }

 private:
  Handle* handle_ = nullptr;
};
using Job = Owned<rp_job, rp_job_free>;
using State = Owned<rp_state, rp_state_free>;
using Saving = Owned<rp_save, rp_save_free>;
using Loading = Owned<rp_load, rp_load_free>;

/// Returns the error of the call, as its number and its text.
inline std::pair<std::int32_t, std::string> failure(std::int32_t status) {
  return {status, status == RP_OK ? "" : rp_last_error()->what};
}
inline auto Fails(std::int32_t code, const std::string& text) {
  return testing::Pair(code, testing::HasSubstr(text));
}
#define EXPECT_OK(call) EXPECT_EQ(failure(call), std::pair(std::int32_t{RP_OK}, std::string()))

using Bytes = std::vector<std::uint8_t>;

/// Memory of a device.
class Memory {
 public:
  explicit Memory(const Bytes& content, int device = 0) : bytes_(content.size()) {
    cudaSetDevice(device);
    void* made = nullptr;
    EXPECT_EQ(cudaMalloc(&made, bytes_), cudaSuccess);
    first_ = static_cast<std::uint8_t*>(made);
    EXPECT_EQ(cudaMemcpyAsync(first_, content.data(), bytes_, cudaMemcpyDefault, nullptr),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    cudaSetDevice(0);
  }
  ~Memory() { cudaFree(first_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::uint8_t* first() const { return first_; }
  /// Returns the content after all that was queued on the stream.
  Bytes read(cudaStream_t stream = nullptr) const {
    Bytes content(bytes_);
    cudaMemcpyAsync(content.data(), first_, bytes_, cudaMemcpyDefault, stream);
    cudaStreamSynchronize(stream);
    return content;
  }

 private:
  std::size_t bytes_;
  std::uint8_t* first_ = nullptr;
};

/// Returns the options of a job of this process alone. The file has the code for CUDA.
inline rp_job_options alone(const std::string& root, const char* file) {
  rp_job_options options = {};
  options.struct_size = sizeof options;
  options.root = root.c_str();
  options.cuda_library = file;
  return options;
}

/// A tensor of bytes. `turned` stores a matrix of two columns transposed.
struct Vector {
  std::string key;
  std::int64_t size;
  const std::uint8_t* data;
  std::int32_t memory = RP_DEVICE;
  bool turned = false;
};

inline State state_of(const std::vector<Vector>& vectors) {
  std::int32_t dtype = 0;
  EXPECT_OK(rp_dtype("uint8", &dtype));
  std::vector<std::int64_t> words;
  std::string keys;
  for (const Vector& one : vectors) {
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(one.data));
    const std::int64_t rows = one.size / 2;
    words.insert(words.end(), {static_cast<std::int64_t>(one.key.size()), dtype, RP_ANY_COPY, 2, 1,
                               rows, 2, one.memory, one.turned, address, 0, 0, rows, 2});
    if (one.turned) words.insert(words.end(), {1, rows});
    keys += one.key;
  }
  State state;
  EXPECT_OK(rp_state_new(state.out()));
  EXPECT_OK(rp_state_add_packed(state.get(), words.data(), words.size(), keys.data(), keys.size()));
  return state;
}

inline rp_save_options saved_as(std::int64_t step, void* stream = nullptr) {
  rp_save_options options = {};
  options.struct_size = sizeof options;
  options.directory = "run";
  options.has_step = 1;
  options.step = step;
  options.stream = stream;
  return options;
}

inline rp_load_options newest(void* stream = nullptr) {
  rp_load_options options = {};
  options.struct_size = sizeof options;
  options.directory = "run";
  options.verify_checksums = 1;
  options.stream = stream;
  return options;
}

inline Bytes numbers(std::size_t count, unsigned seed) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::uint8_t>((i + seed) * 7 + i / 251);
  }
  return bytes;
}

}  // namespace reprise::models
