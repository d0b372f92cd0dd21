#include "sim/faults/faulty_store.hpp"

#include <utility>

namespace reprise::sim {
namespace {

void flip(MutableByteSpan bytes, std::uint64_t bit) {
  if (bytes.empty()) return;
  bytes[(bit / 8) % bytes.size()] ^= static_cast<std::byte>(1U << (bit % 8));
}

class FaultyReadFile final : public ReadFile {
 public:
  FaultyReadFile(FaultSeat& seat, std::unique_ptr<ReadFile> inner, std::string path)
      : seat_(seat), inner_(std::move(inner)), path_(std::move(path)) {}

  std::uint64_t size() const override { return inner_->size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    const FaultSpec* fault = before();
    inner_->read_at(offset, out);
    if (fault != nullptr && fault->kind == FaultKind::kFlipRead) flip(out, fault->bit);
  }
  void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts) override {
    const FaultSpec* fault = before();
    inner_->read_parts(offset, parts);
    if (fault != nullptr && fault->kind == FaultKind::kFlipRead && !parts.empty()) {
      flip(parts[(fault->bit / 8) % parts.size()], fault->bit);
    }
  }

 private:
  const FaultSpec* before() {
    const PortCall call{CallKind::kRead, "read", path_};
    const FaultSpec* fault = seat_.strikes(call);
    if (fault != nullptr && fault->kind == FaultKind::kReadError) seat_.fail(Code::kIo, call);
    return fault;
  }

  FaultSeat& seat_;
  std::unique_ptr<ReadFile> inner_;
  std::string path_;
};

class FaultyWriteFile final : public WriteFile {
 public:
  FaultyWriteFile(FaultSeat& seat, Store& store, std::unique_ptr<WriteFile> inner, std::string path)
      : seat_(seat), store_(store), inner_(std::move(inner)), path_(std::move(path)) {}

  void write_at(std::uint64_t offset, ByteSpan bytes) override {
    const PortCall call{CallKind::kWrite, "write", path_};
    const FaultSpec* fault = seat_.strikes(call);
    if (fault == nullptr) return inner_->write_at(offset, bytes);
    if (fault->kind == FaultKind::kFlipWrite) {
      Bytes wrong(bytes.begin(), bytes.end());
      flip(wrong, fault->bit);
      return inner_->write_at(offset, wrong);
    }
    inner_->write_at(offset, bytes.first(bytes.size() / 2));
    if (fault->kind == FaultKind::kTornWrite) tear();
    if (fault->kind == FaultKind::kNoSpace) seat_.fail(Code::kNoSpace, call);
    if (fault->kind == FaultKind::kWriteError) seat_.fail(Code::kIo, call);
  }

  void sync() override {
    const PortCall call{CallKind::kSync, "sync", path_};
    const FaultSpec* fault = seat_.strikes(call);
    if (fault == nullptr) return inner_->sync();
    if (fault->kind == FaultKind::kSyncError) seat_.fail(Code::kIo, call);
  }

  void close() override {
    seat_.strikes({CallKind::kOther, "close", path_});
    inner_->close();
  }

 private:
  /// The half that was written is what a reader will find, even after a power cut: the worst that a
  /// file system may do.
  [[noreturn]] void tear() {
    inner_->sync();
    store_.sync_directory(parent_path(path_));
    seat_.die();
  }

  FaultSeat& seat_;
  Store& store_;
  std::unique_ptr<WriteFile> inner_;
  std::string path_;
};

}  // namespace

std::unique_ptr<ReadFile> FaultyStore::open(const std::string& path) {
  touch("open", path);
  return std::make_unique<FaultyReadFile>(seat_, inner_.open(path), path);
}

std::unique_ptr<WriteFile> FaultyStore::create(const std::string& path) {
  touch("create", path);
  return std::make_unique<FaultyWriteFile>(seat_, inner_, inner_.create(path), path);
}

std::optional<Entry> FaultyStore::stat(const std::string& path) {
  touch("stat", path);
  return inner_.stat(path);
}

std::vector<Entry> FaultyStore::list(const std::string& directory) {
  touch("list", directory);
  return inner_.list(directory);
}

void FaultyStore::make_directory(const std::string& path) {
  touch("make_directory", path);
  inner_.make_directory(path);
}

bool FaultyStore::moves(const PortCall& call, const std::string& from) {
  const FaultSpec* fault = seat_.strikes(call);
  if (fault == nullptr) return true;
  if (fault->kind == FaultKind::kLostRename) return false;
  const std::scoped_lock lock(mutex_);
  lying_.insert(parent_path(from));
  lying_.insert(parent_path(std::string(call.path)));
  return true;
}

void FaultyStore::rename(const std::string& from, const std::string& to) {
  if (moves({CallKind::kRename, "rename", to}, from)) inner_.rename(from, to);
}

void FaultyStore::exchange(const std::string& a, const std::string& b) {
  if (moves({CallKind::kRename, "exchange", b}, a)) inner_.exchange(a, b);
}

void FaultyStore::remove(const std::string& path) {
  touch("remove", path);
  inner_.remove(path);
}

bool FaultyStore::lies(const std::string& directory) {
  const std::scoped_lock lock(mutex_);
  return lying_.contains(directory);
}

void FaultyStore::sync_directory(const std::string& directory) {
  const PortCall call{CallKind::kSyncDirectory, "directory sync", directory};
  if (seat_.strikes(call) != nullptr) seat_.fail(Code::kIo, call);
  if (!lies(directory)) inner_.sync_directory(directory);
}

}  // namespace reprise::sim
