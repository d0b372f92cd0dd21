#include "core/seal/seal.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/base/sha256.hpp"
#include "core/checkpoint/batches.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/file_digest.hpp"
#include "core/format/integrity.hpp"
#include "core/format/json_document.hpp"
#include "core/ports/store_path.hpp"
#include "core/seal/content_digest.hpp"

namespace reprise {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kFilesMax = 1'000'000;
constexpr int kDepthMax = 16;
constexpr std::size_t kHexOfSha256 = 64;

/// Appends all files below `within`, which is relative to the directory, but the seal.
void add_files(Store& store, const std::string& directory, const std::string& within, int depth,
               std::vector<SealedFile>& files) {
  const auto refuse = [&](const std::string& name, const char* why) {
    throw Error(Code::kUnsupported, why, {.file = store.display(join_path(directory, name))});
  };
  const std::string path = within.empty() ? directory : join_path(directory, within);
  for (const Entry& entry : store.list(path)) {
    const std::string name = join_path(within, entry.name);
    if (name == kSealFile) continue;
    if (entry.directory && entry.link) refuse(name, "a link to a directory can't be sealed");
    if (entry.directory && depth == kDepthMax) refuse(name, "nested too deeply to be sealed");
    if (files.size() == kFilesMax) refuse(name, "too many files to be sealed");
    if (entry.directory) {
      add_files(store, directory, name, depth + 1, files);
    } else {
      files.push_back({name, entry.size, {}});
    }
  }
}

std::vector<SealedFile> files_in(Store& store, const std::string& directory) {
  std::vector<SealedFile> files;
  add_files(store, directory, "", 0, files);
  std::ranges::sort(files, {}, &SealedFile::name);
  return files;
}

/// Fills in the SHA-256 of the files, each on one thread.
void hash_files(Store& store, const std::string& directory, std::span<SealedFile* const> files,
                const SurveyPorts& ports) {
  ByteProgress progress(ports.progress);
  for (const SealedFile* file : files) progress.expect(file->bytes);
  do_all(ports.tasks, files.size(), [&](std::size_t /*thread*/) {
    return [&](std::size_t i) {
      SealedFile& file = *files[i];
      file.sha256 = hex(digest_of_file(store, join_path(directory, file.name),
                                       [&] { progress.go(file.name, 0); }));
      progress.go(file.name, file.bytes);
    };
  });
}

Json list_of(const Dims& dims) { return Json(std::vector<std::int64_t>(dims.begin(), dims.end())); }

Json described(const StoredTensor& tensor, const ContentDigest& digest) {
  Json chunks = Json::array();
  for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
    const Box& box = tensor.chunks[c].box;
    chunks.push_back({{"at", list_of(box.offset)},
                      {"size", list_of(box.extent)},
                      {"digest", hex(digest.chunks[c])}});
  }
  return {{"key", tensor.key},
          {"dtype", name_of(tensor.dtype)},
          {"shape", list_of(logical_shape(tensor))},
          {"digest", hex(digest.digest)},
          {"chunks", std::move(chunks)}};
}

[[noreturn]] void garbled(const ErrorPlace& place, const std::string& what) {
  throw Error(Code::kTornFile, "it is no seal: " + what, place);
}

SealedFile read_file(const Json& json, const ErrorPlace& place) {
  const auto text = [&](const char* name) -> const std::string& {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_string())
      garbled(place, "a file without its " + std::string(name));
    return found->get_ref<const std::string&>();
  };
  if (!json.is_object()) garbled(place, "a file that is not described");
  const auto bytes = json.find("bytes");
  if (bytes == json.end() || !bytes->is_number_unsigned())
    garbled(place, "a file without its size");
  SealedFile file{text("name"), bytes->get<std::uint64_t>(), text("sha256")};
  const bool is_hex = std::ranges::all_of(
      file.sha256, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (file.sha256.size() != kHexOfSha256 || !is_hex) garbled(place, "a digest that is none");
  return file;
}

}  // namespace

