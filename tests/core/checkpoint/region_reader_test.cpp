#include "core/checkpoint/region_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/adapters/posix/host_device.hpp"
#include "core/base/random.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/ports/passing_store.hpp"
#include "tests/fixtures/memory_store.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kItemOffset = 37;  // offset of the item in its file
constexpr std::uint64_t kDataOffset = 64;  // offset of the storage in the item

/// A chunk in a file of random bytes. Its strides, gaps and offset are arbitrary.
struct StoredView {
  StoredTensor tensor;
  TensorItem item;
  Bytes file;
};

/// Returns a number in [low, high].
std::int64_t between(Stream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

/// Returns strides for the dimensions in a random order, with gaps. No two elements have the same
/// position.
Dims random_strides(Stream& random, const Dims& extents, int gaps) {
  std::vector<std::size_t> order(extents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  Dims strides = Dims::filled(extents.size(), 0);
  std::int64_t step = 1 + between(random, 0, gaps);
  for (const std::size_t d : order) {
    strides[d] = step;
    step = step * extents[d] + between(random, 0, gaps);
  }
  return strides;
}

StoredView random_view(Stream& random) {
  constexpr DType kTypes[] = {DType::kInt8, DType::kBFloat16, DType::kFloat32, DType::kComplex64,
                              DType::kComplex128};
  StoredView view;
  view.tensor.key = "w";
  view.tensor.dtype = kTypes[random.below(5)];
  Dims extents;
  Box box;
  for (auto d = random.below(4); d > 0; --d) {
    extents.push_back(between(random, 1, 5));
    box.offset.push_back(between(random, 0, 3));
    view.tensor.shape.push_back(box.offset[box.offset.size() - 1] + extents[extents.size() - 1]);
  }
  box.extent = extents;
  const auto width = static_cast<std::int64_t>(size_of(view.tensor.dtype));
  view.item.dtype = view.tensor.dtype;
  view.item.size = extents;
  view.item.strides = random_strides(random, extents, random.below(2) == 0 ? 0 : 3);
  view.item.storage_offset = between(random, 0, 5);
  view.item.data_offset = kDataOffset;
  view.item.byteswap = random.below(4) == 0;
  std::int64_t last = view.item.storage_offset;
  for (std::size_t d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * view.item.strides[d];
  view.item.data_bytes = static_cast<std::uint64_t>((last + 1) * width);
  view.file.resize(kItemOffset + kDataOffset + view.item.data_bytes);
  for (auto& byte : view.file) byte = static_cast<std::byte>(random.next());
  view.tensor.chunks = {{.box = box, .file = 0, .range = {kItemOffset, 0}}};
  return view;
}

/// Computes the file offset of the chunk's element at the global `index` from the definition.
std::size_t place_of(const StoredView& view, const Dims& index) {
  const StoredChunk& chunk = view.tensor.chunks[0];
  std::int64_t element = view.item.storage_offset;
  for (std::size_t d = 0; d < index.size(); ++d) {
    element += (index[d] - chunk.box.offset[d]) * view.item.strides[d];
  }
  return kItemOffset + kDataOffset + static_cast<std::size_t>(element) * size_of(view.item.dtype);
}

/// Returns the element at `index` in the host's byte order.
Bytes element_at(const StoredView& view, const Dims& index) {
  const auto first = view.file.begin() + static_cast<std::ptrdiff_t>(place_of(view, index));
  const auto width = static_cast<std::ptrdiff_t>(size_of(view.item.dtype));
  Bytes element(first, first + width);
  if (!view.item.byteswap) return element;
  const bool complex =
      view.item.dtype == DType::kComplex64 || view.item.dtype == DType::kComplex128;
  std::reverse(element.begin(), complex ? element.begin() + width / 2 : element.end());
  if (complex) std::reverse(element.begin() + width / 2, element.end());
  return element;
}

/// A region to read, and a poisoned target buffer with different strides.
struct Wish {
  RegionTarget target;
  Bytes buffer;
};

constexpr std::byte kPoison{0xBD};

Wish random_wish(Stream& random, const StoredView& view) {
  const Box& box = view.tensor.chunks[0].box;
  Wish wish;
  Box& region = wish.target.region;
  for (std::size_t d = 0; d < box.ndim(); ++d) {
    const std::int64_t skipped = between(random, 0, box.extent[d] - 1);
    region.offset.push_back(box.offset[d] + skipped);
    region.extent.push_back(between(random, 1, box.extent[d] - skipped));
  }
  wish.target.target.strides = random_strides(random, region.extent, 2);
  std::int64_t span = 1;
  for (std::size_t d = 0; d < region.ndim(); ++d) {
    span += (region.extent[d] - 1) * wish.target.target.strides[d];
  }
  wish.buffer.assign(static_cast<std::size_t>(span) * size_of(view.item.dtype), kPoison);
  return wish;
}

/// Requires that the buffer has the right bits for each element of the region, and that the bytes
/// between the elements are still poisoned.
void expect_delivered(const StoredView& view, const Wish& wish) {
  Bytes expected(wish.buffer.size(), kPoison);
  const Box& region = wish.target.region;
  for (std::int64_t i = 0; i < region.elements(); ++i) {
    const Dims within = index_at(i, region.extent);
    Dims index = region.offset;
    std::int64_t local = 0;
    for (std::size_t d = 0; d < within.size(); ++d) {
      index[d] += within[d];
      local += within[d] * wish.target.target.strides[d];
    }
    const Bytes element = element_at(view, index);
    std::copy(element.begin(), element.end(),
              expected.begin() + local * static_cast<std::ptrdiff_t>(element.size()));
  }
  ASSERT_EQ(wish.buffer, expected)
      << region << " of " << view.tensor.chunks[0].box << " strides " << view.item.strides;
}

/// Returns a flag for each byte of the file: true if a wanted element contains the byte.
std::vector<bool> needed_bytes(const StoredView& view, const std::vector<Wish>& wishes) {
  std::vector<bool> needed(view.file.size());
  for (const Wish& wish : wishes) {
    const Box& region = wish.target.region;
    for (std::int64_t i = 0; i < region.elements(); ++i) {
      Dims index = index_at(i, region.extent);
      for (std::size_t d = 0; d < index.size(); ++d) index[d] += region.offset[d];
      const std::size_t first = place_of(view, index);
      for (std::size_t b = 0; b < size_of(view.item.dtype); ++b) needed[first + b] = true;
    }
  }
  return needed;
}

/// Memory that only the device can access, so that all data passes through staging.
class FarDevice final : public Device {
 public:
  std::string name() const override { return "far:0"; }
  DeviceEvent gather(std::span<const GatherCopy> copies) override { return near_.gather(copies); }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    return near_.scatter(copies);
  }
  void wait(DeviceEvent event) override { near_.wait(event); }

 private:
  HostDevice near_{"far", 0};
};

void read_and_judge(std::uint64_t seed, Device& device) {
  Stream random(seed);
  const StoredView view = random_view(random);
  test::MemoryStore store;
  store.files["f"] = std::make_shared<test::MemoryStore::File>();
  store.files["f"]->content = view.file;
  Metadata metadata;
  metadata.catalog.files = {"f"};
  Checkpoint checkpoint(store, {}, metadata);
  std::vector<Wish> wishes(1 + random.below(4));
  std::vector<RegionTarget> targets;
  for (Wish& wish : wishes) {
    wish = random_wish(random, view);
    wish.target.target.data = wish.buffer.data();
    targets.push_back(wish.target);
  }
  const std::size_t width = size_of(view.item.dtype);
  Bytes staging((1 + random.below(19)) * width + random.below(width));
  const std::uint64_t bytes_read = read_regions(checkpoint, view.tensor, view.tensor.chunks[0],
                                                view.item, targets, staging, device);
  for (const Wish& wish : wishes) expect_delivered(view, wish);
  const auto needed = needed_bytes(view, wishes);
  const auto& times_read = store.files["f"]->times_read;
  std::uint64_t read = 0;
  for (std::size_t at = 0; at < needed.size(); ++at) {
    ASSERT_GE(times_read[at], needed[at] ? 1 : 0) << "byte " << at;
    if (wishes.size() == 1) {  // gaps between several regions may be elements of others
      ASSERT_LE(times_read[at], 1) << "byte " << at;
    }
    read += static_cast<std::uint64_t>(times_read[at]);
  }
  EXPECT_EQ(bytes_read, read);
}

TEST(RegionReader, reads_what_is_needed_and_puts_it_in_its_place) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    HostDevice near("node", 0);
    FarDevice far;
    read_and_judge(seed, near);
    read_and_judge(seed, far);
    if (testing::Test::HasFailure()) return;
  }
}

