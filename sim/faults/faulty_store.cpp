#include "sim/faults/faulty_store.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/checkpoint/generations.hpp"
#include "core/checkpoint/stored_tracker.hpp"
#include "core/ports/store_path.hpp"
#include "reprise/error.hpp"
#include "sim/faults/checkpoint_file.hpp"

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
  std::optional<Entry> entry() const override { return inner_->entry(); }
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

/// Returns the path of the same file in the newest checkpoint. For a tracker that is being written,
/// returns the one in place.
std::string path_of_older(Store& store, const std::string& path) {
  const std::string directory = parent_path(path);
  if (kind_of_file(path) == FileKind::kTracker)
    return join_path(directory, std::string(kTrackerFile));
  const std::string name = path.substr(directory.size() + 1);
  std::string older;
  for (const auto& one : generations(store, parent_path(directory))) {
    const std::string file = join_path(one.directory, name);
    if (one.committed && store.stat(file)) older = file;
  }
  return older;
}

/// Returns the bytes that an older checkpoint's file has at `range`; zeros beyond its end.
Bytes older_bytes(Store& store, const std::string& path, const ByteRange& range) {
  const std::string older = path_of_older(store, path);
  if (older.empty()) {
    throw Error(Code::kUsage, "a stale write has the bytes of an older checkpoint; there is none",
                {.file = store.display(path)});
  }
  Bytes bytes(range.size);
  const auto file = store.open(older);
  if (range.offset >= file->size()) return bytes;
  const auto there = std::min(range.size, file->size() - range.offset);
  file->read_at(range.offset, MutableByteSpan(bytes).first(there));
  return bytes;
}

/// A file with the content that it had before the newest save.
class StaleFile final : public ReadFile {
 public:
  explicit StaleFile(Bytes content) : content_(std::move(content)) {}

