// Laws of what stands in files: what was written is what is read, and reading ends.

#include <ctime>

#include "core/format/pickle/pickle_reader.hpp"
#include "core/format/pickle/pickle_writer.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/plan/save_plan.hpp"
#include "reprise/error.hpp"
#include "tests/contracts/sanitized.hpp"
#include "tests/laws/generators/stored.hpp"
#include "tests/laws/law.hpp"

namespace reprise::laws {
namespace {

class SpanStorages final : public StorageSource {
 public:
  explicit SpanStorages(std::vector<ByteSpan> storages) : storages_(std::move(storages)) {}
  std::optional<ByteSpan> storage(std::string_view key) override {
    const auto number = std::stoull(std::string(key));
    if (number >= storages_.size()) return std::nullopt;
    return storages_[number];
  }

 private:
  std::vector<ByteSpan> storages_;
};

// --- what was written is what is read -----------------------------------------------------------

const Law kValue{"a value that was pickled is read as it was", 300};

using Change = void (*)(Bytes&);

std::function<void()> value_comes_back(Change change) {
  return [change] {
    const Value value = *values();
    std::vector<ByteSpan> storages;
    Bytes pickle = encode_value(value, &storages);
    change(pickle);
    SpanStorages source(storages);
    const PickledValue read = decode_value(pickle, {.file = "law"}, &source);
    RC_TAG(value.variant().index());
    RC_ASSERT(!read.opaque);
    RC_ASSERT(read.value == value);
  };
}

TEST(Laws, a_pickled_value_is_read_as_it_was) {
  expect_law(kValue, value_comes_back([](Bytes&) {}));
}

TEST(LawsCanFail, a_pickle_with_a_changed_byte) {
  expect_broken(kValue,
                value_comes_back([](Bytes& pickle) { pickle[pickle.size() / 2] ^= std::byte{1}; }));
}

const Law kArchive{"the records of an archive are read as they were written", 300};

Bytes archive_of(const Records& records) {
  ArchiveWriter writer("archive");
  for (const auto& [name, content] : records) writer.add(name, content);
  writer.finish();
  return writer.take();
}

std::function<void()> records_come_back(Change change) {
  return [change] {
    const Records records = *archive_records();
    Bytes bytes = archive_of(records);
    change(bytes);
    SpanSource source(bytes);
    Archive archive(source);
    RC_TAG(records.size());
    RC_ASSERT(archive.prefix() == "archive");
    RC_ASSERT(archive.records().size() == records.size());
    for (const auto& [name, content] : records) {
      const Record& record = archive.at(name);
      RC_ASSERT(archive.read(record, content.size()) == content);
      RC_ASSERT(archive.checksum_matches(record));
      RC_ASSERT(archive.content_range(record).offset % kStorageAlignment == 0U);
    }
  };
}

TEST(Laws, records_are_read_as_they_were_written) {
  expect_law(kArchive, records_come_back([](Bytes&) {}));
}

TEST(LawsCanFail, an_archive_whose_content_changed) {
  expect_broken(kArchive, records_come_back([](Bytes& bytes) { bytes[64] ^= std::byte{1}; }));
}

const Law kMetadata{"a catalogue that was written is read as it was", 200};

TEST(Laws, a_catalogue_is_read_as_it_was_written) {
  expect_law(kMetadata, [] {
    const Metadata written = *metadata_tables();
    const Bytes bytes = write_metadata(written);
    const ByteSpan files[] = {bytes};
    const std::string names[] = {".metadata"};
    const Metadata read = read_metadata(files, names);
    RC_TAG(std::to_string(written.catalog.tensors.size()) + " tensors");
    RC_ASSERT(read.catalog.tensors.size() == written.catalog.tensors.size());
    RC_ASSERT(read.catalog.objects.size() == written.catalog.objects.size());
    for (const auto& tensor : written.catalog.tensors) {
      const StoredTensor* found = read.catalog.tensor(tensor.key);
      RC_ASSERT(found != nullptr);
      RC_ASSERT(found->dtype == tensor.dtype);
      RC_ASSERT(found->shape == tensor.shape);
      RC_ASSERT(found->chunks.size() == tensor.chunks.size());
      for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
        RC_ASSERT(found->chunks[i].box == tensor.chunks[i].box);
        RC_ASSERT(found->chunks[i].range == tensor.chunks[i].range);
        RC_ASSERT(read.catalog.files[found->chunks[i].file] ==
                  written.catalog.files[tensor.chunks[i].file]);
      }
    }
    for (const auto& object : written.catalog.objects) {
      const StoredObject* found = read.catalog.object(object.key);
      RC_ASSERT(found != nullptr);
      RC_ASSERT(found->range == object.range);
    }
  });
}

const Law kWire{"a rank's plan that was sent is received as it was", 200};

TEST(Laws, a_rank_s_plan_is_received_as_it_was_sent) {
  expect_law(kWire, [] {
    const PlacedState state = *placed_states();
    const auto rank = GlobalRank{static_cast<std::int32_t>(any_from(0, state.ranks() - 1))};
    const LocalPlan plan = local_plan(state.of(rank)->state, rank);
    const LocalPlan received = decode_local_plan(encode(plan));
    RC_ASSERT(signature(received) == signature(plan));
    RC_ASSERT(encode(received) == encode(plan));
  });
}

// --- reading any bytes ends ---------------------------------------------------------------------

const Law kAnyBytes{"reading any bytes ends, with a value or a named error, soon", 1500};

/// Returns bytes that a reader knows, with some of them changed, cut off, doubled or moved.
Bytes damaged(Bytes bytes) {
  for (auto n = any_from(0, 3); n > 0 && !bytes.empty(); --n) {
    const std::size_t at = any_below(bytes.size());
    const auto here = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (any_from(0, 3)) {
      case 0:
        *here = static_cast<std::byte>(any_from(0, 255));
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2: {
        const Bytes tail(here, bytes.end());
        bytes.insert(bytes.end(), tail.begin(), tail.end());
        break;
      }
      default:
        std::rotate(bytes.begin(), here, bytes.end());
    }
  }
  return bytes;
}

struct Reader {
  const char* name;
  Bytes (*known)();
  void (*read)(ByteSpan);
};

void read_archive(ByteSpan bytes) {
  SpanSource source(bytes);
  Archive archive(source);
  for (const auto& record : archive.records()) archive.read(record, bytes.size());
}

void read_catalogue(ByteSpan bytes) {
  const ByteSpan files[] = {bytes};
  const std::string names[] = {".metadata"};
  read_metadata(files, names);
}

const Reader kReaders[] = {
    {"a pickled value",
     [] {
       std::vector<ByteSpan> storages;
       return encode_value(*values(), &storages);
     },
     [](ByteSpan bytes) { decode_value(bytes, {.file = "law"}, nullptr); }},
    {"a tensor's pickle", [] { return encode_tensor_pickle(*dtypes(), *shapes()); },
     [](ByteSpan bytes) { decode_tensor(bytes, {.file = "law"}); }},
    {"an archive", [] { return archive_of(*archive_records()); }, read_archive},
    {"a catalogue", [] { return write_metadata(*metadata_tables()); }, read_catalogue},
    {"a plan",
     [] {
       const PlacedState state = *placed_states();
       return encode(local_plan(state.of(GlobalRank{0})->state, GlobalRank{0}));
     },
     [](ByteSpan bytes) { decode_local_plan(bytes); }},
};

std::function<void()> reading_ends(void (*before)(ByteSpan)) {
  return [before] {
    const Reader& reader = kReaders[any_below(std::size(kReaders))];
    const Bytes bytes = damaged(any_from(0, 9) == 0 ? *byte_strings(200) : reader.known());
    std::string ending = "a value";
    const std::clock_t begin = std::clock();
    try {
      before(bytes);
      reader.read(bytes);
    } catch (const Error& error) {
      ending = error.code() == Code::kInternal ? "an internal error" : "a named error";
    }
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    RC_TAG(std::string(reader.name) + " ends with " + ending);
    RC_ASSERT(ending != "an internal error");
    if (REPRISE_SANITIZED == 0) {
      RC_ASSERT(seconds <= 0.5 + 2e-6 * static_cast<double>(bytes.size()));
    }
  };
}

TEST(Laws, reading_any_bytes_ends_with_a_value_or_a_named_error) {
  expect_law(kAnyBytes, reading_ends([](ByteSpan) {}));
}

TEST(LawsCanFail, a_reader_that_fails_without_a_name) {
  expect_broken(kAnyBytes, reading_ends([](ByteSpan bytes) {
                  if (bytes.size() == 7) throw std::out_of_range("past the end");
                }));
}

}  // namespace
}  // namespace reprise::laws