/// A tensor whose only item is contiguous and all of the file "f".
struct OneItem {
  OneItem(DType dtype, const Dims& shape)
      : tensor{.key = "w", .dtype = dtype, .shape = shape},
        item{.dtype = dtype, .size = shape, .strides = contiguous_strides(shape)} {
    tensor.chunks = {{.box = Box::whole(shape), .file = 0, .range = {}}};
    store.files["f"] = std::make_shared<test::MemoryStore::File>();
  }
  Bytes& content() { return store.files["f"]->content; }
  /// Returns the checkpoint, as it is read through a store over `store`.
  static Checkpoint read_through(Store& over) {
    Metadata metadata;
    metadata.catalog.files = {"f"};
    return {over, {}, metadata};
  }
  /// Reads a region of the tensor.
  std::uint64_t read(Checkpoint& checkpoint, const RegionTarget& target, Bytes& staging,
                     Device& device) const {
    return read_regions(checkpoint, tensor, tensor.chunks[0], item, {&target, 1}, staging, device);
  }

  StoredTensor tensor;
  TensorItem item;
  test::MemoryStore store;
};

/// Rows of 40 KiB are read directly into the target if that is host memory; rows of 4 KiB are read
/// in blocks. The test reads some rows, all rows, or a part of each row.
TEST(RegionReader, rows_of_any_length_are_read_with_at_most_5_percent_extra) {
  HostDevice near("node", 0);
  FarDevice far;
  for (Device* device : {static_cast<Device*>(&near), static_cast<Device*>(&far)}) {
    for (const std::int64_t columns : {10240, 1024}) {
      OneItem stored(DType::kInt32, {9, columns});
      for (std::int32_t i = 0; i < 9 * columns; ++i) append_le(stored.content(), i);
      Checkpoint checkpoint = OneItem::read_through(stored.store);
      Bytes staging(std::size_t{64} << 10U);
      for (const std::int64_t skipped : {0L, columns / 100, columns / 30, columns / 2}) {
        for (const std::int64_t gap : {0, 3}) {  // unused elements between the target's rows
          const Box region{{2, skipped}, {6, columns - skipped}};
          const Dims strides{columns - skipped + gap, 1};
          std::vector<std::int32_t> out(static_cast<std::size_t>(6 * strides[0]), -1);
          const RegionTarget target{0, region, {reinterpret_cast<std::byte*>(out.data()), strides}};
          const std::uint64_t read = stored.read(checkpoint, target, staging, *device);
          const auto needed = static_cast<std::uint64_t>(4 * region.elements());
          EXPECT_GE(read, needed);
          if (device == &near && columns - skipped >= 9000) {
            EXPECT_EQ(staging, Bytes(staging.size())) << region << " went through staging";
          }
          EXPECT_LE(read * 20, needed * 21) << region;
          for (std::int64_t i = 0; i < static_cast<std::int64_t>(out.size()); ++i) {
            const std::int64_t column = i % strides[0];
            const bool wanted = column < columns - skipped;
            const std::int64_t right = (2 + i / strides[0]) * columns + skipped + column;
            ASSERT_EQ(out[static_cast<std::size_t>(i)], wanted ? right : -1) << region << i;
          }
        }
      }
    }
  }
}

