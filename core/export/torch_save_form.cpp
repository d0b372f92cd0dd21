#include "core/export/torch_save_form.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "core/base/hash.hpp"
#include "core/base/utf8.hpp"
#include "core/checkpoint/safetensors_files.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/format/metadata_tables.hpp"
#include "core/format/pickle/pickle_writer.hpp"
#include "core/format/torch_records.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

/// The records of the file.
struct Records {
  Bytes pickle;
  std::vector<std::uint64_t> sizes;  ///< of the tensors' elements
};

/// Makes the bytes around the elements. Calls begin_elements() with the offset of each tensor's.
/// Returns the length of the file.
std::uint64_t walk(const Records& records, std::span<const std::uint32_t> checksums,
                   const PutBytes& put,
                   const std::function<void(std::uint64_t)>& begin_elements = {}) {
  ArchiveWriter out("archive");
  const auto flush = [&out, &put] {
    const Bytes bytes = out.take();
    put(out.position() - bytes.size(), bytes);
  };
  add_leading_records(out, records.pickle);
  Crc32 contents;
  for (std::size_t i = 0; i < records.sizes.size(); ++i) {
    out.begin("data/" + std::to_string(i), records.sizes[i]);
    flush();
    if (begin_elements) begin_elements(out.position());
    out.end(checksums[i]);
    Bytes checksum;
    append_le(checksum, checksums[i]);
    contents.update(checksum);
  }
  add_trailing_records(out, hash_of(ByteSpan(records.pickle)), contents.value());
  flush();
  return out.position();
}

}  // namespace

void TorchSaveForm::require_holds(const MappedTensor& tensor) const {
  if (is_utf8(tensor.key) && tensor.key.size() <= kKeyBytesMax) return;
  throw Error(Code::kUnsupported, "a file of torch.save can't have this key", {.key = tensor.key});
}

std::vector<OutputFile> TorchSaveForm::lay_out(const std::vector<MappedTensor>& tensors) {
  OutputFile file;
  const auto records = std::make_shared<Records>();
  std::vector<NamedTensor> named;
  for (const auto& tensor : tensors) {
    named.push_back({tensor.key, tensor.dtype, tensor.shape});
    records->sizes.push_back(bytes_of(tensor));
  }
  records->pickle = encode_state_dict(named);
  const auto add_part = [&file, &tensors](std::uint64_t begin) {
    const auto t = static_cast<std::uint32_t>(file.parts.size());
    file.parts.push_back({t, Box::whole(tensors[t].shape), begin});
  };
  const std::vector<std::uint32_t> unknown(tensors.size());
  file.bytes = walk(
      *records, unknown, [](std::uint64_t, ByteSpan) {}, add_part);
  file.needs_checksums = true;
  file.put_around = [records](std::span<const std::uint32_t> checksums, const PutBytes& put) {
    walk(*records, checksums, put);
  };
  file.name = name_;
  return {std::move(file)};
}

void TorchSaveForm::prepare(Store& store, CommitTarget& target,
                            const std::vector<std::string>& names) {
  static_cast<void>(names);
  for (const auto& step : prepare_protocol(store, target)) {
    if (step.name != "make_saving") step.run();
  }
  if (!target.claim.keeps_others_out()) return;
  for (const Aside& aside : asides_of(store, target.directory)) {
    if (aside.suffix == kNextSuffix) store.remove(aside.path);
  }
}

std::string TorchSaveForm::path_of(const CommitTarget& target, const std::string& name) const {
  static_cast<void>(name);
  return aside_path(target.directory, kNextSuffix, target.claim.token);
}

void TorchSaveForm::complete(Store& store, const CommitTarget& target) {
  static_cast<void>(store);
  static_cast<void>(target);
}

Checkpoint TorchSaveForm::opened(Store& store, const CommitTarget& target) {
  const std::string path = path_of(target, {});
  Location location;
  location.directory = parent_path(path);
  location.form = StoredForm::kTorchSave;
  location.file = path.substr(path.rfind('/') + 1);
  OpenedFiles opened = open_files(store, location);
  return {store, std::move(location), std::make_shared<const Metadata>(std::move(opened.metadata)),
          opened.hash};
}

void TorchSaveForm::commit(Store& store, CommitTarget& target) {
  store.publish({path_of(target, {}), target.directory, target.claim.directory.get()});
  store.sync_directory(parent_path(target.directory));
  target.claim = {};
}

void TorchSaveForm::abandon(Store& store, CommitTarget& target) {
  if (target.claim.directory) {
    try {
      store.remove(path_of(target, {}));
    } catch (const std::exception&) {
      // Ignore the error: the next export to this file removes it.
    }
  }
  ExportForm::abandon(store, target);
}

}  // namespace reprise
