#pragma once
// Tiny saves and loads of one rank on a real file system; the test sees each call.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/load.hpp"
#include "core/engine/save.hpp"
#include "core/ports/passing_store.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"

namespace reprise::test {

namespace fs = std::filesystem;
using contracts::code_of;
using contracts::error_of;
using contracts::run_ranks;
using contracts::TemporaryDirectory;

inline constexpr std::size_t kElements = 5;
inline const std::string kFirst = "run/iter_0000001";

/// One tensor and the common state; both show which content it is.
struct TinyState {
  explicit TinyState(std::int64_t content) : elements(kElements, content) {
    const auto size = static_cast<std::int64_t>(kElements);
    TensorLeaf leaf;
    leaf.key = "w";
    leaf.dtype = DType::kInt64;
    leaf.shape = {size};
    leaf.pieces = {contiguous_piece(Box::whole({size}))};
    leaf.data = reinterpret_cast<std::byte*>(elements.data());
    state.tensors.push_back(std::move(leaf));
    state.common = Dict{{"content", content}};
  }

  std::vector<std::int64_t> elements;
  StateDict state;
};

inline SaveSettings options_of(std::int64_t step, std::optional<std::int32_t> keep = {}) {
  SaveSettings options;
  options.target = CommitTarget::iteration("run", Step{step});
  options.target.keep = keep;
  return options;
}

/// A store with hooks before and after each call that changes names or creates a file.
class WatchedStore final : public PassingStore {
 public:
  using See = std::function<void(Store&, const std::string& call, const std::string& path)>;
  WatchedStore(Store& inner, See before, See after)
      : PassingStore(inner), before_(std::move(before)), after_(std::move(after)) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    tell(before_, "open", path);
    return PassingStore::open(path);
  }
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    tell(before_, "create", path);
    return std::make_unique<File>(*this, PassingStore::create(path), path);
  }
  void publish(const NameChange& change) override {
    tell(before_, "publish", change.name);
    PassingStore::publish(change);
    tell(after_, "publish", change.name);
  }
  void replace(const NameChange& change) override {
    tell(before_, "replace", change.name);
    PassingStore::replace(change);
    tell(after_, "replace", change.name);
  }
  void put_aside(const NameChange& change) override {
    tell(before_, "put_aside", change.staged);
    PassingStore::put_aside(change);
    tell(after_, "put_aside", change.staged);
  }
  void remove(const std::string& path) override {
    tell(before_, "remove", path);
    PassingStore::remove(path);
  }
  bool remove_empty(const std::string& directory) override {
    tell(before_, "remove_empty", directory);
    return PassingStore::remove_empty(directory);
  }
  void sync_directory(const std::string& directory) override {
    tell(before_, "sync_directory", directory);
    PassingStore::sync_directory(directory);
    tell(after_, "sync_directory", directory);
  }

 private:
  class File final : public WriteFile {
   public:
    File(WatchedStore& store, std::unique_ptr<WriteFile> file, std::string path)
        : store_(store), file_(std::move(file)), path_(std::move(path)) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      store_.tell(store_.before_, "write", path_);
      file_->write_at(offset, bytes);
    }
    void sync() override { file_->sync(); }
    void close() override { file_->close(); }

   private:
    WatchedStore& store_;
    std::unique_ptr<WriteFile> file_;
    std::string path_;
  };

  void tell(const See& see, const std::string& call, const std::string& path) {
    if (see) see(inner(), call, path);
  }

  See before_;
  See after_;
};

class OneWriter : public testing::Test {
 protected:
  /// Returns the log of the save's report.
  std::vector<std::string> save(std::int64_t content, const SaveSettings& options,
                                const WatchedStore::See& before = {},
                                const WatchedStore::See& after = {}) {
    std::vector<std::string> log;
    run_ranks(
        1, directory_.path(),
        [&](const Ports& ports) {
          TinyState tiny(content);
          auto group = ports.fabric.communicator(Group::world(1));
          log = Save::begin(ports, group, tiny.state, options).finish().log;
        },
        [&](Store& store, GlobalRank) {
          return std::make_unique<WatchedStore>(store, before, after);
        });
    return log;
  }

  /// Returns the content; -1 for a mixture.
  std::int64_t loaded(const std::string& path, const WatchedStore::See& before = {}) {
    std::int64_t content = -1;
    run_ranks(
        1, directory_.path(),
        [&](const Ports& ports) {
          TinyState tiny(-2);
          auto group = ports.fabric.communicator(Group::world(1));
          LoadSettings options;
          options.path = path;
          load(ports, *group, tiny.state, options);
          content = *tiny.state.common.find("content")->as<std::int64_t>();
          if (tiny.elements != std::vector<std::int64_t>(kElements, content)) content = -1;
        },
        [&](Store& store, GlobalRank) {
          return std::make_unique<WatchedStore>(store, before, WatchedStore::See{});
        });
    return content;
  }

  std::vector<std::string> names(const std::string& directory) {
    std::vector<std::string> found;
    for (const auto& entry : store_.list(directory)) found.push_back(entry.name);
    return found;
  }
  void put(const std::string& path, std::string_view text) {
    store_.make_directory(parent_path(path));
    write_durably(store_, path, as_bytes(text));
  }
  std::string get(const std::string& path) {
    return std::string(as_text(read_all(store_, path, 1000)));
  }

  TemporaryDirectory directory_;
  PosixStore store_{directory_.path()};
};

/// Flips a byte of a file.
inline void spoil(Store& store, const std::string& path) {
  Bytes content = read_all(store, path, 1U << 20U);
  content[content.size() / 2] ^= std::byte{1};
  write_durably(store, path, content);
}

}  // namespace reprise::test