/// Counts the calls that read.
class CallsStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;

  std::size_t calls = 0;

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    return std::make_unique<File>(inner().open(path), calls);
  }

 private:
  class File final : public ReadFile {
   public:
    File(std::unique_ptr<ReadFile> inner, std::size_t& calls)
        : inner_(std::move(inner)), calls_(calls) {}
    std::uint64_t size() const override { return inner_->size(); }
    void read_at(std::uint64_t offset, MutableByteSpan out) override {
      ++calls_;
      inner_->read_at(offset, out);
    }

   private:
    std::unique_ptr<ReadFile> inner_;
    std::size_t& calls_;
  };
};

/// Reads a column of a matrix. Its runs are as long as `run`, and the gaps between them as `gap`.
TEST(RegionReader, gaps_are_read_if_they_are_cheaper_than_a_call) {
  struct Row {
    std::int64_t run;
    std::int64_t gap;
    std::uint64_t times_needed;  ///< bytes read over bytes needed, at most
    std::size_t calls;
  };
  HostDevice near("node", 0);
  FarDevice far;
  for (const Row& row : {Row{128, 384, 4, 1}, Row{1, 2047, 2048, 4}, Row{4096, 2047, 2, 12},
                         Row{128, 2048, 1, 2048}, Row{4096, 12288, 1, 2048}}) {
    for (Device* device : {static_cast<Device*>(&near), static_cast<Device*>(&far)}) {
      SCOPED_TRACE(std::to_string(row.run) + " and " + std::to_string(row.gap));
      const Dims shape{2048, row.run + row.gap};
      OneItem stored(DType::kUInt8, shape);
      Bytes& content = stored.content();
      content.resize(static_cast<std::size_t>(volume(shape)));
      for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i >> 5U);
      CallsStore store(stored.store);
      Checkpoint checkpoint = OneItem::read_through(store);
      Bytes staging(std::size_t{4} << 20U);
      const Box region{{0, row.gap / 2}, {shape[0], row.run}};
      Bytes out(static_cast<std::size_t>(region.elements()));
      const RegionTarget target{0, region, {out.data(), contiguous_strides(region.extent)}};
      const std::uint64_t read = stored.read(checkpoint, target, staging, *device);
      EXPECT_LE(read, row.times_needed * out.size());
      EXPECT_EQ(store.calls, row.calls);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const auto run = static_cast<std::size_t>(row.run);
        const std::size_t at =
            i / run * static_cast<std::size_t>(shape[1]) + static_cast<std::size_t>(row.gap / 2);
        ASSERT_EQ(out[i], content[at + i % run]) << i;
      }
    }
  }
}

