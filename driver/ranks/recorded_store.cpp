#include "driver/ranks/recorded_store.hpp"

#include <exception>
#include <utility>

namespace reprise::driver {
namespace {

/// Records a call from here to the end of the scope.
class Call {
 public:
  Call(const RecordedStore::Seat& seat, std::string_view operation, std::string path,
       std::uint64_t bytes = 0)
      : seat_(seat),
        operation_(operation),
        path_(std::move(path)),
        bytes_(bytes),
        begin_ns_(seat.recorder.now_ns()) {}
  ~Call() {
    const bool failed = std::uncaught_exceptions() > exceptions_;
    seat_.recorder.store(seat_.rank, {operation_, path_, bytes_, begin_ns_, failed});
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  const RecordedStore::Seat& seat_;
  std::string_view operation_;
  std::string path_;
  std::uint64_t bytes_;
  std::uint64_t begin_ns_;
  int exceptions_ = std::uncaught_exceptions();
};

class RecordedReadFile final : public ReadFile {
 public:
  RecordedReadFile(RecordedStore::Seat seat, std::unique_ptr<ReadFile> file, std::string path)
      : seat_(seat), file_(std::move(file)), path_(std::move(path)) {}

  std::uint64_t size() const override { return file_->size(); }
  std::optional<reprise::Entry> entry() const override { return file_->entry(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    const Call call(seat_, "read", path_, out.size());
    file_->read_at(offset, out);
  }
  void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts) override {
    std::uint64_t bytes = 0;
    for (const auto& part : parts) bytes += part.size();
    const Call call(seat_, "read", path_, bytes);
    file_->read_parts(offset, parts);
  }

 private:
  RecordedStore::Seat seat_;
  std::unique_ptr<ReadFile> file_;
  std::string path_;
};

class RecordedWriteFile final : public WriteFile {
 public:
  RecordedWriteFile(RecordedStore::Seat seat, std::unique_ptr<WriteFile> file, std::string path)
      : seat_(seat), file_(std::move(file)), path_(std::move(path)) {}

  void write_at(std::uint64_t offset, ByteSpan bytes) override {
    const Call call(seat_, "write", path_, bytes.size());
    file_->write_at(offset, bytes);
  }
  void sync() override {
    const Call call(seat_, "sync", path_);
    file_->sync();
  }
  void close() override {
    const Call call(seat_, "close", path_);
    file_->close();
  }

 private:
  RecordedStore::Seat seat_;
  std::unique_ptr<WriteFile> file_;
  std::string path_;
};

}  // namespace

std::unique_ptr<ReadFile> RecordedStore::open(const std::string& path) {
  const Call call(seat_, "open", path);
  return std::make_unique<RecordedReadFile>(seat_, inner().open(path), path);
}

std::unique_ptr<WriteFile> RecordedStore::create(const std::string& path) {
  const Call call(seat_, "create", path);
  return std::make_unique<RecordedWriteFile>(seat_, inner().create(path), path);
}

std::optional<reprise::Entry> RecordedStore::stat(const std::string& path) {
  const Call call(seat_, "stat", path);
  return inner().stat(path);
}

std::vector<reprise::Entry> RecordedStore::list(const std::string& directory) {
  const Call call(seat_, "list", directory);
  return inner().list(directory);
}

void RecordedStore::make_directory(const std::string& path) {
  const Call call(seat_, "make_directory", path);
  inner().make_directory(path);
}

void RecordedStore::publish(const NameChange& change) {
  const Call call(seat_, "rename", change.staged + " -> " + change.name);
  inner().publish(change);
}

void RecordedStore::replace(const NameChange& change) {
  const Call call(seat_, "exchange", change.staged + " <-> " + change.name);
  inner().replace(change);
}

void RecordedStore::put_aside(const NameChange& change) {
  const Call call(seat_, "rename", change.name + " -> " + change.staged);
  inner().put_aside(change);
}

void RecordedStore::remove(const std::string& path) {
  const Call call(seat_, "remove", path);
  inner().remove(path);
}

bool RecordedStore::remove_empty(const std::string& directory) {
  const Call call(seat_, "remove_empty", directory);
  return inner().remove_empty(directory);
}

void RecordedStore::sync_directory(const std::string& directory) {
  const Call call(seat_, "sync_directory", directory);
  inner().sync_directory(directory);
}

std::unique_ptr<StoreLock> RecordedStore::lock(const std::string& path) {
  const Call call(seat_, "lock", path);
  return inner().lock(path);
}

}  // namespace reprise::driver
