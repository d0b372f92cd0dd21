#pragma once
// Files in memory that count the reads of each byte and fail on request.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/base/check.hpp"
#include "reprise/error.hpp"
#include "reprise/store.hpp"

namespace reprise::test {

/// Supports only files, which is enough for the engine's readers and writers of payload.
class MemoryStore final : public Store {
 public:
  struct File {
    Bytes content;
    std::vector<int> times_read;  ///< per byte
    bool synced = false;
    bool closed = false;
  };

  /// Index of the write or sync that fails with NO_SPACE, counted from 0 over all files.
  std::optional<int> failing_call;
  std::map<std::string, std::shared_ptr<File>> files;
  /// Returns the number of writes and syncs so far.
  int calls() const { return calls_; }

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    return std::make_unique<Reader>(files.at(path));
  }
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    files[path] = std::make_shared<File>();
    return std::make_unique<Writer>(*this, files[path]);
  }
  std::optional<Entry> stat(const std::string&) override { return std::nullopt; }
  std::vector<Entry> list(const std::string&) override { return {}; }
  void make_directory(const std::string&) override {}
  void publish(const NameChange&) override {}
  void replace(const NameChange&) override {}
  void put_aside(const NameChange&) override {}
  void remove(const std::string&) override {}
  void sync_directory(const std::string&) override {}
  std::unique_ptr<StoreLock> lock(const std::string&) override { return nullptr; }
  std::string display(const std::string& path) const override { return path; }

 private:
  class Reader final : public ReadFile {
   public:
    explicit Reader(std::shared_ptr<File> file) : file_(std::move(file)) {
      file_->times_read.resize(file_->content.size());
    }
    std::uint64_t size() const override { return file_->content.size(); }
    void read_at(std::uint64_t offset, MutableByteSpan out) override {
      CHECK((ByteRange{offset, out.size()}.fits(size())), offset, out.size());
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = file_->content[offset + i];
        ++file_->times_read[offset + i];
      }
    }

   private:
    std::shared_ptr<File> file_;
  };

  class Writer final : public WriteFile {
   public:
    Writer(MemoryStore& store, std::shared_ptr<File> file)
        : store_(store), file_(std::move(file)) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      store_.count_call();
      CHECK(!file_->closed);
      file_->content.resize(std::max<std::size_t>(file_->content.size(), offset + bytes.size()));
      std::copy(bytes.begin(), bytes.end(),
                file_->content.begin() + static_cast<std::ptrdiff_t>(offset));
      file_->synced = false;
    }
    void sync() override {
      store_.count_call();
      file_->synced = true;
    }
    void close() override { file_->closed = true; }

   private:
    MemoryStore& store_;
    std::shared_ptr<File> file_;
  };

  void count_call() {
    if (calls_++ == failing_call) throw Error(Code::kNoSpace, "no space left");
  }

  int calls_ = 0;
};

}  // namespace reprise::test