/// Rows of 40 KiB go directly from the file to a target with gaps between its rows, several at
/// once.
TEST(RegionReader, rows_that_are_read_together_are_checksummed_at_their_places) {
  const Dims shape{4, 10240};
  StoredTensor tensor{.key = "w", .dtype = DType::kInt32, .shape = shape};
  tensor.chunks = {{.box = Box::whole(shape), .file = 0, .range = {kItemOffset, 0}}};
  TensorItem item{.dtype = DType::kInt32, .size = shape, .strides = contiguous_strides(shape)};
  item.data_offset = kDataOffset;
  Bytes payload;
  for (std::int32_t i = 0; i < 4 * 10240; ++i) append_le(payload, i);
  item.data_bytes = payload.size();
  test::MemoryStore store;
  store.files["f"] = std::make_shared<test::MemoryStore::File>();
  store.files["f"]->content.resize(kItemOffset + kDataOffset);
  append(store.files["f"]->content, payload);
  Metadata metadata;
  metadata.catalog.files = {"f"};
  Checkpoint checkpoint(store, {}, metadata);
  std::vector<std::int32_t> out(4 * 10250);
  const RegionTarget target{
      0, Box::whole(shape), {reinterpret_cast<std::byte*>(out.data()), {10250, 1}}};
  Bytes staging(std::size_t{64} << 10U);
  HostDevice device("node", 0);
  ScatteredCrc32 seen(payload.size());
  read_regions(checkpoint, tensor, tensor.chunks[0], item, {&target, 1}, staging, device, &seen);
  EXPECT_EQ(seen.seen(), payload.size());
  EXPECT_EQ(seen.value(), crc32_of(payload));
}

