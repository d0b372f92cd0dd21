// Flips each single bit of a committed checkpoint of 64 KiB, 524,288 bits in all.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <set>
#include <string_view>
#include <thread>

#include "core/base/hash.hpp"
#include "tests/contracts/sanitized.hpp"
#include "tests/hostile/damage_effect.hpp"
#include "tests/hostile/small_checkpoint.hpp"

namespace reprise::test {
namespace {

/// Tries only one of every N bit flips. N is `elements` for flips in tensor elements, and `others`
/// for all other flips. If N is 1, every flip is tried.
struct OneIn {
  std::uint64_t elements = 1;
  std::uint64_t others = 1;
};

/// Returns both numbers, multiplied by the environment variable REPRISE_FLIPS_ONE_IN. If the
/// variable is not set, the factor is 256 under a sanitizer and 1 otherwise.
OneIn one_in(OneIn usual) {
  const char* told = std::getenv("REPRISE_FLIPS_ONE_IN");
  const std::uint64_t number = told != nullptr ? std::strtoull(told, nullptr, 10) : 0;
  const std::uint64_t factor = number != 0 ? number : REPRISE_SANITIZED != 0 ? 256 : 1;
  return {usual.elements * factor, usual.others * factor};
}

struct Counts {
  std::uint64_t refused = 0;
  std::uint64_t same = 0;
  std::uint64_t changed = 0;

  std::uint64_t all() const { return refused + same + changed; }
  void add(DamageEffect effect) {
    if (effect == DamageEffect::kRefused) ++refused;
    if (effect == DamageEffect::kSame) ++same;
    if (effect == DamageEffect::kChanged) ++changed;
  }
  void add(const Counts& more) {
    refused += more.refused;
    same += more.same;
    changed += more.changed;
  }
};

/// Maps each file and region to the counts of its flips.
using Table = std::map<std::pair<std::string, std::string>, Counts>;

/// Flips bits in its own copy of the tree. Bits are numbered consecutively through all files.
class Flipper {
 public:
  Flipper(MemoryTree tree, const Judge& judge, bool manifest, OneIn one_in)
      : tree_(std::move(tree)),
        judge_(judge),
        manifest_(manifest),
        one_in_(one_in),
        regions_(regions_of(tree_, kSmallCheckpoint)) {}

  /// Flips the selected bits of [begin, end), one at a time.
  void flip(std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t bit = begin; bit < end; ++bit) flip_one(bit);
  }
  const Table& table() const { return table_; }

 private:
  void flip_one(std::uint64_t bit) {
    std::uint64_t byte = bit / 8;
    auto file = tree_.files.begin();
    for (; byte >= file->second.size(); ++file) byte -= file->second.size();
    const std::string_view name = region(file->first, byte);
    const std::uint64_t rate = name == "elements" ? one_in_.elements : one_in_.others;
    if (mix64(bit) % rate != 0) return;
    std::byte& target = file->second[byte];
    const auto mask = static_cast<std::byte>(1U << (bit % 8));
    target ^= mask;
    table_[{file->first.substr(file->first.rfind('/') + 1), std::string(name)}].add(
        effect(file->first));
    target ^= mask;
  }

  /// Checks a changed payload file against the manifest first, because this check is cheap. Runs
  /// all of verify if the manifest check accepts the file, or if the file is not a payload file.
  DamageEffect effect(const std::string& file) const {
    const bool payload = file.ends_with(".distcp");
    if (manifest_ && payload && judge_.refused_by_manifest(tree_)) return DamageEffect::kRefused;
    return judge_.of(tree_);
  }

  std::string_view region(const std::string& file, std::uint64_t byte) const {
    const auto& regions = regions_.at(file);
    return std::ranges::upper_bound(regions, byte, {}, &Region::end)->name;
  }