  std::uint64_t size() const override { return content_.size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    CHECK(offset + out.size() <= content_.size(), offset, out.size());
    std::copy_n(content_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

 private:
  Bytes content_;
};

class FaultyWriteFile final : public WriteFile {
 public:
  FaultyWriteFile(FaultSeat& seat, Store& store, std::unique_ptr<WriteFile> inner, std::string path)
      : seat_(seat), store_(store), inner_(std::move(inner)), path_(std::move(path)) {}

  void write_at(std::uint64_t offset, ByteSpan bytes) override {
    const PortCall call{CallKind::kWrite, "write", path_};
    const FaultSpec* fault = seat_.strikes(call);
    if (fault == nullptr) return inner_->write_at(offset, bytes);
    if (const auto wrong = wrong_bytes(*fault, offset, bytes)) {
      return inner_->write_at(offset, *wrong);
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
  /// Returns what a store writes that takes all bytes and stores others; nothing if the fault does
  /// not do that.
  std::optional<Bytes> wrong_bytes(const FaultSpec& fault, std::uint64_t offset, ByteSpan bytes) {
    switch (fault.kind) {
      case FaultKind::kFlipWrite: {
        Bytes wrong(bytes.begin(), bytes.end());
        flip(wrong, fault.bit);
        return wrong;
      }
      case FaultKind::kZeroWrite:
        return Bytes(bytes.size());
      case FaultKind::kStaleWrite:
        return older_bytes(store_, path_, {offset, bytes.size()});
      default:
        return std::nullopt;
    }
  }

  /// Makes the written half durable. This is the worst case that a file system permits: even after
  /// a power cut, a reader finds that half and nothing else.
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

// The fault strikes when the rank opens or stats the tracker. All other ranks still see the new
// checkpoint.
void FaultyStore::look(std::string_view what, const std::string& path) {
  const bool tracker = kind_of_file(path) == FileKind::kTracker;
  const FaultSpec* fault =
      seat_.strikes({tracker ? CallKind::kLookAtTracker : CallKind::kOther, what, path});
  if (fault == nullptr || !tracker || !inner().stat(path)) return;
  const std::string root = parent_path(path);
  const auto newest = tracked_step(inner(), root);
  std::optional<Generation> before;
  for (const auto& one : generations(inner(), root)) {
    if (one.committed && newest && one.step < *newest) before = one;
  }
  if (!before) {
    throw Error(
        Code::kUsage,
        "a stale tracker names the committed checkpoint before the newest, and there is none",
        {.file = inner().display(path)});
  }
  const std::scoped_lock lock(mutex_);
  tracker_ = path;
  stale_ = write_tracker({before->step});
  if (fault->kind == FaultKind::kStaleStore) hidden_ = join_path(root, directory_of({newest}));
}

bool FaultyStore::hides(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  return !hidden_.empty() && (path == hidden_ || path.starts_with(hidden_ + "/"));
}

std::optional<Bytes> FaultyStore::stale_content(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  if (tracker_.empty() || path != tracker_) return std::nullopt;
  return stale_;
}

std::unique_ptr<ReadFile> FaultyStore::open(const std::string& path) {
  look("open", path);
  if (hides(path)) throw Error(Code::kNotFound, "not there yet", {.file = inner().display(path)});
  if (auto stale = stale_content(path)) return std::make_unique<StaleFile>(std::move(*stale));
  return std::make_unique<FaultyReadFile>(seat_, inner().open(path), path);
}

std::unique_ptr<WriteFile> FaultyStore::create(const std::string& path) {
  touch("create", path);
  return std::make_unique<FaultyWriteFile>(seat_, inner(), inner().create(path), path);
}

std::optional<Entry> FaultyStore::stat(const std::string& path) {
  look("stat", path);
  if (hides(path)) return std::nullopt;
  return inner().stat(path);
}

std::vector<Entry> FaultyStore::list(const std::string& directory) {
  touch("list", directory);
  auto entries = inner().list(directory);
  std::erase_if(entries,
                [&](const Entry& entry) { return hides(join_path(directory, entry.name)); });
  return entries;
}

void FaultyStore::make_directory(const std::string& path) {
  touch("make_directory", path);
  inner().make_directory(path);
}

bool FaultyStore::moves(const PortCall& call, const NameChange& change) {
  const FaultSpec* fault = seat_.strikes(call);
  if (fault == nullptr) return true;
  if (fault->kind == FaultKind::kLostRename) return false;
  if (fault->kind == FaultKind::kLeaseLost) {
    seat_.take_lease(change.name);
    return true;
  }
  const std::scoped_lock lock(mutex_);
  lying_.insert(parent_path(change.staged));
  lying_.insert(parent_path(change.name));
  return true;
}

void FaultyStore::publish(const NameChange& change) {
  const PortCall call{CallKind::kRename, "rename", change.name};
  if (moves(call, change)) inner().publish(change);
}

void FaultyStore::replace(const NameChange& change) {
  const PortCall call{CallKind::kRename, "exchange", change.name};
  if (moves(call, change)) inner().replace(change);
}

void FaultyStore::put_aside(const NameChange& change) {
  const PortCall call{CallKind::kRename, "rename", change.staged};
  if (moves(call, change)) inner().put_aside(change);
}

void FaultyStore::remove(const std::string& path) {
  touch("remove", path);
  inner().remove(path);
}

bool FaultyStore::remove_empty(const std::string& directory) {
  touch("remove", directory);
  return inner().remove_empty(directory);
}

std::unique_ptr<StoreLock> FaultyStore::lock(const std::string& path) {
  const FaultSpec* fault = seat_.strikes({CallKind::kLock, "lock", path});
  auto lock = inner().lock(path);
  if (fault != nullptr && fault->kind == FaultKind::kOtherWriter) seat_.let_other_write(path);
  return lock;
}

bool FaultyStore::lies(const std::string& directory) {
  const std::scoped_lock lock(mutex_);
  return lying_.contains(directory);
}

void FaultyStore::sync_directory(const std::string& directory) {
  const PortCall call{CallKind::kSyncDirectory, "directory sync", directory};
  if (seat_.strikes(call) != nullptr) seat_.fail(Code::kIo, call);
  if (!lies(directory)) inner().sync_directory(directory);
}

}  // namespace reprise::sim
