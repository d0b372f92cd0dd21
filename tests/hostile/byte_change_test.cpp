// Tries every one-byte change and every truncation of files that torch wrote: a small `.metadata`
// in its checkpoint, a tensor item and a bytes item. Each changed file must either be refused or
// load with the same content.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "core/checkpoint/checksum_tally.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tensor_item.hpp"
#include "tests/contracts/sanitized.hpp"
#include "tests/hostile/damage_effect.hpp"
#include "tests/hostile/memory_tree.hpp"

namespace reprise::test {
namespace {

/// Only one in this many possible changes is tried. Without a sanitizer, all changes are tried.
constexpr std::size_t kOneIn = REPRISE_SANITIZED != 0 ? 64 : 1;

MemoryTree fixture(const std::string& name) {
  return MemoryTree::of_directory(std::string(REPRISE_TEST_DATA) + "/torch_2.15.0/" + name);
}

struct Tally {
  std::size_t refused = 0;
  std::size_t same = 0;
  std::vector<std::string> changed;  ///< "offset: old value -> new value"
  /// One entry for each change that caused an error in our own code: the change, in the format of
  /// `changed`, and the error.
  std::vector<std::string> mistakes;

  std::size_t all() const { return refused + same + changed.size() + mistakes.size(); }
};

/// Judges changed bytes. Must be thread-safe, because two threads call it at the same time.
using Trial = std::function<DamageEffect(const Bytes&)>;

void try_part(const Bytes& whole, std::size_t first, std::size_t step, const Trial& trial,
              Tally& tally) {
  Bytes changed = whole;
  for (std::size_t i = first; i < whole.size() * 255; i += step) {
    std::byte& target = changed[i / 255];
    const std::byte was = target;
    target ^= static_cast<std::byte>(i % 255 + 1);
    const std::string change = std::to_string(i / 255) + ": " +
                               std::to_string(static_cast<unsigned>(was)) + " -> " +
                               std::to_string(static_cast<unsigned>(target));
    try {
      const DamageEffect effect = trial(changed);
      if (effect == DamageEffect::kRefused) ++tally.refused;
      if (effect == DamageEffect::kSame) ++tally.same;
      if (effect == DamageEffect::kChanged) tally.changed.push_back(change);
    } catch (const std::exception& mistake) {
      tally.mistakes.push_back(change + ": " + mistake.what());
    }
    target = was;
  }
}

/// Tries every possible change of a single byte of `whole`. Each thread uses a separate trial.
Tally change_bytes(const Bytes& whole, const std::function<Trial()>& make_trial,
                   std::size_t one_in = kOneIn) {
  std::array<Tally, 2> tallies;
  std::vector<std::thread> threads;
  for (std::size_t part = 0; part < tallies.size(); ++part) {
    threads.emplace_back([&, part] {
      try_part(whole, part * one_in, tallies.size() * one_in, make_trial(), tallies[part]);
    });
  }
  for (auto& thread : threads) thread.join();
  Tally all = tallies[0];
  all.refused += tallies[1].refused;
  all.same += tallies[1].same;
  all.changed.insert(all.changed.end(), tallies[1].changed.begin(), tallies[1].changed.end());
  all.mistakes.insert(all.mistakes.end(), tallies[1].mistakes.begin(), tallies[1].mistakes.end());
  return all;
}

/// Truncates the bytes to every shorter length. Returns the lengths at which they were accepted.
std::vector<std::size_t> truncations_accepted(const Bytes& whole, const Trial& trial) {
  std::vector<std::size_t> accepted;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    if (trial(cut) != DamageEffect::kRefused) accepted.push_back(length);
  }
  return accepted;
}

void expect_nothing_gets_past(const std::string& what, const Tally& tally) {
  std::cout << what << ": " << tally.all() << " changes, " << tally.refused << " refused, "
            << tally.same << " change nothing that is loaded, " << tally.changed.size()
            << " load something else\n";
  EXPECT_EQ(tally.changed, std::vector<std::string>());
  EXPECT_EQ(tally.mistakes, std::vector<std::string>());
  EXPECT_GT(tally.refused, tally.all() / 4);
}

// --- .metadata in its checkpoint ---------------------------------------------------------------

/// Returns true if the catalogs are equal in everything that determines which bytes a load reads.
bool same_catalog(const Catalog& a, const Catalog& b) {
  const auto same_tensor = [](const StoredTensor& x, const StoredTensor& y) {
    return x.key == y.key && x.dtype == y.dtype && x.shape == y.shape && x.chunks == y.chunks &&
           x.original_shape == y.original_shape;
  };
  const auto same_object = [](const StoredObject& x, const StoredObject& y) {
    return x.key == y.key && x.file == y.file && x.range.offset == y.range.offset &&
           x.range.size == y.range.size;
  };
  return a.files == b.files && std::ranges::equal(a.tensors, b.tensors, same_tensor) &&
         std::ranges::equal(a.objects, b.objects, same_object);
}

class MetadataTrial {
 public:
  MetadataTrial(MemoryTree tree, std::string file, const Judge& judge)
      : tree_(std::move(tree)), file_(std::move(file)), judge_(judge), catalog_(read().catalog) {}