  mutable MemoryTree tree_;
  const Judge& judge_;
  bool manifest_;
  OneIn one_in_;
  std::map<std::string, std::vector<Region>> regions_;
  Table table_;
};

Table flip_all(MemoryTree tree, bool manifest, OneIn one_in) {
  const Judge judge(tree, kSmallCheckpoint);
  const std::uint64_t bits = 8 * tree.bytes();
  constexpr std::uint64_t kParts = 2;
  std::vector<Flipper> flippers;
  for (std::uint64_t p = 0; p < kParts; ++p) flippers.emplace_back(tree, judge, manifest, one_in);
  std::vector<std::thread> threads;
  for (std::uint64_t p = 0; p < kParts; ++p) {
    threads.emplace_back([&, p] {
      constexpr std::uint64_t kSlice = 4096;  // small, to balance the load between threads
      for (std::uint64_t at = p * kSlice; at < bits; at += kParts * kSlice) {
        flippers[p].flip(at, std::min(at + kSlice, bits));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  Table table;
  for (const Flipper& flipper : flippers) {
    for (const auto& [place, counts] : flipper.table()) table[place].add(counts);
  }
  return table;
}

Counts total_of(const Table& table) {
  Counts total;
  for (const auto& [place, counts] : table) total.add(counts);
  return total;
}

void print(const std::string& title, const Table& table) {
  std::cout << title << '\n';
  const auto row = [](const std::string& file, const std::string& region, const Counts& counts) {
    std::cout << "  " << std::left << std::setw(34) << file << std::setw(28) << region << std::right
              << std::setw(8) << counts.all() << std::setw(9) << counts.refused << std::setw(9)
              << counts.same << std::setw(9) << counts.changed << '\n';
  };
  std::cout << "  " << std::left << std::setw(34) << "file" << std::setw(28) << "region"
            << std::right << "    bits detected harmless  CHANGED\n";
  for (const auto& [place, counts] : table) row(place.first, place.second, counts);
  row("together", "", total_of(table));
}

TEST(BitFlip, with_the_manifest_each_flip_is_detected_or_harmless) {
  const MemoryTree tree = small_checkpoint(Checksums::kCrc32AndSha256);
  ASSERT_EQ(tree.bytes(), kSmallCheckpointBytes);
  const OneIn rate = one_in({});
  const std::clock_t begin = std::clock();
  const Table table = flip_all(tree, true, rate);
  std::cout << static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC << " s of CPU\n";
  print("with checksums and the manifest", table);
  const Counts total = total_of(table);
  if (rate.elements == 1) {
    EXPECT_EQ(total.all(), 8 * kSmallCheckpointBytes);
  }
  EXPECT_GT(total.all(), 0U);
  EXPECT_EQ(total.changed, 0U);
}

/// Returns the rows of the table in which at least one flip changed the loaded content. Each row is
/// returned as "file: region"; all payload files are called "payload".
std::vector<std::string> places_changed(const Table& table) {
  std::set<std::string> places;
  for (const auto& [place, counts] : table) {
    const bool payload = place.first.ends_with(".distcp");
    if (counts.changed != 0)
      places.insert((payload ? "payload" : place.first) + ": " + place.second);
  }
  return {places.begin(), places.end()};
}

TEST(BitFlip, with_checksums_only_no_flip_changes_a_load_silently) {
  const Table table = flip_all(small_checkpoint(Checksums::kCrc32), false, one_in({64, 8}));
  print("with checksums, without the manifest", table);
  EXPECT_EQ(places_changed(table), std::vector<std::string>());
}

TEST(BitFlip, without_checksums_only_flips_of_contents_are_loaded) {
  const OneIn rate = one_in({64, 8});
  const Table table = flip_all(without_checksums(small_checkpoint(Checksums::kCrc32)), false, rate);
  print("without checksums and manifest", table);
  const std::vector<std::string> all = {"common.pt: data.pkl", "payload: data.pkl",
                                        "payload: elements"};
  const auto found = places_changed(table);
  EXPECT_TRUE(std::ranges::includes(all, found)) << testing::PrintToString(found);
  EXPECT_TRUE(std::ranges::binary_search(found, all.back()));
  if (rate.others == 8) {  // if fewer flips are tried, some small regions may get none
    EXPECT_EQ(found, all);
  }
}

}  // namespace
}  // namespace reprise::test
