#pragma once
// A store and a communicator that make each call by way of one function, for whoever records,
// counts or disturbs the calls of a rank.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ports/passing_store.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

/// Files that it opens refer to this store, which must outlive them.
class ObservedStore : public PassingStore {
 public:
  using PassingStore::PassingStore;

  std::unique_ptr<ReadFile> open(const std::string& path) override;
  std::unique_ptr<WriteFile> create(const std::string& path) override;
  std::optional<Entry> stat(const std::string& path) override;
  std::vector<Entry> list(const std::string& directory) override;
  void make_directory(const std::string& path) override;
  void publish(const NameChange& change) override;
  void replace(const NameChange& change) override;
  void put_aside(const NameChange& change) override;
  void remove(const std::string& path) override;
  bool remove_empty(const std::string& directory) override;
  void sync_directory(const std::string& directory) override;
  std::unique_ptr<StoreLock> lock(const std::string& path) override;
  std::optional<std::string> lock_holder(const std::string& path) override;

  struct Call {
    std::string_view operation;                  ///< such as open, read, write, rename
    std::string_view path;                       ///< such as "A -> B" if names change
    bool changes = false;                        ///< true if the call may change what is stored
    std::uint64_t offset = 0;                    ///< of a read or a write
    std::uint64_t bytes = 0;                     ///< that are read or written
    ByteSpan from = {};                          ///< memory from which bytes are written
    std::span<const MutableByteSpan> into = {};  ///< memory into which bytes are read
  };
  using Rest = std::function<void()>;

 protected:
  /// Must call `rest`, which makes the call, or throw.
  virtual void around(const Call& call, const Rest& rest) = 0;

 private:
  class File;
};

class ObservedCommunicator : public Communicator {
 public:
  explicit ObservedCommunicator(std::shared_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  const Group& group() const override { return inner_->group(); }
  GroupRank rank() const override { return inner_->rank(); }
  void barrier() override;
  std::vector<Bytes> all_gather(ByteSpan mine) override;
  const std::byte* all_gather_on_device(std::uint64_t share, ByteSpan mine) override;
  Bytes broadcast(GroupRank root, ByteSpan bytes) override;
  std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override;
  void warn() override { inner_->warn(); }
  bool warned() override { return inner_->warned(); }

  struct Call {
    std::string_view operation;  ///< barrier, all_gather, all_gather_on_device, broadcast, ...
    std::uint64_t bytes = 0;     ///< that this rank sends
  };
  /// Says what a call has brought. A barrier and a reduction leave all of it 0 or empty.
  struct Brought {
    std::uint64_t bytes = 0;  ///< that were allocated for the result
    ByteSpan on_device = {};  ///< memory of the device that the result fills
  };
  using Rest = std::function<Brought()>;

 protected:
  /// Must call `rest`, which makes the call, or throw.
  virtual void around(const Call& call, const Rest& rest) = 0;

 private:
  std::shared_ptr<Communicator> inner_;
};

}  // namespace reprise
