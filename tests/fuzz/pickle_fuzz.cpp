// The input is a pickle. The target reads it by itself, and also as the data.pkl of an otherwise
// correct archive: a bytes item, a tensor item and common.pt.

#include "core/base/hash.hpp"
#include "core/format/pickle/pickle_reader.hpp"
#include "core/format/torch_records.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "core/megatron/modules.hpp"
#include "core/megatron/optimizer_part.hpp"
#include "core/scan/file_scan.hpp"
#include "tests/fuzz/item_promises.hpp"
#include "tests/fuzz/seeds.hpp"

namespace reprise::fuzz {
namespace {

Bytes item_with(ByteSpan pickle) {
  ArchiveWriter out("archive");
  add_leading_records(out, pickle);
  Bytes storage;
  for (std::size_t i = 0; i < 4096; ++i) storage.push_back(static_cast<std::byte>(i % 251));
  out.add("data/0", storage);
  out.add("data/1", ByteSpan(storage).first(64));
  out.add("data/2", {});
  add_trailing_records(out, hash_of(pickle), 0);
  return out.take();
}

/// Reads the value as if it were the common state, and also as if it belonged to a module's
/// optimizer. The value may be of any type.
void examine_as_of_modules(const Value& value) {
  for (const auto& module : modules_of({}, &value).modules) {
    promise(module.claim && !module.stored(), "a module that nothing tells of");
  }
  for (const ModulePart part : kModuleParts) (void)complaint_about(part, value);
  promise(complaint_about(ModulePart::kShardingType, value).empty() ==
              sharding_type_of(value).has_value(),
          "a sharding type is a text or wrong");
}

/// Scans the input, whatever it is. A value that is read and interpreted has known names alone.
void examine_names(ByteSpan input, bool interpreted) {
  SpanSource source(input, {.file = std::string(kFile)});
  const FileScan scan = scan_file(source);
  for (const ScannedName& name : scan.names) {
    promise(!name.name.empty() && name.pickles > 0 && name.offset < input.size(),
            "a name has its place");
    promise((name.standing == pickle::Standing::kKnown) == name.why.empty(),
            "a name that is not known has a reason");
  }
  const pickle::Imports found = pickle::imports_of(input, {kFile, kBegin});
  promise(found.failure || (found.end > 0 && found.end <= input.size()), "a pickle ends in it");
  if (!interpreted) return;
  promise(!found.failure, "a value that is read can be scanned");
  for (const pickle::Import& import : found.imports) {
    promise(import.standing == pickle::Standing::kKnown, "a value that is read has known names");
  }
}

Acceptance run(ByteSpan input) {
  const PickleSource where{kFile, kBegin};
  const auto alone =
      read_or_refuse(input.size(), [&] { return decode_value(input, where, nullptr); });
  if (alone && !alone->opaque) {
    check_written_again(alone->value);
    examine_as_of_modules(alone->value);
  }
  examine_names(input, alone && !alone->opaque);
  const bool accepted = check_item(item_with(input));
  return alone || accepted ? Acceptance::kAccepted : Acceptance::kRefused;
}

std::vector<Seed> seeds() {
  std::vector<Seed> pickles;
  for (const Seed& item : real_items()) {
    try {
      SpanSource source(item.bytes);
      Archive archive(source);
      pickles.push_back({item.name, archive.read(archive.at("data.pkl"), 65536)});
    } catch (const Error&) {  // not an archive, or its record is compressed; gives no seed
    }
  }
  return pickles;
}

const Target kTarget("pickle", run, seeds);

}  // namespace
}  // namespace reprise::fuzz
