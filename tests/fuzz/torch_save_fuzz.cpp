// The input is a file of torch.save.

#include <algorithm>
#include <set>
#include <string>

#include "core/format/bytes_item.hpp"
#include "core/format/made_items.hpp"
#include "core/format/torch_save.hpp"
#include "tests/fuzz/seeds.hpp"

namespace reprise::fuzz {
namespace {

void check_tensor(const TorchSaveFile::Tensor& tensor, std::uint64_t size) {
  promise(tensor.range.fits(size), "a tensor outside of its file");
  promise(tensor.view && tensor.view->record && tensor.view->record->range.fits(size),
          "a record outside of its file");
  const ByteRange& record = tensor.view->record->range;
  promise(tensor.range.offset >= record.offset &&
              tensor.range.offset + tensor.range.size <= record.offset + record.size,
          "a tensor outside of its record");
  std::uint64_t reach = 1;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 0) reach = 0;
  }
  for (std::size_t d = 0; d < tensor.shape.size() && reach != 0; ++d) {
    reach += static_cast<std::uint64_t>((tensor.shape[d] - 1) * tensor.view->strides[d]);
  }
  promise(reach * size_of(tensor.dtype) == tensor.range.size, "a view with another range");
}

/// Reads each value that is no tensor as the item that every verb takes it for.
void check_values(const TorchSaveFile& file) {
  MadeItems items;
  for (const PickledState::Object& object : file.objects) {
    const ByteRange range = items.add(object.pickle);
    Bytes bytes(range.size);
    items.read_at(range.offset, bytes);
    SpanSource source(bytes, input_place());
    const BytesItem item = read_bytes_item(source);
    promise(item.checksum_mismatches.empty(), "a value with a wrong checksum");
    promise(item.value || !item.opaque_because.empty(), "a value that says nothing");
  }
}

Acceptance run(ByteSpan input) {
  SpanSource source(input, input_place());
  const auto file = read_or_refuse(input.size(), [&] { return read_torch_save(source); });
  if (!file) return Acceptance::kRefused;
  std::set<std::string> keys;
  for (const auto& tensor : file->tensors) {
    promise(keys.insert(tensor.key).second, "two tensors of one name");
    check_tensor(tensor, input.size());
  }
  for (const auto& object : file->objects) {
    promise(keys.insert(object.key).second, "two values of one name");
  }
  for (const Finding& finding : file->findings) {
    promise(finding.file == kFile, "a finding without its file");
  }
  check_values(*file);
  return Acceptance::kAccepted;
}

std::vector<Seed> seeds() {
  std::vector<Seed> files = files_below("tests/data", ".pt");
  for (Seed& file : files_below("tests/data/torch_save_2.15.0", ".bin")) {
    files.push_back(std::move(file));
  }
  std::erase_if(files, [](const Seed& file) { return file.name.ends_with("before_1_6.pt"); });
  return files;
}

const Target kTarget("torch_save", run, seeds);

}  // namespace
}  // namespace reprise::fuzz