  /// Runs the judge only if the changed bytes give a catalog that differs from the original one.
  DamageEffect of(const Bytes& changed) {
    tree_.files[file_] = changed;
    try {
      if (same_catalog(read().catalog, catalog_)) return DamageEffect::kSame;
    } catch (const Error&) {
      return DamageEffect::kRefused;
    }
    return judge_.of(tree_);
  }

 private:
  Metadata read() {
    const MetadataFiles files = read_metadata_files(tree_, "");
    const std::vector<ByteSpan> spans(files.contents.begin(), files.contents.end());
    return read_metadata(spans, files.names);
  }

  MemoryTree tree_;
  std::string file_;
  const Judge& judge_;
  Catalog catalog_;
};

void check_metadata(const std::string& name, const std::string& file, std::size_t one_in) {
  MemoryTree tree = fixture(name);
  const Judge judge(tree, "");
  const Bytes whole = tree.files.at(file);
  const auto make_trial = [&]() -> Trial {
    auto trial = std::make_shared<MetadataTrial>(tree, file, judge);
    return [trial](const Bytes& changed) { return trial->of(changed); };
  };
  expect_nothing_gets_past(name + "/" + file, change_bytes(whole, make_trial, one_in));
  EXPECT_EQ(truncations_accepted(whole, make_trial()), std::vector<std::size_t>());
}

TEST(ByteChange, of_the_metadata_of_a_checkpoint_of_one_rank) {
  check_metadata("file_per_item", ".metadata", kOneIn);
}

TEST(ByteChange, of_the_metadata_of_one_of_two_ranks_that_share_a_tensor) {
  check_metadata("nocollectives", "__0.metadata", 4 * kOneIn + 1);
}

// --- items alone -------------------------------------------------------------------------------

/// Returns the elements of the item; nothing if a checksum is wrong, or if the tensor has another
/// type or shape than expected.
std::optional<Bytes> elements_in(const Bytes& item) {
  SpanSource source(item);
  ChecksumTally tally;
  tally.add(source, "item");
  if (tally.mismatches() != 0) return std::nullopt;
  const TensorItem read = read_tensor_item(source);
  if (read.dtype != DType::kFloat32 || !(read.size == Dims{3, 3})) return std::nullopt;
  Bytes elements(read.element_bytes());
  const Dims dense{3, 1};
  copy_strided({item.data() + read.data_offset +
                    static_cast<std::uint64_t>(read.storage_offset) * size_of(read.dtype),
                read.strides},
               {elements.data(), dense}, read.size, size_of(read.dtype));
  if (read.byteswap) std::ranges::reverse(elements);
  if (read.flips.any()) flip_signs(read.dtype, elements, read.flips);
  return elements;
}

/// Returns the value of an item; nothing if a checksum is wrong.
std::optional<Value> value_in(const Bytes& item) {
  const BytesItem read = read_bytes_item(item);
  if (!read.checksum_mismatches.empty()) return std::nullopt;
  return read.value;  // nothing if the value was read as opaque, since no job can load it then
}

/// Returns a trial that tells whether a changed item is refused, accepted with its old content, or
/// accepted with other content.
template <class Read>
Trial item_trial(const Bytes& whole, Read read) {
  const auto original = read(whole);
  EXPECT_TRUE(original.has_value());
  return [original, read](const Bytes& changed) {
    try {
      const auto content = read(changed);
      if (!content) return DamageEffect::kRefused;
      return *content == *original ? DamageEffect::kSame : DamageEffect::kChanged;
    } catch (const Error&) {
      return DamageEffect::kRefused;
    }
  };
}

TEST(ByteChange, of_a_tensor_item) {
  const Bytes whole = fixture("file_per_item").files.at("__0_0.distcp");
  Trial trial = item_trial(whole, elements_in);
  expect_nothing_gets_past("a tensor item", change_bytes(whole, [&] { return trial; }));
  EXPECT_EQ(truncations_accepted(whole, trial), std::vector<std::size_t>());
}

TEST(ByteChange, of_a_bytes_item) {
  const Bytes whole = fixture("file_per_item").files.at("__0_2.distcp");
  Trial trial = item_trial(whole, value_in);
  expect_nothing_gets_past("a bytes item", change_bytes(whole, [&] { return trial; }));
  EXPECT_EQ(truncations_accepted(whole, trial), std::vector<std::size_t>());
}

}  // namespace
}  // namespace reprise::test