/// Reads a range of a flattened tensor. The range is divided into boxes of the original tensor.
TEST(RegionReader, pieces_of_a_flattened_chunk_are_read_from_their_ranges) {
  const Dims original{3, 4, 5};
  StoredTensor tensor{.key = "exp_avg",
                      .dtype = DType::kInt32,
                      .shape = {1, 1, 1, 60},
                      .chunks = {},
                      .original_shape = original};
  Bytes payload;
  for (std::int32_t i = 0; i < 60; ++i) append_le(payload, 1000 + i);
  test::MemoryStore store;
  store.files["f"] = std::make_shared<test::MemoryStore::File>();
  HostDevice device("node", 0);
  Bytes staging(12);
  for (std::int64_t begin = 0; begin < 60; begin += 7) {
    for (std::int64_t end = begin + 1; end <= 60; end += 4) {
      const auto first = payload.begin() + 4 * begin;
      store.files["f"]->content.assign(first, first + 4 * (end - begin));
      Metadata metadata;
      metadata.catalog.files = {"f"};
      Checkpoint checkpoint(store, {}, metadata);
      const StoredChunk chunk{
          .box = {{0, 0, 0, begin}, {1, 1, 1, end - begin}}, .file = 0, .range = {}};
      const TensorItem item{.dtype = DType::kInt32,
                            .size = chunk.box.extent,
                            .strides = contiguous_strides(chunk.box.extent)};
      std::vector<std::int32_t> whole(60, -1);
      std::vector<RegionTarget> targets;
      const auto pieces = pieces_of(tensor, chunk);
      for (std::uint32_t p = 0; p < pieces.size(); ++p) {
        const Box& box = pieces[p].box;
        auto* data = reinterpret_cast<std::byte*>(
            &whole[static_cast<std::size_t>(linear_index(box.offset, original))]);
        targets.push_back({p, box, {data, contiguous_strides(original)}});
      }
      const auto bytes_read =
          read_regions(checkpoint, tensor, chunk, item, targets, staging, device);
      EXPECT_EQ(bytes_read, static_cast<std::uint64_t>(4 * (end - begin)));
      for (std::int32_t i = 0; i < 60; ++i) {
        ASSERT_EQ(whole[static_cast<std::size_t>(i)], i >= begin && i < end ? 1000 + i : -1)
            << begin << ' ' << end << ' ' << i;
      }
    }
  }
}

/// The expected values are from tests/data/torch_2.15.0/plain_odd.expected.json, which torch wrote.
TEST(RegionReader, lazily_conjugated_and_negated_tensors_are_what_torch_says) {
  Checkpoint checkpoint = Checkpoint::open(test::data_store(), "torch_2.15.0/plain_odd");
  HostDevice device("node", 0);
  const auto read = [&](const char* key) {
    const StoredTensor& tensor = *checkpoint.catalog().tensor(key);
    const StoredChunk& chunk = tensor.chunks.at(0);
    const TensorItem item = checkpoint.tensor_item(tensor, chunk);
    EXPECT_TRUE(item.flips.any()) << key;
    Bytes out(item.element_bytes());
    Bytes staging(8);
    const RegionTarget whole{0, chunk.box, {out.data(), contiguous_strides(chunk.box.extent)}};
    read_regions(checkpoint, tensor, chunk, item, {&whole, 1}, staging, device);
    return out;
  };
  const auto floats = [](const Bytes& bytes) {
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  EXPECT_EQ(floats(read("conj")), (std::vector<float>{1, -2, 3, 4}));
  const auto negated = floats(read("neg"));
  EXPECT_EQ(negated, (std::vector<float>{-0.0F, -1, -2}));
  EXPECT_TRUE(std::signbit(negated[0]));
}

/// The fixture sd_view_strided stores the numbers 0, 1, 2, ... of one row-major tensor in items
/// with other strides.
TEST(RegionReader, real_strided_items_give_the_elements_that_were_saved) {
  Checkpoint checkpoint = Checkpoint::open(test::data_store(), "torch_2.15.0/sd_view_strided");
  HostDevice device("node", 0);
  for (const char* key : {"cols", "rows", "plain"}) {
    const StoredTensor& tensor = *checkpoint.catalog().tensor(key);
    for (const StoredChunk& chunk : tensor.chunks) {
      const TensorItem item = checkpoint.tensor_item(tensor, chunk);
      std::vector<float> out(static_cast<std::size_t>(chunk.box.elements()), -1);
      Bytes staging(16);
      const RegionTarget whole{
          0,
          chunk.box,
          {reinterpret_cast<std::byte*>(out.data()), contiguous_strides(chunk.box.extent)}};
      read_regions(checkpoint, tensor, chunk, item, {&whole, 1}, staging, device);
      for (std::int64_t i = 0; i < chunk.box.elements(); ++i) {
        Dims index = index_at(i, chunk.box.extent);
        for (std::size_t d = 0; d < index.size(); ++d) index[d] += chunk.box.offset[d];
        // According to torch, this tensor of shape [6, 4] begins with 0, 6, 12, 18. So the element
        // at [r, c] is r + 6 c.
        ASSERT_EQ(out[static_cast<std::size_t>(i)], static_cast<float>(index[0] + 6 * index[1]))
            << key << index;
      }
    }
  }
}

}  // namespace
}  // namespace reprise
