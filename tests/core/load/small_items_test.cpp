// Tests how many reads a load takes for a small item.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tests/fixtures/one_writer.hpp"

namespace reprise::test {
namespace {

/// Counts the reads of payload files.
class CountingStore final : public PassingStore {
 public:
  CountingStore(Store& inner, int& reads) : PassingStore(inner), reads_(reads) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    auto file = PassingStore::open(path);
    if (!path.ends_with(".distcp")) return file;
    return std::make_unique<File>(std::move(file), reads_);
  }

 private:
  class File final : public ReadFile {
   public:
    File(std::unique_ptr<ReadFile> inner, int& reads) : inner_(std::move(inner)), reads_(reads) {}
    std::uint64_t size() const override { return inner_->size(); }
    void read_at(std::uint64_t offset, MutableByteSpan out) override {
      ++reads_;
      inner_->read_at(offset, out);
    }
    void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts) override {
      ++reads_;
      inner_->read_parts(offset, parts);
    }

   private:
    std::unique_ptr<ReadFile> inner_;
    int& reads_;
  };

  int& reads_;
};

TEST_F(OneWriter, a_small_item_is_read_at_once_into_its_own_memory) {
  save(7, options_of(1));
  int reads = 0;
  run_ranks(
      1, directory_.path(),
      [](const Ports& ports) {
        TinyState tiny(-2);
        const auto group = ports.fabric.communicator(Group::world(1));
        load(ports, *group, tiny.state, {.directory = "run"});
        EXPECT_EQ(tiny.elements, std::vector<std::int64_t>(kElements, 7));
      },
      [&](Store& store, GlobalRank) { return std::make_unique<CountingStore>(store, reads); });
  EXPECT_EQ(reads, 1);
}

}  // namespace
}  // namespace reprise::test
