#include "tests/fuzz/item_promises.hpp"

#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/format/tensor_item.hpp"
#include "core/format/zip/archive.hpp"
#include "tests/fuzz/target.hpp"

namespace reprise::fuzz {

namespace {

/// Checks that the archive's records lie inside the input, in ascending order and without overlap,
/// and that each can be read to its end.
bool check_archive(SpanSource& source) {
  return read_or_refuse(source.size(),
                        [&] {
                          Archive archive(source);
                          std::uint64_t end = 0;
                          for (const Record& record : archive.records()) {
                            const ByteRange range = archive.content_range(record);
                            promise(range.fits(source.size()),
                                    "content outside of the slice: " + record.name);
                            promise(range.offset >= end, "contents that overlap: " + record.name);
                            end = range.offset + range.size;
                            promise(archive.read(record, source.size()).size() == record.size,
                                    "content of another size: " + record.name);
                            archive.checksum_matches(record);
                          }
                          return true;
                        })
      .has_value();
}

/// Checks that the tensor's record lies in the item, and that every element lies in that record.
void check_view(const TensorItem& item, std::uint64_t slice) {
  promise(ByteRange{item.data_offset, item.data_bytes}.fits(slice), "elements outside of the item");
  if (volume(item.size) == 0) return;
  __extension__ using Wide = __int128;
  Wide last = item.storage_offset;
  promise(item.storage_offset >= 0, "a view before its storage");
  for (std::size_t d = 0; d < item.size.size(); ++d) {
    promise(item.strides[d] >= 0, "a negative stride");
    last += Wide{item.size[d] - 1} * item.strides[d];
  }
  promise((last + 1) * static_cast<Wide>(size_of(item.dtype)) <= Wide{item.data_bytes},
          "a view beyond its storage");
}

bool check_tensor(SpanSource& source) {
  const auto item = read_or_refuse(source.size(), [&] { return read_tensor_item(source); });
  if (item) check_view(*item, source.size());
  return item.has_value();
}

}  // namespace

void check_written_again(const Value& value) {
  const BytesItem again = read_bytes_item(write_bytes_item(value));
  promise(again.value.has_value(), "opaque when written again: " + again.opaque_because);
  promise(*again.value == value,
          "another value when written again: " + to_string(value) + to_string(*again.value));
  promise(hash_of(*again.value) == hash_of(value), "another hash: " + to_string(value));
  promise(again.checksum_mismatches.empty(), "wrong checksums when written again");
}

bool check_item(ByteSpan bytes) {
  SpanSource source(bytes, input_place());
  const bool archive = check_archive(source);
  const bool tensor = check_tensor(source);
  const auto item = read_or_refuse(bytes.size(), [&] { return read_bytes_item(source); });
  if (item) {
    promise(item->value.has_value() == item->opaque_because.empty(), "opaque without a reason");
    if (item->value) check_written_again(*item->value);
    read_or_refuse(bytes.size(), [&] { return read_common_file(bytes, input_place()); });
    read_or_refuse(bytes.size(), [&] { return read_common_object(bytes, input_place()); });
  }
  return archive || tensor || (item && item->value);
}

}  // namespace reprise::fuzz