Seal seal_of(Checkpoint& checkpoint, const SurveyPorts& ports) {
  const std::string& directory = checkpoint.location().directory;
  Seal seal{files_in(checkpoint.store(), directory), {}};
  std::vector<SealedFile*> files;
  for (SealedFile& file : seal.files) files.push_back(&file);
  hash_files(checkpoint.store(), directory, files, ports);
  std::vector<const StoredTensor*> tensors;
  for (const StoredTensor& tensor : checkpoint.catalog().tensors) tensors.push_back(&tensor);
  const ContentDigests digests = content_digests(checkpoint, tensors, ports);
  for (const Finding& finding : digests.damage) {
    if (finding.severity != Severity::kError) continue;
    throw Error(finding.code, finding.message,
                {.key = finding.key, .file = finding.file, .offset = finding.offset});
  }
  Json list = Json::array();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    list.push_back(described(*tensors[t], digests.tensors[t]));
  }
  seal.tensors = list.dump();
  return seal;
}

Bytes write_seal(const Seal& seal) {
  Json files = Json::array();
  for (const SealedFile& file : seal.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  const Json document = {{"format", "reprise-seal"},
                         {"version", 1},
                         {"files", std::move(files)},
                         {"tensors", Json::parse(seal.tensors)}};
  const std::string text = document.dump(1) + '\n';
  const ByteSpan bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

Seal read_seal(ByteSpan text, const ErrorPlace& place) {
  const Json document = parse_json_object(text, place, kSealBytesMax);
  if (document.value("format", Json()) != "reprise-seal")
    garbled(place, "it does not say that it is");
  if (document.value("version", Json()) != 1) {
    throw Error(Code::kUnsupported, "a seal of a version that this program does not read", place);
  }
  const Json files = document.value("files", Json());
  const Json tensors = document.value("tensors", Json());
  if (!files.is_array() || !tensors.is_array())
    garbled(place, "it lists neither files nor tensors");
  Seal seal{{}, tensors.dump()};
  for (const Json& file : files) seal.files.push_back(read_file(file, place));
  std::ranges::sort(seal.files, {}, &SealedFile::name);
  if (std::ranges::adjacent_find(seal.files, {}, &SealedFile::name) != seal.files.end()) {
    garbled(place, "it lists a file twice");
  }
  return seal;
}

Findings compare_with_seal(Store& store, const std::string& directory, const Seal& seal,
                           const SurveyPorts& ports) {
  Findings findings;
  const auto find = [&](const std::string& name, Code code, const std::string& message) {
    findings.push_back(
        {Severity::kError, code, message, "", store.display(join_path(directory, name))});
  };
  std::vector<SealedFile> present = files_in(store, directory);
  std::vector<SealedFile*> to_hash;
  const auto sealed = [&seal](const std::string& name) {
    const auto found = std::ranges::lower_bound(seal.files, name, {}, &SealedFile::name);
    return found == seal.files.end() || found->name != name ? nullptr : &*found;
  };
  for (SealedFile& file : present) {
    const SealedFile* known = sealed(file.name);
    if (known == nullptr) {
      find(file.name, Code::kNotRequested, "the seal does not name this file: it was added later");
    } else if (known->bytes != file.bytes) {
      find(file.name, Code::kChecksum,
           "it has " + counted(file.bytes, "byte") + ", but was sealed with " +
               with_commas(known->bytes));
    } else {
      to_hash.push_back(&file);
    }
  }
  hash_files(store, directory, to_hash, ports);
  for (const SealedFile* file : to_hash) {
    if (sealed(file->name)->sha256 == file->sha256) continue;
    find(file->name, Code::kChecksum, "its bytes are not those that were sealed");
  }
  for (const SealedFile& file : seal.files) {
    if (std::ranges::binary_search(present, file.name, {}, &SealedFile::name)) continue;
    find(file.name, Code::kNotFound, "it was sealed, and is gone");
  }
  std::ranges::stable_sort(findings, {}, &Finding::file);
  return findings;
}

}  // namespace reprise
