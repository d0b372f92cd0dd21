#include "sim/world/rank_store.hpp"

#include <utility>

#include "core/base/hash.hpp"

namespace reprise::sim {
namespace {

class RankReadFile final : public ReadFile {
 public:
  RankReadFile(RankLife& life, std::unique_ptr<ReadFile> file, std::string path)
      : life_(life), file_(std::move(file)), path_(std::move(path)) {}

  std::uint64_t size() const override { return file_->size(); }
  std::optional<Entry> entry() const override { return file_->entry(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    life_.step_in_store("read", path_, {offset, out.size()}, out.size());
    file_->read_at(offset, out);
  }

 private:
  RankLife& life_;
  std::unique_ptr<ReadFile> file_;
  std::string path_;
};

class RankWriteFile final : public WriteFile {
 public:
  RankWriteFile(RankLife& life, std::unique_ptr<WriteFile> file, std::string path)
      : life_(life), file_(std::move(file)), path_(std::move(path)) {}

  void write_at(std::uint64_t offset, ByteSpan bytes) override {
    life_.step_in_store("write", path_, {offset, bytes.size(), hash_of(bytes)}, bytes.size());
    file_->write_at(offset, bytes);
  }
  void sync() override {
    life_.step_in_store("sync", path_);
    file_->sync();
  }
  void close() override {
    life_.step_in_store("close", path_);
    file_->close();
  }

 private:
  RankLife& life_;
  std::unique_ptr<WriteFile> file_;
  std::string path_;
};

}  // namespace

std::unique_ptr<ReadFile> RankStore::open(const std::string& path) {
  life_.step_in_store("open", path);
  return std::make_unique<RankReadFile>(life_, store_.open(path), path);
}

std::unique_ptr<WriteFile> RankStore::create(const std::string& path) {
  life_.step_in_store("create", path);
  return std::make_unique<RankWriteFile>(life_, store_.create(path), path);
}

std::optional<Entry> RankStore::stat(const std::string& path) {
  life_.step_in_store("stat", path);
  return store_.stat(path);
}

std::vector<Entry> RankStore::list(const std::string& directory) {
  life_.step_in_store("list", directory);
  return store_.list(directory);
}

void RankStore::make_directory(const std::string& path) {
  life_.step_in_store("make_directory", path);
  store_.make_directory(path);
}

void RankStore::publish(const NameChange& change) {
  life_.step_in_store("rename", change.staged + " -> " + change.name);
  store_.publish(change);
}

void RankStore::replace(const NameChange& change) {
  life_.step_in_store("exchange", change.staged + " <-> " + change.name);
  store_.replace(change);
}

void RankStore::put_aside(const NameChange& change) {
  life_.step_in_store("rename", change.name + " -> " + change.staged);
  store_.put_aside(change);
}

void RankStore::remove(const std::string& path) {
  life_.step_in_store("remove", path);
  store_.remove(path);
}

bool RankStore::remove_empty(const std::string& directory) {
  life_.step_in_store("remove_empty", directory);
  return store_.remove_empty(directory);
}

std::unique_ptr<StoreLock> RankStore::lock(const std::string& path) {
  life_.step_in_store("lock", path);
  return store_.lock(path);
}

void RankStore::sync_directory(const std::string& directory) {
  life_.step_in_store("sync_directory", directory);
  store_.sync_directory(directory);
}

}  // namespace reprise::sim
