#include "core/ports/observed_ports.hpp"

namespace reprise {

class ObservedStore::File final : public ReadFile, public WriteFile {
 public:
  File(ObservedStore& store, std::string path, std::unique_ptr<ReadFile> read,
       std::unique_ptr<WriteFile> write)
      : store_(store), path_(std::move(path)), read_(std::move(read)), write_(std::move(write)) {}

  std::uint64_t size() const override { return read_->size(); }
  std::optional<Entry> entry() const override { return read_->entry(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    around_read(offset, {&out, 1}, [&] { read_->read_at(offset, out); });
  }
  void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts) override {
    around_read(offset, parts, [&] { read_->read_parts(offset, parts); });
  }

  void write_at(std::uint64_t offset, ByteSpan bytes) override {
    store_.around({.operation = "write",
                   .path = path_,
                   .changes = true,
                   .offset = offset,
                   .bytes = bytes.size(),
                   .from = bytes},
                  [&] { write_->write_at(offset, bytes); });
  }
  void sync() override {
    store_.around({"sync", path_, true}, [&] { write_->sync(); });
  }
  void close() override {
    store_.around({"close", path_, true}, [&] { write_->close(); });
  }

 private:
  void around_read(std::uint64_t offset, std::span<const MutableByteSpan> into, const Rest& rest) {
    std::uint64_t bytes = 0;
    for (const auto& part : into) bytes += part.size();
    store_.around(
        {.operation = "read", .path = path_, .offset = offset, .bytes = bytes, .into = into}, rest);
  }

  ObservedStore& store_;
  std::string path_;
  std::unique_ptr<ReadFile> read_;    ///< null if the file is written
  std::unique_ptr<WriteFile> write_;  ///< null if the file is read
};

std::unique_ptr<ReadFile> ObservedStore::open(const std::string& path) {
  std::unique_ptr<ReadFile> file;
  around({"open", path}, [&] { file = inner().open(path); });
  return std::make_unique<File>(*this, path, std::move(file), nullptr);
}

std::unique_ptr<WriteFile> ObservedStore::create(const std::string& path) {
  std::unique_ptr<WriteFile> file;
  around({"create", path, true}, [&] { file = inner().create(path); });
  return std::make_unique<File>(*this, path, nullptr, std::move(file));
}

std::optional<Entry> ObservedStore::stat(const std::string& path) {
  std::optional<Entry> entry;
  around({"stat", path}, [&] { entry = inner().stat(path); });
  return entry;
}

std::vector<Entry> ObservedStore::list(const std::string& directory) {
  std::vector<Entry> entries;
  around({"list", directory}, [&] { entries = inner().list(directory); });
  return entries;
}

void ObservedStore::make_directory(const std::string& path) {
  around({"make_directory", path, true}, [&] { inner().make_directory(path); });
}

void ObservedStore::publish(const NameChange& change) {
  const std::string names = change.staged + " -> " + change.name;
  around({"rename", names, true}, [&] { inner().publish(change); });
}

void ObservedStore::replace(const NameChange& change) {
  const std::string names = change.staged + " <-> " + change.name;
  around({"exchange", names, true}, [&] { inner().replace(change); });
}

void ObservedStore::put_aside(const NameChange& change) {
  const std::string names = change.name + " -> " + change.staged;
  around({"rename", names, true}, [&] { inner().put_aside(change); });
}

void ObservedStore::remove(const std::string& path) {
  around({"remove", path, true}, [&] { inner().remove(path); });
}

bool ObservedStore::remove_empty(const std::string& directory) {
  bool removed = false;
  around({"remove_empty", directory, true}, [&] { removed = inner().remove_empty(directory); });
  return removed;
}

void ObservedStore::sync_directory(const std::string& directory) {
  around({"sync_directory", directory, true}, [&] { inner().sync_directory(directory); });
}

std::unique_ptr<StoreLock> ObservedStore::lock(const std::string& path) {
  std::unique_ptr<StoreLock> held;
  around({"lock", path, true}, [&] { held = inner().lock(path); });
  return held;
}

std::optional<std::string> ObservedStore::lock_holder(const std::string& path) {
  std::optional<std::string> holder;
  around({"lock_holder", path}, [&] { holder = inner().lock_holder(path); });
  return holder;
}

void ObservedCommunicator::barrier() {
  around({"barrier"}, [&] {
    inner_->barrier();
    return Brought{};
  });
}

std::vector<Bytes> ObservedCommunicator::all_gather(ByteSpan mine) {
  std::vector<Bytes> parts;
  around({"all_gather", mine.size()}, [&] {
    parts = inner_->all_gather(mine);
    Brought brought;
    for (const auto& part : parts) brought.bytes += part.size();
    return brought;
  });
  return parts;
}

const std::byte* ObservedCommunicator::all_gather_on_device(std::uint64_t share, ByteSpan mine) {
  const std::byte* there = nullptr;
  around({"all_gather_on_device", mine.size()}, [&]() -> Brought {
    there = inner_->all_gather_on_device(share, mine);
    if (there == nullptr) return {};
    return {.on_device = {there, share * static_cast<std::uint64_t>(group().size())}};
  });
  return there;
}

Bytes ObservedCommunicator::broadcast(GroupRank root, ByteSpan bytes) {
  Bytes got;
  around({"broadcast", rank() == root ? bytes.size() : 0}, [&] {
    got = inner_->broadcast(root, bytes);
    return Brought{.bytes = got.size()};
  });
  return got;
}

std::vector<std::int64_t> ObservedCommunicator::all_reduce(Reduce how,
                                                           std::span<const std::int64_t> mine) {
  std::vector<std::int64_t> reduced;
  around({"all_reduce", mine.size_bytes()}, [&] {
    reduced = inner_->all_reduce(how, mine);
    return Brought{};
  });
  return reduced;
}

}  // namespace reprise
