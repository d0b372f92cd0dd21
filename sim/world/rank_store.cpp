#include "sim/world/rank_store.hpp"

#include <utility>

#include "core/base/hash.hpp"

namespace reprise::sim {
namespace {

class RankReadFile final : public ReadFile {
 public:
  RankReadFile(RankLife& life, Resource& reading, std::unique_ptr<ReadFile> file, std::string path)
      : life_(life), reading_(reading), file_(std::move(file)), path_(std::move(path)) {}

  std::uint64_t size() const override { return file_->size(); }
  std::optional<Entry> entry() const override { return file_->entry(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    life_.step_in_store(reading_, "read", path_, {offset, out.size()}, out.size());
    file_->read_at(offset, out);
  }
  /// One call, as on a real file system.
  void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts) override {
    std::uint64_t bytes = 0;
    for (const auto& part : parts) bytes += part.size();
    life_.step_in_store(reading_, "read", path_, {offset, bytes}, bytes);
    file_->read_parts(offset, parts);
  }

 private:
  RankLife& life_;
  Resource& reading_;
  std::unique_ptr<ReadFile> file_;
  std::string path_;
};

class RankWriteFile final : public WriteFile {
 public:
  RankWriteFile(RankLife& life, Resource& writing, std::unique_ptr<WriteFile> file,
                std::string path)
      : life_(life), writing_(writing), file_(std::move(file)), path_(std::move(path)) {}

  void write_at(std::uint64_t offset, ByteSpan bytes) override {
    life_.step_in_store(writing_, "write", path_, {offset, bytes.size(), hash_of(bytes)},
                        bytes.size());
    file_->write_at(offset, bytes);
  }
  void sync() override {
    life_.step_in_store(writing_, "sync", path_);
    file_->sync();
  }
  void close() override {
    life_.step_in_store(writing_, "close", path_);
    file_->close();
  }

 private:
  RankLife& life_;
  Resource& writing_;
  std::unique_ptr<WriteFile> file_;
  std::string path_;
};

}  // namespace

std::unique_ptr<ReadFile> RankStore::open(const std::string& path) {
  life_.step_in_store(resources_.read, "open", path);
  return std::make_unique<RankReadFile>(life_, resources_.read, store_.open(path), path);
}

std::unique_ptr<WriteFile> RankStore::create(const std::string& path) {
  life_.step_in_store(resources_.write, "create", path);
  return std::make_unique<RankWriteFile>(life_, resources_.write, store_.create(path), path);
}

std::optional<Entry> RankStore::stat(const std::string& path) {
  life_.step_in_store(resources_.read, "stat", path);
  return store_.stat(path);
}

std::vector<Entry> RankStore::list(const std::string& directory) {
  life_.step_in_store(resources_.read, "list", directory);
  return store_.list(directory);
}

void RankStore::make_directory(const std::string& path) {
  life_.step_in_store(resources_.write, "make_directory", path);
  store_.make_directory(path);
}

void RankStore::publish(const NameChange& change) {
  life_.step_in_store(resources_.write, "rename", change.staged + " -> " + change.name);
  store_.publish(change);
}

void RankStore::replace(const NameChange& change) {
  life_.step_in_store(resources_.write, "exchange", change.staged + " <-> " + change.name);
  store_.replace(change);
}

void RankStore::put_aside(const NameChange& change) {
  life_.step_in_store(resources_.write, "rename", change.name + " -> " + change.staged);
  store_.put_aside(change);
}

void RankStore::remove(const std::string& path) {
  life_.step_in_store(resources_.write, "remove", path);
  store_.remove(path);
}

bool RankStore::remove_empty(const std::string& directory) {
  life_.step_in_store(resources_.write, "remove_empty", directory);
  return store_.remove_empty(directory);
}

std::unique_ptr<StoreLock> RankStore::lock(const std::string& path) {
  life_.step_in_store(resources_.write, "lock", path);
  return store_.lock(path);
}

std::optional<std::string> RankStore::lock_holder(const std::string& path) {
  life_.step_in_store(resources_.read, "lock_holder", path);
  return store_.lock_holder(path);
}

void RankStore::sync_directory(const std::string& directory) {
  life_.step_in_store(resources_.write, "sync_directory", directory);
  store_.sync_directory(directory);
}

}  // namespace reprise::sim
